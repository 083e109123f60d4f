"""Walkers between two phases: from the configurations of a pilot ladder, with the weight it found, part after part."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import observables
from observables.samples.of_walks import crossings, respread, spread_starts
from workflows.budget import MOST_PARTS, PARTS, WalkSettings
from workflows.coexistence_point.describe import ENOUGH_CROSSINGS, FEWEST_CROSSINGS, Ends, Phases
from workflows.store import Study

Weight = tuple[np.ndarray, np.ndarray]  # energies, log w
PRIOR_SHARE = 0.1  # of the walk among draws from the prior, on which log Z rests
FORGETTING = 0.2  # share of a walk with a weight that was improved twice, in which the old one is forgotten


def walk(
    study: Study,
    settings: WalkSettings,
    problem: Any,
    name: str,
    pilot: observables.Pool,
    ends: Ends,
    phases: Phases,
) -> list[xr.Dataset]:
    """What they saw with the weight they have in the end.

    After the first part, in which they forget where they came from, they improve their weight.  They walk as many sweeps
    as they were given; if by then they have hardly crossed they improve it again, by all they saw, and walk on, up to nine
    times as many sweeps in all, until they have crossed often enough.  They begin that walk spread over the energies as
    the new weight will have them, because where the old one put them they would forget only by crossing; its first fifth
    is not counted either.
    """
    start: Any = spread_starts(pilot.ladders[0], ends.low, ends.high, settings.groups, settings.chains, settings.seed)
    weight = observables.flat_weight(pilot, ends.low, ends.high)
    wanted = energies_wanted(pilot)
    walks: list[xr.Dataset] = []
    forgetting = 0.0  # share of the walks that is not counted
    for part in range(MOST_PARTS):
        words = f"walkers: part {part + 1} of {max(part + 1, PARTS)}"

        def go(start: Any = start, part: int = part, weight: Weight = weight) -> xr.Dataset:
            return settings.walk(problem, start, weight, part)

        start = study.dataset(f"walk{part}_{name}", words, go)
        walks.append(start)
        counted = walks[int(forgetting * len(walks)) :]
        crossed = crossings(counted, phases.by, ends.inner)
        often = crossed.mean() >= ENOUGH_CROSSINGS and crossed.min() >= FEWEST_CROSSINGS
        if part > 0:
            size = f"{settings.groups} x {settings.chains}"
            study.message(f"{words}, {size}: {int(crossed.sum())} crossings from phase to phase so far")
        if part == 0 or (part == PARTS - 1 and not often):
            weight = observables.flattened(xr.concat([walk[["energy"]] for walk in walks], "sweep"), *weight, like=wanted)
            if part > 0:
                start, forgetting = start.assign(last=(start["last"].dims, respread(walks, wanted))), FORGETTING
            walks = []
        elif len(walks) >= PARTS - 1 and often:
            break
    return counted


def energies_wanted(pool: observables.Pool) -> np.ndarray:
    """Those at which the pilot had particles, and a tenth as many of its draws from the prior."""
    prior, levels = (
        np.concatenate([np.ravel(getattr(replica, name)) for replica in pool.replicas])
        for name in ("prior_energy", "particle_energy")
    )
    return np.concatenate([np.resize(prior, int(PRIOR_SHARE * levels.size)), levels])
