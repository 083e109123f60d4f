"""Lag of a ladder: how well its particles forget a level before they are moved to the next.

A population that is still correlated with the level above represents its own level by few independent particles, however
many there are.  In the mixed region of a first-order transition that is what limits a ladder: energy and order parameter
relax at once, but the shape of a droplet or strip does not, and volumes come out wrong by more than replicas show.  Phi^6
at 8 x 400 particles, largest correlation of any recorded quantity (the structure factor s_min) and log odds at coexistence:

    L = 8   0.23   -0.01(3)        L = 24   0.78   +0.12(9)
    L = 16  0.50   -0.09(7)        L = 40   0.84   -0.30(19), exact +0.07(3)

A quantity that is slow at one place of the ladder, as the spike of a spike and slab is where the phases change, does no
harm; one that is slow over a large part of it does: a correlation above 0.7 over 0, 0, 20% and 40% of the levels of these
four ladders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

STRETCHES = 20  # over which correlations are averaged, each a part of the ladder
SLOW = 0.7  # correlation over a level above which a quantity is slow
LARGEST_SHARE = 0.3  # of the levels at which a quantity may be slow


class Slowest(NamedTuple):
    """The quantity that is slow at most levels."""

    quantity: str
    share: float
    """Share of the levels at which its correlation is above SLOW."""
    correlation: float
    """Its largest correlation."""
    level: int
    """Where that is."""

    @property
    def lags(self) -> bool:
        """Whether volumes are not to be trusted."""
        return self.share > LARGEST_SHARE


def slowest_quantity(correlation: np.ndarray, names: Sequence[str]) -> Slowest:
    """The quantity that is slow at most levels: correlations before and after mutation, averaged over stretches of levels.

    Parameters
    ----------
    correlation
        (replica, level, quantity), NaN where a replica has ended or a quantity does not vary.
    names
        Names of the quantities.

    Returns
    -------
    Slowest
        Where several are slow at as many levels, the one with the largest correlation.
    """
    levels = correlation.shape[1]
    width = max(1, levels // STRETCHES)
    stretches = [slice(begin, begin + width) for begin in range(0, levels - width + 1, width)]
    averages = np.array([np.nan_to_num(correlation[:, part]).mean(axis=(0, 1)) for part in stretches])
    share = (averages > SLOW).mean(axis=0)
    which = int(np.lexsort((averages.max(axis=0), share))[-1])
    where = int(np.argmax(averages[:, which]))
    return Slowest(str(names[which]), float(share[which]), float(averages[where, which]), where * width + width // 2)
