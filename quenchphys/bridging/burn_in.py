"""Burn-in of the chains of a bridge: step sizes, lengths of trajectories, and enough time to forget the start.

Chains start from the prior, a phase away from where some of them end.  Their memory is measured, not assumed: tau, the
integrated autocorrelation time of the energy and of every observable, at every beta.

    tuning      step sizes; where tau is long, trajectories are made longer, which costs less than more of them
    burn-in     without tuning, until it has lasted FORGOTTEN times the longest tau seen in it
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from quenchphys.autocorrelation import integrated_time
from quenchphys.bridging.chains import SWEEPS, Chains, Samples

LONG = 3.0  # tau of the energy in trajectories, above which longer ones pay
GAIN = 1.4  # tau falls by 2^1.4 when a trajectory is doubled, as long as it moves in one direction
MOST_DOUBLINGS = 3
SEEN = 64  # trajectories, from which tau is measured first
FORGOTTEN = 8.0  # times tau, which is twice the time in which correlations fall by e: what is left of the start is 1e-7
LONGEST = 1024  # trajectories of burn-in


def settle(chains: Chains, least: int, stop: Callable[[], None]) -> bool:
    """Burn in chains that were started, tuning them for at least `least` trajectories; whether they forgot their start.

    `stop` is called after each device call, to raise if the user wants to stop.
    """
    _advance(chains, least, True, stop)
    energy = _advance(chains, SEEN, False, stop).energy
    tau = np.array([np.nan_to_num(integrated_time(level.T), nan=1.0) for level in energy])
    doublings = np.clip(np.round(np.log2(tau / LONG) / GAIN), 0, MOST_DOUBLINGS).astype(int)
    if doublings.any():
        chains.lengthen(2**doublings)
        _advance(chains, least, True, stop)
    needed, done = SEEN, 0
    while done < needed <= LONGEST:
        seen = _advance(chains, needed - done, False, stop)
        done += seen.energy.shape[-1]
        needed = math.ceil(FORGOTTEN * taus(seen).max())
    return needed <= LONGEST


def _advance(chains: Chains, trajectories: int, tune: bool, stop: Callable[[], None]) -> Samples:
    parts = []
    for _ in range(math.ceil(trajectories / SWEEPS)):
        parts.append(chains.advance(tune))
        stop()
    return Samples.joined(parts)


def taus(samples: Samples) -> np.ndarray:
    """The longest tau of the energy and of any observable at every level; 1 where nothing ever changes."""
    values = [samples.energy, *samples.observables.values()]  # (level, group, sweep)
    found = [[integrated_time(value[level].T) for value in values] for level in range(len(samples.energy))]
    return np.nanmax(np.nan_to_num(found, nan=1.0), axis=1)
