"""The parts of Z above and below a level, against the integral they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special

from quenchphys.smc.tails import log_lower_tail, log_upper_tail


@pytest.mark.parametrize("softness", [-0.5, 0.0, 2.0, 30.0])
def test_tails_are_shares_of_the_gamma_integral(softness):
    for x in (0.3, 5.0, 40.0):
        above, _ = integrate.quad(lambda t: np.exp(softness * np.log(t) - t - special.gammaln(softness + 1)), x, np.inf)
        assert np.exp(log_upper_tail(softness, x)) == pytest.approx(above, abs=1e-7)
        assert np.exp(log_lower_tail(softness, x)) == pytest.approx(1 - above, abs=1e-7)


def test_beyond_the_level():
    np.testing.assert_array_equal(log_upper_tail(2.0, np.array([-np.inf, -3.0, 0.0])), 0.0)
    assert log_lower_tail(2.0, np.float64(0.0)) == -np.inf
    assert log_upper_tail(2.0, np.float64(1e5)) == -np.inf
