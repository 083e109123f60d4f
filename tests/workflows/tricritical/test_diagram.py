"""The phase diagram: what it refuses, how the line is followed, what is doubted, and one small study."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import lattices
import quenchphys as qp
import workflows
from workflows.results import draw, summary
from workflows.tricritical.diagram import _doubts, add_tricritical
from workflows.tricritical.first_order_line import slope_of
from workflows.tricritical.fixed_ratio import predicted, ratio_and_slope
from workflows.tricritical.laws import Fit, Found

LAM_T = -0.8


def _tables(shift: float = 0.0) -> xr.Dataset:
    """Exact tables of a diagram; `shift` moves the coupling at which the sizes agree."""
    first, lam, size = (
        np.array([-1.0, -0.95, -0.9, -0.85]),
        np.array([-0.88, -0.84, -0.8, -0.76]),
        np.array([8, 16, 32]),
    )
    x = (lam[:, None] - LAM_T - shift) * size**0.8
    columns = {
        "mu2_coexistence": ("first_order", 2.28 + 4.5 * (first + 1)),
        "jump_q": ("first_order", (20 * (LAM_T - first)) ** 0.25),
        "jump_energy": ("first_order", (3 * (LAM_T - first)) ** 0.25),
        "binder": (("lam", "size"), 0.4 + 0.1 * x - 0.5 / size),
        "mu2_crossing": ("lam", 1.4 - 4 * (lam + 0.8)),
        "gamma_over_nu": ("lam", 1.85 - 0.5 * (lam + 0.8)),
        "inverse_nu": ("lam", 1.8 - 2 * (lam + 0.8)),
    }
    result = xr.Dataset(coords={"first_order": first, "lam": lam, "size": size})
    for name, (dims, value) in columns.items():
        result[name], result[f"{name}_err"] = (dims, value), (dims, 0.002 + 0 * value)
    result["bridged"] = ("first_order", [1, 1, 0, 0])
    return result


def test_both_ways_find_the_point() -> None:
    result = _tables()
    assert add_tricritical(result) == []
    for name in ("lam_jumps", "lam_sizes", "lam_tricritical"):
        assert abs(float(result[name]) - LAM_T) < 2 * float(result[f"{name}_err"])
    assert float(result["gamma_over_nu_tricritical"]) == pytest.approx(1.85, abs=0.02)
    assert float(result["distance"]) < 1


def test_ways_that_disagree_are_doubted() -> None:
    result = _tables(shift=-0.06)
    assert "errors apart" in " ".join(add_tricritical(result))


def test_averages_that_agree_by_the_spread_of_their_fits_alone_are_doubted() -> None:
    result = _tables()
    add_tricritical(result)
    sizes = Found(LAM_T, 0.002, Fit(LAM_T, 0.002, 1.0, 5, 0, 3))

    def said(best: float) -> str:
        return " ".join(_doubts(result, Found(LAM_T, 0.03, Fit(best, 0.002, 1.0, 2, 0, 3)), sizes, 0.5))

    assert "10.6 errors apart: both ways agree only because" in said(LAM_T - 0.03)
    assert said(LAM_T + 0.002) == ""


def test_table_and_figure() -> None:
    result = _tables()
    add_tricritical(result)
    result = result.assign_attrs(workflow="phase_diagram", trusted=1, why="", problem="phi6", couplings="{}", seed=0)
    text = summary(result)
    assert "lam, jumps vanish" in text and "can be trusted" in text and " - " not in text.split("\n")[3][:30]
    assert len(draw(result).axes) == 3


def test_the_transition_is_looked_for_on_a_parabola() -> None:
    line = {lam: 1 + lam + 3 * lam**2 for lam in (-1.0, -0.95, -0.9)}
    assert predicted(-0.8, line) == pytest.approx(1 - 0.8 + 3 * 0.64)


def test_slope_of_the_line_is_that_of_clausius_and_clapeyron() -> None:
    """Where U_o - U_d = (mu2/2 + 1/2) 2 + (lam + 1) 3 vanishes, d mu2 / d lam = -3."""
    values = {"phi2": [1.0, 3.0], "phi2_err": [0.0, 0.02], "phi4": [2.0, 5.0], "phi4_err": [0.0, 0.06]}
    slope, error = slope_of(xr.Dataset({name: ("phase", value) for name, value in values.items()}))
    assert slope == pytest.approx(-3.0) and error == pytest.approx(0.06)


def test_slope_of_xi_is_that_of_neighbouring_couplings() -> None:
    L, wave = 6, lattices.phi6(L=6, mu2=1.0).lattice.lowest_eigenvalue
    found = []
    for mu2 in (0.9, 1.0, 1.1):
        walk = qp.canonical(lattices.phi6(L=L, mu2=mu2, lam=-0.7), sweeps=640, groups=8, chains=8, progress=False)
        found.append(ratio_and_slope(walk.data, wave, L))
    assert (found[2][0] - found[0][0]) / 0.2 == pytest.approx(found[1][1], rel=0.15)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"first_order": [-1, -0.9, -0.8]}, "first_order must be at least 4"),
        ({"critical": [-0.8, -0.8, -0.7]}, "critical must be at least 3"),
        ({"critical": 3}, "critical must be values of lam"),
        ({"lam": -1.0}, "lam is no setting of the model here"),
        ({"dim": 3}, "dim is no setting of the model here"),
        ({"sizes": [8, 16]}, "sizes must be at least 3"),
        ({"kappa": 1.0}, "phi6 has no coupling 'kappa'"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_sampled(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        workflows.phase_diagram(**given)
