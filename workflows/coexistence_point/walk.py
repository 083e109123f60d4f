"""Multicanonical chains between two phases: from the configurations of a pilot ladder, with its weight, part after part."""

from __future__ import annotations

from typing import Any

import numpy as np

import observables
from observables.phases import TwoPhases
from observables.samples.of_walks import crossings, respread, spread_starts
from quenchphys.console.progress import WalkMeter
from quenchphys.walk import Walk, joined
from workflows.budget import MOST_PARTS, PARTS, Use, WalkSettings, seed_of
from workflows.coexistence_point.describe import ENOUGH_CROSSINGS, FEWEST_CROSSINGS, Ends, memory
from workflows.store import Study

Weight = tuple[np.ndarray, np.ndarray]  # energies, log w
PRIOR_SHARE = 0.1  # of the walk spent among draws from the prior, on which log Z rests
BURN_IN_SHARE = 0.2  # of a walk whose weight was improved a second time, that is not counted at least
# times tau, after which a start is forgotten: four relaxation times, since tau is twice such a time
FORGOTTEN = 2.0


def run_chains(
    study: Study,
    settings: WalkSettings,
    problem: Any,
    name: str,
    pilot: observables.Pool,
    ends: Ends,
    phases: TwoPhases,
) -> list[Walk]:
    """The parts of the walk that count: those with the final weight, after burn-in.

    The weight is improved after the first part, which is burn-in.  What the chains remember of their start under the new
    weight is not counted either: FORGOTTEN times tau, the autocorrelation time of U and of the order parameter, to the
    nearest part.  They run on until as many sweeps are counted as were asked for.  If by the last part they have hardly
    crossed, the weight is improved again, by all parts so far, and they run on, up to nine times as many sweeps in all,
    until they have crossed often enough.  They start again spread over the energies as the new weight will have them,
    because the distribution of the old one would be forgotten only by crossing; at least the first fifth is burn-in.
    """
    start: np.ndarray | Walk = spread_starts(
        pilot.ladders[0], ends.low, ends.high, settings.groups, settings.chains, seed_of(settings.seed, Use.STARTS)
    )
    weight = observables.flat_weight(pilot, ends.low, ends.high)
    wanted = energies_wanted(pilot)
    walks: list[Walk] = []
    meter = WalkMeter(study.display, settings.sweeps_until(PARTS))
    share = 0.0  # of the walks that is not counted at least
    expected, so_far = PARTS, ""
    for part in range(MOST_PARTS):
        words = f"part {part + 1} of {'about ' if expected > PARTS else ''}{expected}"

        def go(start: np.ndarray | Walk = start, part: int = part, weight: Weight = weight) -> Walk:
            return settings.walk(problem, start, weight, part, meter)

        meter.part(settings.sweeps_until(part), settings.sweeps_until(expected), words + so_far)
        start = study.walk(f"walk{part}_{name}", "", go, problem)
        walks.append(start)
        burn_in = max(int(share * len(walks)), parts_forgotten(walks, phases.by))
        enough = len(walks) - burn_in >= PARTS - 1
        counted = walks[burn_in if enough else min(burn_in, len(walks) // 2) :]
        crossed = crossings(counted, phases.by, ends.inner)
        often = crossed.mean() >= ENOUGH_CROSSINGS and crossed.min() >= FEWEST_CROSSINGS
        if part > 0:
            so_far = f", {int(crossed.sum())} crossings from phase to phase"
            expected = expected_parts(part, crossed.mean() / len(counted), burn_in)
        if part == 0 or (part == PARTS - 1 and not often):
            weight = observables.flattened(joined(walks), like=wanted)
            if part > 0:
                start, share = start.restarted(respread(walks, wanted)), BURN_IN_SHARE
            walks = []
        elif enough and often:
            break
    study.message(f"chains: {part + 1} parts, {settings.groups} x {settings.chains}{so_far}")
    study.analyse()
    return counted


def parts_forgotten(walks: list[Walk], by: str) -> int:
    """Parts of a walk with one weight in which chains remember their start, to the nearest."""
    return round(FORGOTTEN * memory(walks, by) / walks[-1].energy.shape[1])


def expected_parts(part: int, crossings_per_part: float, burn_in: int) -> int:
    """Parts that the walk will have, from how often a group crosses in one of them; only the display needs it."""
    if (PARTS - 1) * crossings_per_part >= ENOUGH_CROSSINGS and part < PARTS + burn_in:
        return min(PARTS + burn_in, MOST_PARTS)
    after_burn_in = ENOUGH_CROSSINGS / max(crossings_per_part, ENOUGH_CROSSINGS / MOST_PARTS) / (1 - BURN_IN_SHARE)
    return int(np.clip(PARTS + round(after_burn_in), part + 2, MOST_PARTS))


def energies_wanted(pool: observables.Pool) -> np.ndarray:
    """Energies of the pilot's particles, and a tenth as many of its draws from the prior."""
    prior = np.concatenate([np.ravel(replica.prior_energy) for replica in pool.replicas])
    levels = np.concatenate([np.ravel(replica.particle_energy) for replica in pool.replicas])
    return np.concatenate([np.resize(prior, int(PRIOR_SHARE * levels.size)), levels])
