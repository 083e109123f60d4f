"""Where a ladder lags: quantities that are remembered from level to level over a large part of it."""

from __future__ import annotations

import numpy as np

from quenchphys.smc.lag import slowest_quantity

NAMES = ["energy", "q", "s_min"]


def correlations(slow: float, share: float, levels: int = 200) -> np.ndarray:
    """Everything at 0.2, but s_min at `slow` over a share of the levels; noise, and a replica that ended early."""
    values = np.full((4, levels, 3), 0.2)
    values[:, 40 : 40 + round(share * levels), 2] = slow
    values += np.random.default_rng(0).normal(scale=0.05, size=values.shape)
    values[3, -20:] = np.nan
    return values


def test_a_quantity_slow_over_much_of_the_ladder_lags():
    found = slowest_quantity(correlations(0.85, 0.4), NAMES)
    assert found.quantity == "s_min" and found.lags
    assert abs(found.share - 0.4) <= 0.05 and abs(found.correlation - 0.85) < 0.05
    assert 40 <= found.level < 120


def test_a_quantity_slow_at_one_place_does_not():
    assert not slowest_quantity(correlations(0.95, 0.1), NAMES).lags
    assert not slowest_quantity(correlations(0.6, 0.9), NAMES).lags
