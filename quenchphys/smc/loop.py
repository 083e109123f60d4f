"""The loop of a ladder on the host: call the device for a block of levels, keep the record, decide when to stop.

Each replica ends at its own level, the first at which a rule fires or the replica froze, so that results do not depend
on how many levels a block has; replicas that ended are carried along until the last one ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from quenchphys.consistency import check_program
from quenchphys.consistency.energies import check_energies
from quenchphys.console.interruption import SAVING, STOPPING, Interrupted, StopRequest, interruptible
from quenchphys.console.memory import check_memory, in_words
from quenchphys.console.progress import Meter
from quenchphys.ladder import Ladder
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.processes import any_of, first, to_host
from quenchphys.parallel.random_numbers import key_of, keys_of, split_each
from quenchphys.smc.assignment import Assignment, Machine, plan_for
from quenchphys.smc.evidence import Evidence
from quenchphys.smc.run_state import RunState, identity, resume, save
from quenchphys.smc.step import LevelOrders, Rung, State
from quenchphys.storage.album import Album
from quenchphys.storage.build_ladder import assemble
from quenchphys.storage.checkpoint import Checkpoint, Store, opened
from quenchphys.storage.record import Record, blanked
from quenchphys.tuning.mutation_count import MutationCount

BLOCK = 16  # levels in one device call
WARM_UP_BLOCKS = 1


def run(
    work: Assignment,
    meter: Meter,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    devices: int | Sequence[Any] | None = None,
) -> Ladder:
    """Run a ladder from the prior or a checkpoint to its end, in single precision whatever JAX is set to elsewhere."""
    check_not_forked()
    begun = time.monotonic()
    with own_settings():
        check_memory(work.settings, work.dimension)
        plan, mesh = plan_for(work.settings, work.dimension, devices)
        own = {} if checkpoint is None else identity(work)
    with contained(mesh), in_words(work.settings), stoppable(checkpoint) as request:
        machine = Machine.of(work, plan, mesh)
        with opened(checkpoint, own) as store:
            kept = None if store is None else store.latest()
            if kept is None:
                course = begin(work, machine, store)
            else:
                assert store is not None
                course = resume(work, kept, store.record)
            course.pace.watch(work.problem, course.prior.keys() - {"energy"})
            descend(work, machine, course, meter, store, request)
        return assemble(work, machine, course, time.monotonic() - begun)


def begin(work: Assignment, machine: Machine, store: Store | None) -> RunState:
    """Draw from the prior, choose the first level, tune the kernel."""
    program, settings = machine.program, work.settings
    common, key = keys_of(key_of(settings.seed), settings.replicas)
    prior_key, start_key = split_each(key)
    flagged, draws, seen = program.draw_prior(machine.argument, prior_key)
    prior, undefined = to_host(({"energy": draws.energy, **seen}, flagged))
    check_energies(prior["energy"], undefined)
    which = np.arange(work.kept_draws, dtype=np.int32)
    drawn = to_host(program.pick_draws(machine.argument, draws.position, which))
    check_program(work.problem, drawn[0], {name: value[0, which] for name, value in prior.items()})
    top = np.float32(np.nan) if work.schedule is None else work.schedule[0]
    state, log_first, parent = program.start(machine.argument, work.family, start_key, common, draws, seen, top)
    del draws, seen  # ten times the population
    if settings.kernel.step_size is None:
        state = warm_up(work, machine, state)
    log_first, parent = to_host((log_first, parent))
    if store is not None:
        once = {f"prior {name}": value for name, value in prior.items()}
        store.begin(once | {"drawn": drawn, "undefined": undefined, "log_first": log_first, "parent": parent})
    return RunState(
        state=state,
        evidence=Evidence(work.family, log_first, prior["energy"], work.rule, work.adaptive),
        pace=MutationCount(settings.kernel, work.dimension),
        record=Record(folder=store.record if store is not None and first() else None),
        album=Album(work.album_size),
        prior=prior,
        drawn=drawn,
        undefined=undefined,
        parent=parent,
    )


def warm_up(work: Assignment, machine: Machine, state: State) -> State:
    """Tune step size and scale at the first level on copies; the particles themselves stay where they are."""
    copy = state
    for _ in range(WARM_UP_BLOCKS):
        rehearsal = orders(None, 0, 1, rehearse=True)
        copy, _ = machine.program.descend(machine.argument, work.family, work.thresholds, copy, rehearsal)
    tuned = ("key", "common", "step_size", "anisotropy", "scale", "tuner")
    return state._replace(**{name: getattr(copy, name) for name in tuned})


def orders(schedule: np.ndarray | None, begin: int, transitions: int, rehearse: bool = False) -> LevelOrders:
    """Orders for the levels from `begin` on; beyond the end of a schedule the last is repeated, and not recorded."""
    parameter = np.full(BLOCK, np.nan, np.float32)
    if schedule is not None:
        parameter = schedule[np.minimum(np.arange(begin, begin + BLOCK), len(schedule) - 1)]
    return LevelOrders(parameter, np.full(BLOCK, transitions, np.int32), np.full(BLOCK, rehearse))


def descend(
    work: Assignment,
    machine: Machine,
    course: RunState,
    meter: Meter,
    store: Store | None,
    request: StopRequest,
) -> None:
    """Block after block of levels, until every replica has ended."""
    evidence, thresholds = course.evidence, work.thresholds
    try:
        while evidence.running.size:
            block = orders(work.schedule, evidence.levels, course.pace.transitions)
            course.state, rungs = machine.program.descend(machine.argument, work.family, thresholds, course.state, block)
            rungs = to_host(rungs)
            take_in(rungs, course)
            show(meter, rungs, evidence)
            if store is not None:
                keep(course, store, request)
            elif any_of(bool(request)):
                raise Interrupted(f"Interrupted after {evidence.levels} levels; nothing is kept without a checkpoint.")
    finally:
        meter.close()


def take_in(rungs: Rung, course: RunState) -> None:
    """Learn from a block of levels up to the one at which the last replica ends, and record it."""
    evidence, running = course.evidence, course.evidence.running
    course.pace.update(np.asarray(rungs.transitions)[:, running], np.asarray(rungs.correlation)[:, running])
    if evidence.levels == 0:
        rungs.parent[0] = course.parent
    log_volume = []
    for k in range(len(rungs.parameter)):
        if not evidence.running.size:
            break
        rung = jax.tree.map(lambda a, k=k: a[k], rungs)
        course.album.offer(evidence.levels, rung.kept, rung.configurations)
        log_volume.append(evidence.add(rung))
    rows = rungs._asdict() | {"log_volume": np.array(log_volume)}
    for name in ("kept", "configurations", "log_ratio", "observables"):
        rows.pop(name)
    rows |= {f"observable {name}": value for name, value in rungs.observables.items()}
    recorded = {name: value[: len(log_volume)] for name, value in rows.items()}
    course.record.extend(**blanked(recorded, evidence.levels - len(log_volume), evidence.level_count))


def show(meter: Meter, rungs: Rung, evidence: Evidence) -> None:
    """Progress, as averages over replicas."""
    meter.update(
        evidence.levels,
        float(evidence.parameter.mean()),
        float(rungs.acceptance[-1].mean()),
        float(evidence.log_volume.mean()),
        evidence.remaining,
    )


def keep(course: RunState, store: Store, request: StopRequest) -> None:
    """Write a checkpoint if one is due, and stop after it if the user wants to.

    Only between blocks do the state of the device and the evidence on the host belong to the same level.
    """
    levels, stopping = course.evidence.levels, any_of(bool(request))
    if store.due(levels) or stopping:
        save(course, store)
    if stopping:
        raise Interrupted(f"Interrupted after {levels} levels; run the same call again to continue from {store.folder}.")


@contextmanager
def stoppable(checkpoint: Any) -> Iterator[StopRequest]:
    """Ctrl-C and SIGTERM end the run after the block of levels that is being computed.

    An exception in the middle of a device call might be swallowed there, and the run would go on.
    """
    with interruptible(STOPPING if checkpoint is None else SAVING) as request:
        yield request


@contextmanager
def contained(mesh: Mesh) -> Iterator[None]:
    """The engine's own settings and mesh: NetKet, for one, sets others for the whole process when it is imported."""
    with own_settings(), jax.set_mesh(mesh):
        yield
