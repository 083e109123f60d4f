"""How the record of a run becomes a `Ladder`: labelled arrays, units, long names, and everything needed to repeat it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr
from jax.sharding import Mesh

from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.problem import ProblemView
from quenchphys.settings import Settings
from quenchphys.smc.evidence import Account
from quenchphys.smc.levels import Family, SoftLevels
from quenchphys.smc.step import Plan
from quenchphys.storage.album import Album
from quenchphys.storage.attributes import kernel_as_json, problem_attributes, software_attributes
from quenchphys.storage.record import Record
from quenchphys.storage.streaming import blocks, release

FORMAT = "quenchphys-ladder"
FORMAT_VERSION = 1

# A NaN among a thousand proposals, over some levels, is no accident of one diverging trajectory.
UNDEFINED_SHARE, UNDEFINED_LEVELS = 1e-3, 16
# A phase was met if at some level, or among the prior draws, it had this share of the weight.
MET_SHARE = 0.1

LONG_NAMES = {
    "energy": "energy of the level, E",
    "beta": "inverse temperature of the stage",
    "log_volume": "log of the volume of the level, log E_prior[f(U)]",
    "acceptance": "mean acceptance probability",
    "step_size": "step size of the kernel, in units of the scale of a coordinate",
    "displacement": "root mean square move of a coordinate in the level, in units of its scale",
    "ess": "effective size of the carried weights, as a fraction of the particles",
    "lineages": "number of distinct ancestors at level 0",
    "resampled": "whether the population was resampled on entering the level",
    "undefined": "share of proposals with undefined (NaN) energy",
    "transitions": "transitions of the kernel at the level",
    "correlation": "correlation of energy and observables of a particle before and after the mutation of the level",
}


def assemble(
    problem: ProblemView,
    method: str,
    family: Family,
    settings: Settings,
    plan: Plan,
    mesh: Mesh,
    account: Account,
    record: Record,
    album: Album,
    prior: dict[str, np.ndarray],
    undefined: np.ndarray,
    begun: float,
) -> Ladder:
    count = account.level_count
    arrays = record.finish(account.levels)
    levels = _levels(arrays, "energy" if method == "quench" else "beta")
    levels["level_count"] = ("replica", count, {"long_name": "number of levels"})
    seen = sorted(name.removeprefix("observable ") for name in arrays if name.startswith("observable "))
    levels["correlation"] = (("replica", "level", "quantity"), arrays["correlation"])
    levels["correlation"].attrs["long_name"] = LONG_NAMES["correlation"]
    levels = levels.assign_coords(quantity=["energy", *seen])
    particles = xr.Dataset(
        {name: (("replica", "level", "particle"), arrays[name]) for name in ("energy", "log_weight", "parent")}
        | {
            name.removeprefix("observable "): (("replica", "level", "particle"), array)
            for name, array in arrays.items()
            if name.startswith("observable ")
        }
    )
    particles["energy"].attrs = {"long_name": "energy of the particle, U", "units": "nats"}
    particles["log_weight"].attrs = {"long_name": "log of the normalised weight carried at the level"}
    particles["parent"].attrs = {"long_name": "index of the parent at the level before; at level 0, of the prior draw"}
    draws = xr.Dataset({name: (("replica", "draw"), value) for name, value in prior.items()})
    draws["energy"].attrs = {"long_name": "energy of the prior draw, U", "units": "nats"}

    gradients = float(levels["transitions"].clip(min=0).sum()) * plan.kernel.gradients()
    outcome = judge(problem, account, levels, particles, draws, undefined)
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset(
                attrs={
                    "format": FORMAT,
                    "format_version": FORMAT_VERSION,
                    "method": method,
                    "softness": float(family.softness) if isinstance(family, SoftLevels) else float("nan"),
                    "outcome": outcome.value,
                    "replica_outcomes": json.dumps([o.value for o in account.outcomes if o]),
                    "undefined_draws": int(undefined.sum()),
                    "seed": int(settings.seed),
                    **problem_attributes(problem),
                    "settings": json.dumps(plain(settings)),
                    "gradients_per_level": gradients / max(int(count.sum()), 1),
                    "gradients": gradients * plan.particles,
                    "wall_time": time.monotonic() - begun,
                    **software_attributes(),
                    "devices": f"{mesh.shape['replica']} x {mesh.shape['particle']}",
                }
            ),
            "levels": levels,
            "particles": particles,
            "prior": draws,
            "configurations": _configurations(problem, album, count),
        }
    )
    return Ladder(tree)


def judge(
    problem: ProblemView,
    account: Account,
    levels: xr.Dataset,
    particles: xr.Dataset,
    draws: xr.Dataset,
    undefined: np.ndarray,
) -> Outcome:
    """The outcome of the whole: the worst thing that happened to any replica."""
    outcomes = [o for o in account.outcomes if o]
    proposals = levels["undefined"].coarsen(level=UNDEFINED_LEVELS, boundary="pad").mean()
    if undefined.any() or bool((proposals > UNDEFINED_SHARE).any()):
        return Outcome.UNDEFINED_ENERGY
    for bad in (Outcome.FROZEN, Outcome.LEVEL_LIMIT, Outcome.TIME_LIMIT):
        if bad in outcomes:
            return bad
    for observable, low, high in problem.phases.values():
        share = _largest_share(particles["log_weight"].values, particles[observable].values, low, high)
        among_draws = ((draws[observable] >= low) & (draws[observable] < high)).mean("draw").values
        if bool((np.maximum(share, among_draws) < MET_SHARE).any()):
            return Outcome.MISSED_PHASE
    return outcomes[0]


def _largest_share(log_weight: np.ndarray, value: np.ndarray, low: float, high: float) -> np.ndarray:
    """The largest weight of low <= value < high at any level, for each replica."""
    largest = np.zeros(len(value))
    for levels in blocks(log_weight):
        inside = (value[:, levels] >= low) & (value[:, levels] < high)
        share = np.nansum(np.where(inside, np.exp(log_weight[:, levels]), 0.0), axis=2)
        largest = np.maximum(largest, share.max(axis=1))
        release(value)
    return largest


def _levels(arrays: dict[str, np.ndarray], parameter: str) -> xr.Dataset:
    named = {
        parameter if name == "parameter" else name: name
        for name in (
            "parameter",
            "log_volume",
            "acceptance",
            "step_size",
            "displacement",
            "ess",
            "lineages",
            "resampled",
            "undefined",
            "transitions",
        )
    }
    levels = xr.Dataset(
        {label: (("replica", "level"), arrays[name], {"long_name": LONG_NAMES[label]}) for label, name in named.items()}
    )
    if parameter == "energy":
        levels["energy"].attrs["units"] = "nats"
    return levels


def _configurations(problem: ProblemView, album: Album, count: np.ndarray) -> xr.Dataset:
    level, particle, field = album.finish()
    dims = problem.dims
    # A replica that ended before the level of a picture has none there.
    ended = level[None, :] >= count[:, None]
    field = np.where(ended.reshape(ended.shape + (1,) * (field.ndim - 2)), np.nan, field)
    return xr.Dataset(
        {
            "field": (("replica", "sample", *dims), field, {"long_name": "configuration"}),
            "level": (("replica", "sample"), np.where(ended, -1, level), {"long_name": "level of the configuration"}),
            "particle": (("replica", "sample"), np.where(ended, -1, particle), {"long_name": "particle it is"}),
        }
    )


def plain(settings: Settings) -> dict[str, Any]:
    return {k: v for k, v in asdict(settings).items() if k != "kernel"} | {"kernel": kernel_as_json(settings.kernel)}
