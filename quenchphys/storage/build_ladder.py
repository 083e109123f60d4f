"""How the record of a run becomes a `Ladder`: labelled arrays, an outcome, and everything needed to repeat the run."""

from __future__ import annotations

import json
import math
from typing import Protocol

import numpy as np
import xarray as xr

from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.problem import ProblemView
from quenchphys.smc.assignment import Assignment, Machine, plain
from quenchphys.smc.evidence import Evidence
from quenchphys.smc.lag import lags, replica_scatter, slowest_quantity
from quenchphys.smc.levels import Family, SoftLevels
from quenchphys.smc.run_state import RunState
from quenchphys.storage.album import Album
from quenchphys.storage.attributes import problem_attributes, software_attributes
from quenchphys.storage.schema import LADDER, LADDER_FORMAT, labelled
from quenchphys.storage.streaming import blocks, release

# A NaN among a thousand proposals, over some levels, is no accident of one diverging trajectory.
UNDEFINED_SHARE, UNDEFINED_LEVELS = 1e-3, 16
# A phase was reached if at some level, or among the prior draws, it had this share of the weight.
MET_SHARE = 0.1
PREFIX = "observable "  # of observables in the record


class Course(Protocol):
    """What a ladder is made of besides its record: of a `RunState`, or of nested sampling."""

    evidence: Evidence
    album: Album
    drawn: np.ndarray
    undefined: np.ndarray


def assemble(work: Assignment, machine: Machine, course: RunState, seconds: float) -> Ladder:
    """The ladder of a run in which every replica has ended, after so many seconds."""
    arrays = course.record.finish(course.evidence.levels)
    groups = {
        "levels": levels_of(work.method, arrays, course.evidence.level_count),
        "particles": particles_of(arrays),
        "prior": xr.Dataset({name: (("replica", "draw"), value) for name, value in course.prior.items()}),
        "configurations": configurations_of(work.problem, course),
    }
    outcome = judge(work.problem, course, groups["levels"], groups["particles"], groups["prior"])
    gradients = float(groups["levels"]["transitions"].clip(min=0).sum()) * machine.plan.kernel.gradients()
    root = xr.Dataset(
        attrs={
            "format": LADDER_FORMAT,
            "method": work.method,
            "softness": softness_of(work.family),
            "outcome": outcome.value,
            "replica_outcomes": json.dumps([o.value for o in course.evidence.outcomes if o]),
            "undefined_draws": int(course.undefined.sum()),
            "seed": int(work.settings.seed),
            **problem_attributes(work.problem),
            "settings": json.dumps(plain(work.settings)),
            "gradients_per_level": gradients / max(int(course.evidence.level_count.sum()), 1),
            "gradients": gradients * machine.plan.particles,
            "wall_time": seconds,
            **software_attributes(),
            "devices": f"{machine.mesh.shape['replica']} x {machine.mesh.shape['particle']}",
        }
    )
    labels = {group: labelled(data, LADDER, group) for group, data in groups.items()}
    return Ladder(xr.DataTree.from_dict({"/": root, **labels}))


def judge(
    problem: ProblemView, course: Course, levels: xr.Dataset, particles: xr.Dataset, draws: xr.Dataset
) -> Outcome:
    """The outcome of the whole: the worst thing that happened to any replica."""
    outcomes = [o for o in course.evidence.outcomes if o]
    if course.undefined.any() or ("undefined" in levels and _undefined_proposals(levels["undefined"])):
        return Outcome.UNDEFINED_ENERGY
    for bad in (Outcome.FROZEN, Outcome.LEVEL_LIMIT, Outcome.TIME_LIMIT):
        if bad in outcomes:
            return bad
    for observable, low, high in problem.phases.values():
        share = _largest_share(particles["log_weight"].values, particles[observable].values, low, high)
        among_draws = ((draws[observable] >= low) & (draws[observable] < high)).mean("draw").values
        if bool((np.maximum(share, among_draws) < MET_SHARE).any()):
            return Outcome.MISSED_PHASE
    names = [str(name) for name in levels["quantity"].values]
    if len(problem.phases) > 1:
        parameter = "energy" if "energy" in levels else "beta"
        ends = levels[parameter].values, levels["log_volume"].values, levels["level_count"].values
        if lags(slowest_quantity(levels["correlation"].values, names), replica_scatter(*ends)):
            return Outcome.LAGGED
    return outcomes[0]


def _undefined_proposals(share: xr.DataArray) -> bool:
    """Whether too many proposals in a stretch of levels had an undefined energy."""
    return bool((share.coarsen(level=UNDEFINED_LEVELS, boundary="pad").mean() > UNDEFINED_SHARE).any())


def _largest_share(log_weight: np.ndarray, value: np.ndarray, low: float, high: float) -> np.ndarray:
    """The largest weight of low <= value < high at any level, for each replica."""
    largest = np.zeros(len(value))
    for levels in blocks(log_weight):
        inside = (value[:, levels] >= low) & (value[:, levels] < high)
        share = np.nansum(np.where(inside, np.exp(log_weight[:, levels]), 0.0), axis=2)
        largest = np.maximum(largest, share.max(axis=1))
        release(value)
    return largest


def softness_of(family: Family) -> float:
    """nu of soft levels; NaN for temperatures."""
    return float(family.softness) if isinstance(family, SoftLevels) else math.nan


def levels_of(method: str, arrays: dict[str, np.ndarray], count: np.ndarray) -> xr.Dataset:
    """The levels in a finished record."""
    recorded = {"beta" if method == "temper" else "energy": arrays["parameter"]}
    same = [row for row in LADDER if row.group == "levels" and row.dims == ("replica", "level") and row.name in arrays]
    recorded |= {row.name: arrays[row.name] for row in same if row.name != "energy"}  # in the record, of particles
    levels = xr.Dataset({name: (("replica", "level"), array) for name, array in recorded.items()})
    levels["level_count"] = ("replica", count)
    levels["correlation"] = (("replica", "level", "quantity"), arrays["correlation"])
    return levels.assign_coords(quantity=["energy", *sorted(_observables(arrays))])


def particles_of(arrays: dict[str, np.ndarray]) -> xr.Dataset:
    """The particles in a finished record."""
    own = {name: arrays[name] for name in ("energy", "log_weight", "parent")}
    dims = ("replica", "level", "particle")
    return xr.Dataset({name: (dims, array) for name, array in (own | _observables(arrays)).items()})


def _observables(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}


def configurations_of(problem: ProblemView, course: Course) -> xr.Dataset:
    """Prior draws first, as of level -1, then particles of the levels."""
    level, particle, field = course.album.finish()
    # A replica that ended before the level of a picture has none there.
    ended = level[None, :] >= course.evidence.level_count[:, None]
    field = np.where(ended.reshape(ended.shape + (1,) * (field.ndim - 2)), np.nan, field)
    draw = np.broadcast_to(np.arange(course.drawn.shape[1], dtype=np.int32), course.drawn.shape[:2])
    levels = np.concatenate([np.full_like(draw, -1), np.where(ended, -1, level)], axis=1)
    particles = np.concatenate([draw, np.where(ended, -1, particle)], axis=1)
    return xr.Dataset(
        {
            "field": (("replica", "sample", *problem.dims), np.concatenate([course.drawn, field], axis=1)),
            "level": (("replica", "sample"), levels),
            "particle": (("replica", "sample"), particles),
        }
    )


