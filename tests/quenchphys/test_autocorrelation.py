"""Integrated autocorrelation times of processes with known ones."""

import numpy as np
import pytest

from quenchphys.autocorrelation import integrated_time


def test_autocorrelation_of_a_known_process():
    """x_t = a x_{t-1} + noise has tau = (1 + a)/(1 - a)."""
    rng = np.random.default_rng(1)
    a, x = 0.8, np.zeros((4000, 16))
    for t in range(1, len(x)):
        x[t] = a * x[t - 1] + rng.standard_normal(16)
    assert integrated_time(x[100:]) == pytest.approx(9.0, rel=0.1)
    assert integrated_time(rng.standard_normal((1000, 8))) == pytest.approx(1.0, abs=0.1)
    assert np.isnan(integrated_time(np.ones((10, 2))))
