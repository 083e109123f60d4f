"""The host's part of a run: call the device for a block of levels, keep the record, know when to stop.

Each replica ends at its own level, the first at which a rule fires or the replica froze, so that results do not depend
on how many levels a block has; replicas that ended are carried along until the last has.
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

from quenchphys.console.interruption import Asked, Interrupted, interruptible
from quenchphys.console.memory import check_memory, in_words
from quenchphys.console.progress import Meter
from quenchphys.ladder import Ladder
from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.processes import any_of, first, to_host
from quenchphys.parallel.random_numbers import GENERATOR, keys_of, split_each
from quenchphys.parallel.sharding import AXIS, ParticleSharding, set_size, tile_size
from quenchphys.problem import ProblemView, check, check_energies, view
from quenchphys.settings import Settings
from quenchphys.smc.evidence import Account
from quenchphys.smc.levels import Family
from quenchphys.smc.plan import Plan
from quenchphys.smc.programs import Programs, programs_for
from quenchphys.smc.run_state import Course, identity, resume, save
from quenchphys.smc.step import LevelOrders, Rung, Thresholds
from quenchphys.stopping import LevelLimit, StopRule
from quenchphys.storage.album import CONFIGURATION_LIMIT, Album
from quenchphys.storage.build_ladder import assemble
from quenchphys.storage.checkpoint import Checkpoint, Store, opened
from quenchphys.storage.record import Record, blanked
from quenchphys.tuning.mutation_count import MutationCount

Array = jax.Array

BLOCK = 16  # levels in one device call
WARM_UP_BLOCKS = 1
KEPT = 32  # configurations offered to the album from each level


def plan_for(settings: Settings, dimension: int, devices: int | Sequence[Any] | None = None) -> tuple[Plan, Mesh]:
    """The compiled program's constants, and the devices it runs on."""
    tiles = settings.particles // tile_size(settings.particles, dimension)
    together = set_size(settings.replicas, settings.particles, dimension)
    mesh = mesh_for(settings.replicas // together, tiles, devices)
    plan = Plan(
        particles=settings.particles,
        draws=settings.particles * settings.draws_per_particle,
        kernel=settings.kernel,
        kept=min(KEPT, settings.particles),
        replicas_together=together if mesh.devices.flat[0].platform == "cpu" else None,
        sharding=ParticleSharding(mesh.shape[AXIS], tiles),
    )
    return plan, mesh


def run(
    problem: Any,
    method: str,
    family: Family,
    settings: Settings,
    stop: StopRule,
    schedule: np.ndarray | None,
    meter: Meter,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    devices: int | Sequence[Any] | None = None,
) -> Ladder:
    """Run a ladder from the prior or a checkpoint to its end, in single precision whatever JAX is set to elsewhere."""
    check_not_forked()
    begun = time.monotonic()
    with jax.enable_x64(False):
        check(problem)
        problem = view(problem)
        dimension = int(np.prod(problem.shape))
        check_memory(settings, dimension)
        plan, mesh = plan_for(settings, dimension, devices)
    with contained(mesh), in_words(settings), stoppable(checkpoint) as asked:
        program = programs_for(plan, mesh)
        limit = LevelLimit(settings.max_levels if schedule is None else len(schedule))
        rule = stop | limit
        album_size = min(settings.configurations, max(1, CONFIGURATION_LIMIT // (4 * dimension * settings.replicas)))
        argument, pace = problem.as_argument(), MutationCount(settings.kernel, dimension)
        words = {} if checkpoint is None else identity(problem, method, family, settings, stop, schedule)
        with opened(checkpoint, words) as store:
            kept = None if store is None else store.latest()
            if kept is None:
                course = begin(argument, program, family, settings, schedule, rule, pace, album_size, store)
            else:
                assert store is not None
                course = resume(kept, family, rule, schedule, pace, album_size, store.record)
            pace.watch(problem, course.prior.keys() - {"energy"})
            descend(course, argument, program, family, settings, schedule, meter, store, asked)
        return assemble(
            problem,
            method,
            family,
            settings,
            plan,
            mesh,
            course.account,
            course.record,
            course.album,
            course.prior,
            course.undefined,
            begun,
        )


def begin(
    argument: ProblemView,
    program: Programs,
    family: Family,
    settings: Settings,
    schedule: np.ndarray | None,
    rule: StopRule,
    pace: MutationCount,
    album_size: int,
    store: Store | None,
) -> Course:
    """Draw from the prior, choose the first level, tune the kernel."""
    common, key = keys_of(jax.random.key(settings.seed, impl=GENERATOR), settings.replicas)
    prior_key, start_key = split_each(key)
    flagged, draws, seen = program.draw_prior(argument, prior_key)
    prior, undefined = to_host(({"energy": draws.energy, **seen}, flagged))
    check_energies(prior["energy"], undefined)
    top = np.float32(np.nan) if schedule is None else schedule[0]
    state, log_first, parent = program.start(argument, family, start_key, common, draws, seen, top)
    del draws, seen
    if settings.kernel.step_size is None:
        state = warm_up(argument, program, family, settings, state)
    log_first, parent = to_host((log_first, parent))
    account = Account(family, log_first, prior["energy"], rule, adaptive=schedule is None)
    if store is not None:
        once = {f"prior {name}": value for name, value in prior.items()}
        store.begin(once | {"undefined": undefined, "log_first": log_first, "parent": parent})
    record = Record(folder=store.record if store is not None and first() else None)
    return Course(state, account, pace, record, Album(album_size), prior, undefined, parent)


def warm_up(argument: ProblemView, program: Programs, family: Family, settings: Settings, state: Any) -> Any:
    """Tune step size and scale at the first level on copies; the particles themselves stay where they are."""
    copy = state
    for _ in range(WARM_UP_BLOCKS):
        copy, _ = program.descend(argument, family, rates_of(settings), copy, orders(None, 0, 1, rehearse=True))
    learnt = ("key", "common", "step_size", "anisotropy", "scale", "tuner")
    return state._replace(**{name: getattr(copy, name) for name in learnt})


def rates_of(settings: Settings) -> Thresholds:
    return Thresholds(np.float32(settings.target_ess), np.float32(settings.resample_ess))


def orders(schedule: np.ndarray | None, begin: int, transitions: int, rehearse: bool = False) -> LevelOrders:
    """Orders for the levels from `begin` on; beyond the end of a schedule the last is repeated, and not recorded."""
    parameter = np.full(BLOCK, np.nan, np.float32)
    if schedule is not None:
        parameter = schedule[np.minimum(np.arange(begin, begin + BLOCK), len(schedule) - 1)]
    return LevelOrders(parameter, np.full(BLOCK, transitions, np.int32), np.full(BLOCK, rehearse))


def descend(
    course: Course,
    argument: ProblemView,
    program: Programs,
    family: Family,
    settings: Settings,
    schedule: np.ndarray | None,
    meter: Meter,
    store: Store | None,
    asked: Asked | None,
) -> None:
    """Block after block of levels, until every replica has ended."""
    account, pace, rates = course.account, course.pace, rates_of(settings)
    try:
        while account.running.size:
            block = orders(schedule, account.levels, pace.transitions)
            course.state, rungs = program.descend(argument, family, rates, course.state, block)
            rungs = to_host(rungs)
            pace.update(rungs.transitions[:, account.running], rungs.correlation[:, account.running])
            if account.levels == 0:
                rungs.parent[0] = course.parent
            take_in(rungs, account, course.record, course.album)
            meter.update(
                account.levels,
                float(account.parameter.mean()),
                float(rungs.acceptance[-1].mean()),
                float(account.log_volume.mean()),
                account.remaining,
            )
            if store is None:
                continue
            stopping = any_of(bool(asked))
            if store.due(account.levels) or stopping:
                save(course, store)
            # Only between blocks do the state of the device and the account of the host belong to the same level.
            if stopping and account.running.size:
                raise Interrupted(
                    f"Interrupted after {account.levels} levels; the same call goes on from {store.folder}."
                )
    finally:
        meter.close()


@contextmanager
def stoppable(checkpoint: Any) -> Iterator[Asked | None]:
    """With a checkpoint, Ctrl-C and SIGTERM end the run at the next block of levels; without one they keep their meaning."""
    if checkpoint is None:
        yield None
        return
    with interruptible() as asked:
        yield asked


@contextmanager
def contained(mesh: Mesh) -> Iterator[None]:
    """The engine's own precision and mesh: NetKet, for one, sets others for the whole process when it is imported."""
    with jax.enable_x64(False), jax.set_mesh(mesh):
        yield


def take_in(rungs: Rung, account: Account, record: Record, album: Album) -> None:
    """Account for a block of levels up to the one at which the last replica ends, and record it."""
    log_volume = []
    for k in range(len(rungs.parameter)):
        if not account.running.size:
            break
        rung = jax.tree.map(lambda a, k=k: a[k], rungs)
        album.offer(account.levels, rung.kept, rung.configurations)
        log_volume.append(account.after(rung))
    rows = rungs._asdict() | {"log_volume": np.array(log_volume)}
    for name in ("kept", "configurations", "log_ratio", "observables"):
        rows.pop(name)
    rows |= {f"observable {name}": value for name, value in rungs.observables.items()}
    recorded = {name: value[: len(log_volume)] for name, value in rows.items()}
    record.extend(**blanked(recorded, account.levels - len(log_volume), account.level_count))
