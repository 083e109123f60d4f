"""Nested sampling: `nested` descends hard walls in the energy by slice sampling and returns the ladder of its births.

Each level is a wall at E_k with m births, draws from pi(x) 1[U(x) < E_k]: a soft level of softness zero.  The volumes are
not measured but known from order statistics (`log_compression`), G_k with a relative error of about sqrt(k m)/N.  Every
point is recorded once, at its birth, so the estimator over prior draws and births is that of any other ladder, and what a
run says of its errors rests on independent points.
"""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenchphys.consistency import check
from quenchphys.consistency.energies import check_energies
from quenchphys.console.interruption import Interrupted, StopRequest
from quenchphys.console.memory import check_fits
from quenchphys.console.progress import Meter, meter, shown
from quenchphys.extras import optional
from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.processes import to_host
from quenchphys.parallel.random_numbers import key_of, keys_of, split_each
from quenchphys.plain_values import real, whole
from quenchphys.problem import ProblemView, view
from quenchphys.samplers.nested_births import Level, descend, draw, log_compression
from quenchphys.samplers.nested_state import Descent, identity, keep_draws, resume, save
from quenchphys.settings import check_seed, check_stop, keep_plain
from quenchphys.smc.evidence import Evidence
from quenchphys.smc.lag import LARGEST_SHARE, slowest_quantity
from quenchphys.smc.levels import SoftLevels
from quenchphys.smc.loop import stoppable
from quenchphys.stopping import LevelLimit, StopRule, suggested
from quenchphys.storage.album import CONFIGURATION_LIMIT, Album
from quenchphys.storage.attributes import problem_attributes, software_attributes
from quenchphys.storage.build_ladder import PREFIX, configurations_of, judge, levels_of, particles_of
from quenchphys.storage.checkpoint import Checkpoint, Store, opened
from quenchphys.storage.record import Record, blanked
from quenchphys.storage.schema import LADDER, LADDER_FORMAT, labelled

BLOCK = 8  # levels in one device call
KEPT = 32  # configurations offered to the album from each level
# Live points of equal energy cannot be ranked: above this share of those that die the volumes are wrong.
TIED_SHARE = 0.1
BOTTOM = 0.01  # nats within which energies are equal for all purposes, where single precision can no longer rank them
ENOUGH = 50  # live points a dimension, with which slow quantities do no harm


@dataclass(frozen=True)
class NestedSettings:
    """The settings of `nested`; a wrong one is refused when the object is made."""

    particles: int = 1000
    replicas: int = 4
    seed: int = 0
    replaced: float = 0.1
    steps: int | None = None
    configurations: int = 4096
    max_levels: int = 100_000

    def __post_init__(self) -> None:
        keep_plain(self, particles=10, replicas=1, configurations=1, max_levels=1)
        object.__setattr__(self, "seed", check_seed(self.seed))
        share = real("replaced", self.replaced)
        if not 0 < share <= 0.5:
            raise ValueError(f"replaced, the share of live points, must lie above 0 and not above 0.5; {share} was given")
        object.__setattr__(self, "replaced", share)
        if self.steps is not None:
            object.__setattr__(self, "steps", whole("steps", self.steps, 1))

    @property
    def births(self) -> int:
        """Live points that are replaced at every level."""
        return max(1, round(self.replaced * self.particles))


def nested(
    problem: Any,
    *,
    particles: int = 1000,
    replicas: int = 4,
    seed: int = 0,
    replaced: float = 0.1,
    steps: int | None = None,
    stop: StopRule | None = None,
    configurations: int = 4096,
    max_levels: int = 100_000,
    progress: bool | Meter | None = None,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
) -> Ladder:
    """Sample a problem by nested sampling: hard walls in the energy, slice moves, order-statistic volumes.

    It takes no gradients and is safe at any transition, but needs 2 D slice moves of several energies each for every new
    point, so it suits small dimensions.  It needs the extra `rivals` (blackjax).

    Parameters
    ----------
    problem
        A model with `sample_prior`, `log_prior` and `energy`: see `quenchphys.problem.Problem`.
    particles
        Live points of a replica, at least twice the dimension: their covariance shapes the moves.
    replicas, seed
        As in `quench`.
    replaced
        Share of the live points that die at every level, up to 0.5.
    steps
        Slice moves of every new point.  Default: twice the dimension, and at least 5.
    stop
        When to end: a rule of `quenchphys.stopping`.  Default: what the problem recommends, else RemainingEvidence(-3).
    configurations, max_levels, progress, checkpoint
        As in `quench`.

    Returns
    -------
    Ladder
        With the walls as levels of softness zero and the points born below each wall as its particles.  The attribute
        `evaluations` counts energies; `log_volume_err` of the levels is the spread of the order statistics.

    Examples
    --------
    >>> ladder = qp.nested(qp.targets.spike_slab(10), particles=1000, seed=1)
    >>> print(ladder.report())
    >>> observables.partition_function(ladder, beta=1.0)
    """
    optional("blackjax", "qp.nested", "rivals")
    settings = NestedSettings(particles, replicas, seed, replaced, steps, configurations, max_levels)
    model = view(problem)
    rule = check_stop(stop if stop is not None else suggested(model.stop))
    check(problem)
    dimension = math.prod(model.shape)
    if settings.particles < 2 * dimension:
        raise ValueError(
            f"nested needs at least {2 * dimension} particles, twice the dimension, because the spread of the live points "
            f"shapes its moves; {settings.particles} were given"
        )
    begun = time.monotonic()
    numbers = settings.replicas * settings.particles * dimension
    advice = f"lower particles ({settings.particles}) or replicas ({settings.replicas})"
    check_fits("its live points", 16.0 * numbers, advice)
    with own_settings():
        own = {} if checkpoint is None else identity(model, asdict(settings), rule)
    with own_settings(), stoppable(checkpoint) as request, opened(checkpoint, own) as store:
        kept = None if store is None else store.latest()
        course = begin(model, settings, rule | LevelLimit(settings.max_levels))
        if store is not None and kept is None:
            course.record = Record(folder=store.record)
            keep_draws(course, store)
        elif store is not None and kept is not None:
            course = resume(course, kept, store, min(settings.configurations, room(model, settings)))
        display = meter("nested", progress)
        with shown(display):
            while course.evidence.running.size:
                advance(model, settings, course)
                keep(course, store, request)
                show(display, course.evidence)
        return assemble(model, settings, course, time.monotonic() - begun)


