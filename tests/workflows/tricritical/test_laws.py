"""The tricritical coupling from synthetic jumps and cumulants, of which it is known."""

from __future__ import annotations

import numpy as np
import pytest

from workflows.tricritical.laws import from_cumulants, from_jumps

LAM_T = -0.8
LAMS = np.array([-1.0, -0.95, -0.9, -0.875, -0.85])
ERRORS = 4.0  # within which an answer must lie


def _jumps(seed: int, relative: float = 2e-3) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Two jumps with different corrections, one with the square of the irrelevant field."""
    rng = np.random.default_rng(seed)
    away = LAM_T - LAMS
    exact = {"q": (20 * away * (1 + 2 * away)) ** 0.25, "u": (3 * away * (1 + 3 * away + 9 * away**2.5)) ** 0.25}
    return {
        name: (y * (1 + relative * rng.normal(size=len(y))), relative * y) for name, y in exact.items()
    }  # fmt: skip


def test_jumps_vanish_at_the_tricritical_coupling() -> None:
    found = from_jumps(LAMS, _jumps(0))
    assert abs(found.value - LAM_T) < ERRORS * found.error
    assert found.error < 0.03


def test_errors_of_jumps_are_of_the_right_size() -> None:
    """z-scores of many synthetic data sets, both jumps of each with the same noise, as they have it in a run."""
    z = []
    for seed in range(12):
        found = from_jumps(LAMS, {"q": _jumps(seed)["q"]})
        z.append((found.value - LAM_T) / found.error)
    assert 0.3 < np.sqrt(np.mean(np.square(z))) < 1.6


def test_a_law_without_its_leading_term_is_no_answer() -> None:
    """Jumps of mean field, D^(1/2), have no D^(1/4): their fourth powers are a parabola with its vertex at lam_t."""
    away = LAM_T - LAMS
    y = (5 * away) ** 0.5
    with pytest.raises(ValueError, match="do not vanish anywhere near"):
        from_jumps(LAMS, {"q": (y, 1e-3 * y)})


def test_order_of_couplings_does_not_matter() -> None:
    jumps, back = _jumps(1), slice(None, None, -1)
    turned = {name: (value[back], error[back]) for name, (value, error) in jumps.items()}
    assert from_jumps(LAMS[back], turned).value == pytest.approx(from_jumps(LAMS, jumps).value, abs=1e-6)


def test_jumps_that_grow_are_refused() -> None:
    grown = {"q": (1 + LAMS - LAMS.min(), np.full(len(LAMS), 1e-3))}
    with pytest.raises(ValueError, match="do not vanish anywhere near"):
        from_jumps(LAMS, grown)


def _cumulants(seed: int, error: float = 3e-3) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """U = P(x) + C/L at five sizes and six couplings."""
    rng = np.random.default_rng(seed)
    lam, size = (a.ravel() for a in np.meshgrid(np.linspace(-0.86, -0.74, 5), [8.0, 12.0, 16.0, 24.0, 32.0]))
    x = (lam - LAM_T) * size**0.8
    u = 0.4 + 0.12 * x - 0.015 * x**2 - 0.6 / size
    return lam, size, u + error * rng.normal(size=len(u)), np.full(len(u), error)


@pytest.mark.parametrize("slope", [0.0, 1.0])
def test_cumulants_agree_at_the_tricritical_coupling(slope: float) -> None:
    """With and without a correction that changes with lam."""
    lam, size, u, error = _cumulants(0)
    found = from_cumulants(lam, size, u + slope * (lam - LAM_T) * size**0.8 / size, error)
    assert abs(found.value - LAM_T) < ERRORS * found.error
    assert found.error < 0.02
    assert found.best.p_value > 0.001


def test_errors_of_cumulants_are_of_the_right_size() -> None:
    """z-scores of many synthetic data sets."""
    found = [from_cumulants(*_cumulants(seed)) for seed in range(12)]
    z = np.array([(one.value - LAM_T) / one.error for one in found])
    assert 0.3 < np.sqrt((z**2).mean()) < 1.6


def test_cumulants_that_agree_nowhere_follow_no_law() -> None:
    """They cross far away from all couplings: the best fit says so, and two couplings are too few for any."""
    lam, size, _, error = _cumulants(0)
    apart = 0.4 + 0.12 * (lam + 0.4) * size**0.8
    assert from_cumulants(lam, size, apart, error).best.p_value < 1e-9
    ends = np.isin(lam, (lam.min(), lam.max()))
    with pytest.raises(ValueError, match="agree nowhere"):
        from_cumulants(lam[ends], size[ends], apart[ends], error[ends])
