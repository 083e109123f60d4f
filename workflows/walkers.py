"""Walkers between two phases: from the configurations of a pilot ladder, with the weight it found, part after part."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from observables.walks import crossings, spread_starts
from workflows.effort import GROUPS, MOST_PARTS, PARTS, WALKERS, Effort
from workflows.phases import ENOUGH_CROSSINGS, Ends, Phases
from workflows.study import Study

Weight = tuple[np.ndarray, np.ndarray]  # energies, log w


def walk(
    study: Study,
    effort: Effort,
    problem: Any,
    name: str,
    pilot: qp.Ladder,
    pool: observables.Pool,
    ends: Ends,
    phases: Phases,
) -> list[xr.Dataset]:
    """What they saw, in all parts but the first, in which they forget where they came from and improve their weight.

    They walk as many sweeps as they were given, and on, up to six times as many, until they have crossed often enough.
    """
    start: Any = spread_starts(pilot, ends.low, ends.high, GROUPS, WALKERS, effort.seed)
    weight = observables.flat_weight(pool, ends.low, ends.high)
    seen = np.concatenate([replica.energy for replica in pool.replicas])
    walks: list[xr.Dataset] = []
    crossed = np.zeros(GROUPS)
    for part in range(MOST_PARTS):
        if part >= PARTS and crossed.mean() >= ENOUGH_CROSSINGS:
            break
        words = f"walkers: part {part + 1} of {max(part + 1, PARTS)}"

        def go(start: Any = start, part: int = part, weight: Weight = weight) -> xr.Dataset:
            return effort.walk(problem, start, weight, part)

        done = study.dataset(f"walk{part}_{name}", words, go)
        start = done
        if part == 0:
            weight = observables.flattened(done, *weight, like=seen)
        else:
            walks.append(done)
            crossed = crossings(walks, phases.by, ends.inner)
            count = int(crossed.sum())
            study.narrator.say(f"{words}, {GROUPS} x {WALKERS}: {count} crossings from phase to phase so far")
    return walks