def keep(course: Descent, store: Store | None, request: StopRequest) -> None:
    """Write a checkpoint if one is due, and stop if the user wants to."""
    levels = course.evidence.levels
    if store is not None and (store.due(levels) or request):
        save(course, store)
    if request and course.evidence.running.size:
        then = "nothing is kept without a checkpoint"
        then = then if store is None else f"run the same call again to continue from {store.folder}"
        raise Interrupted(f"Interrupted after {levels} levels; {then}.")


def room(model: ProblemView, settings: NestedSettings) -> int:
    """Configurations of each replica that the memory for them holds."""
    return max(1, CONFIGURATION_LIMIT // (4 * math.prod(model.shape) * settings.replicas))


def moves(settings: NestedSettings, dimension: int) -> int:
    """Slice moves of every new point."""
    return max(5, 2 * dimension) if settings.steps is None else settings.steps


def begin(model: ProblemView, settings: NestedSettings, rule: StopRule) -> Descent:
    """Draw the live points from the prior."""
    space = room(model, settings)
    kept = min(settings.particles, max(64, settings.configurations // 8), max(1, space // 8))
    _, keys = keys_of(key_of(settings.seed), settings.replicas)
    prior_keys, keys = split_each(keys)
    live, undefined, seen, drawn = draw(model.as_argument(), prior_keys, settings.particles, kept)
    undefined, seen, drawn = to_host((undefined, seen, drawn))
    energy = -np.array(live.sampler.particles.loglikelihood)
    check_energies(energy, undefined)
    check_ranks(energy, settings)
    log_first = np.full(settings.replicas, log_compression(settings.particles, settings.births)[0])
    return Descent(
        keys=keys,
        live=live,
        evidence=Evidence(SoftLevels(np.float32(0.0)), log_first, energy, rule, adaptive=True),
        record=Record(),
        album=Album(min(settings.configurations, space)),
        prior={"energy": energy} | seen,
        drawn=drawn,
        undefined=undefined,
    )


def check_ranks(energy: np.ndarray, settings: NestedSettings) -> None:
    """Refuse prior draws among which no wall can be found: too many of equal, or of infinite, energy."""
    for own in energy:
        descending = np.sort(own)[::-1]
        wall = descending[settings.births - 1]
        tied = int((own == wall).sum()) - 1
        if not np.isfinite(wall) or tied > TIED_SHARE * settings.births:
            raise ValueError(
                f"nested ranks prior draws by their energy, but {tied + 1} of {len(own)} have the same energy {wall:g}, so "
                "that the volume below it is not known; use qp.quench, which measures its volumes"
            )


def advance(model: ProblemView, settings: NestedSettings, course: Descent) -> None:
    """One block of levels: to the device and back, and into the record up to the level at which the last replica ends."""
    kept = min(KEPT, settings.births)
    steps = moves(settings, math.prod(model.shape))
    course.keys, course.live, block = descend(
        model.as_argument(), course.keys, course.live, settings.births, steps, kept, BLOCK
    )
    block = jax.tree.map(lambda array: array.swapaxes(0, 1), to_host(block))
    evidence, log_ratio = course.evidence, log_compression(settings.particles, settings.births)[0]
    particle = np.broadcast_to(np.arange(kept, dtype=np.int32), (settings.replicas, kept))
    first, log_volume = evidence.levels, []
    for k in range(BLOCK):
        if not evidence.running.size:
            break
        at: Any = jax.tree.map(lambda array, k=k: array[k], block)
        course.album.offer(evidence.levels, particle, at.configurations)
        running = evidence.running
        log_volume.append(evidence.add(standing(at, evidence, settings, log_ratio)))
        drop_tied(at, evidence, running, settings)
    births = np.full_like(block.energy, -math.log(settings.births))
    rows = {
        "parameter": block.parameter,
        "log_volume": np.array(log_volume),
        "energy": block.energy,
        "log_weight": births,
        "parent": block.parent,
        **{name: getattr(block, name) for name in ("acceptance", "displacement", "correlation", "lineages")},
        "evaluations": block.evaluations.astype(np.int64),
        **{f"{PREFIX}{name}": value for name, value in block.observables.items()},
    }
    recorded = {name: np.array(value[: len(log_volume)]) for name, value in rows.items()}
    course.record.extend(**blanked(recorded, first, evidence.level_count))


def drop_tied(at: Level, evidence: Evidence, running: np.ndarray, settings: NestedSettings) -> None:
    """End replicas whose live points can no longer be ranked at the wall before, whose births cover all that is below it.

    At the bottom of the energy, flat or as far as single precision tells energies apart, nothing is missing: converged.
    """
    for r in running[at.at_wall[running] > TIED_SHARE * settings.births]:
        evidence.level_count[r] -= 1
        left = float(at.parameter[r] - at.live_energy[r].min())
        if left < max(BOTTOM, settings.particles * float(np.spacing(np.abs(at.parameter[r])))):
            evidence.outcomes[r] = Outcome.CONVERGED


def standing(at: Level, evidence: Evidence, settings: NestedSettings, log_ratio: float) -> Any:
    """A level as `Evidence` reads it: the live points with equal weights; too many at the wall, and it was not lowered."""
    tied = at.at_wall > TIED_SHARE * settings.births
    finite = np.isfinite(at.live_energy)
    return SimpleNamespace(
        parameter=np.where(tied, evidence.parameter, at.parameter),
        energy=at.live_energy,
        log_weight=np.where(finite, -np.log(finite.sum(axis=1, keepdims=True)), -np.inf),
        log_ratio=log_ratio,
        acceptance=at.acceptance,
        # In units of the spread over modes that lie apart, moves within one may be small and are moves all the same.
        displacement=np.sign(at.displacement),
    )


def show(display: Meter, evidence: Evidence) -> None:
    """Progress, as averages over replicas."""
    display.update(
        evidence.levels,
        float(evidence.parameter.mean()),
        1.0,
        float(evidence.log_volume.mean()),
        evidence.remaining,
    )


def remembers(model: ProblemView, settings: NestedSettings, levels: xr.Dataset) -> bool:
    """Whether births remember too much between phases, though replicas may agree: they are wrong in the same way.

    Births that are still like their relatives among the live points take part, through these, in the covariance that shapes
    their own moves, with a weight D/N.  On 8 x 8 sites of phi^6 with a thousand live points log Z was 2 nats too high, in
    replicas that agreed; on a ring of 6 with 500, whose quantities are as slow, it is right.
    """
    few = settings.particles < ENOUGH * math.prod(model.shape)
    names = [str(name) for name in levels["quantity"].values]
    return few and len(model.phases) > 1 and slowest_quantity(levels["correlation"].values, names).share > LARGEST_SHARE


def assemble(model: ProblemView, settings: NestedSettings, course: Descent, seconds: float) -> Ladder:
    """The ladder of a run in which every replica has ended."""
    arrays = course.record.finish(course.evidence.levels)
    count = course.evidence.level_count
    levels = levels_of("nested", arrays, count)
    variance = log_compression(settings.particles, settings.births)[1]
    spread = np.sqrt(variance * np.arange(1, levels.sizes["level"] + 1))
    levels["log_volume_err"] = xr.where(np.isfinite(levels["log_volume"]), spread, np.nan)
    evaluations = float(levels["evaluations"].clip(min=0).sum())
    groups = {
        "levels": levels,
        "particles": particles_of(arrays),
        "prior": xr.Dataset({name: (("replica", "draw"), value) for name, value in course.prior.items()}),
        "configurations": configurations_of(model, course),
    }
    outcome: Outcome = judge(model, course, groups["levels"], groups["particles"], groups["prior"])
    if outcome.trusted and remembers(model, settings, groups["levels"]):
        outcome = Outcome.LAGGED
    own = asdict(settings) | {"steps": moves(settings, math.prod(model.shape)), "births": settings.births}
    root = xr.Dataset(
        attrs={
            "format": LADDER_FORMAT,
            "method": "nested",
            "softness": 0.0,
            "live_points": settings.particles,
            "outcome": outcome.value,
            "replica_outcomes": json.dumps([o.value for o in course.evidence.outcomes if o]),
            "undefined_draws": int(course.undefined.sum()),
            "seed": settings.seed,
            **problem_attributes(model),
            "settings": json.dumps(own),
            "gradients": 0.0,
            "evaluations": evaluations + settings.replicas * settings.particles,
            "wall_time": seconds,
            **software_attributes(),
            "devices": "1 x 1",
        }
    )
    labels = {group: labelled(data, LADDER, group) for group, data in groups.items()}
    return Ladder(xr.DataTree.from_dict({"/": root, **labels}))
