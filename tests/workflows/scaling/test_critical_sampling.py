"""Chains near a critical point: where they are sampled, their stages, and their figure."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

import lattices
import workflows
from quenchphys.console.progress import Display
from workflows.budget import WalkSettings
from workflows.results import summary
from workflows.scaling.critical_sampling import COUPLINGS, SPREAD, Sampled, _next_place
from workflows.scaling.curves import Curves
from workflows.scaling.second_order import _doubts
from workflows.timing import stages_of_critical

SIZES, BRACKET, SMALL = [4, 6, 8], (-1.35, -1.1), {"groups": 8, "chains": 4, "sweeps": 320}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return {"model": "phi4", "lam": 0.25, "out": tmp_path_factory.mktemp("critical") / "run.nc", **SMALL}


@pytest.fixture(scope="module")
def shown(kept):
    display = Display("scaling", wanted=False)
    return display, workflows.finite_size_scaling(SIZES, BRACKET, progress=display, **kept)


def test_stages_are_those_that_were_planned(shown):
    models = [lattices.phi4(L=L, mu2=-1.2, lam=0.25) for L in SIZES]
    planned = [stage.name for stage in stages_of_critical(models, WalkSettings(**SMALL))]
    assert [stage.name for stage in shown[0].forecast.stages] == planned
    assert all(stage.begun is not None for stage in shown[0].forecast.stages)


def test_chains_that_remember_their_start_are_not_trusted(shown):
    assert "remember their start" not in shown[1].why
    pool = SimpleNamespace(ladders=[])
    curves = SimpleNamespace(length=48, rows=129)
    sizes = [Sampled(curves, pool, {"m2": (tau, 1.0), "energy": (3.0, 1.0)}, 64) for tau in (5.0, 7.0, 15.0, 17.0)]
    (said,) = _doubts(sizes)
    assert said.startswith("L = 48: the autocorrelation time of m2 is 17 sweeps, and a burn-in of 64 sweeps")


def test_a_known_class_is_used_and_its_ratios_are_not_fitted(shown, kept):
    free = shown[1]
    known = workflows.finite_size_scaling(SIZES, BRACKET, universality="ising", overwrite=True, progress=False, **kept)
    assert {"binder_critical", "xi_over_L_critical"} <= set(free.data_vars)
    assert not {"binder_critical", "xi_over_L_critical"} & set(known.data_vars)
    assert known.attrs["universality"] == "ising"
    assert known.mu2_critical_err < free.mu2_critical_err
    np.testing.assert_array_equal(known.crossing, free.crossing)  # the same chains
    text = summary(known)
    assert "mu2 critical" in text and "binder critical" not in text


def test_power_laws_have_more_than_one_tick(shown):
    matplotlib.use("Agg")
    figure = shown[1].quenchphys.plot()
    figure.canvas.draw()
    for ax in figure.axes[2:]:
        low, high = ax.get_ylim()
        assert sum(low <= tick <= high for tick in ax.get_yticks()) > 1


def straight(L, slope, noise=1e-3):
    """Cumulants that cross at -1.27, and two jackknife samples."""
    axis = np.linspace(-1.4, -1.1, 33)
    curve = 0.6 - slope * (axis + 1.27)
    return Curves(L, axis, {"binder": np.array([curve, curve + noise, curve - noise])})


def test_the_next_size_is_sampled_where_two_others_cross():
    centre, apart = _next_place(straight(8, 0.5), straight(16, 1.0), 32, (-1.4, -1.1))
    assert np.isclose(centre, -1.27)
    assert np.isclose(apart, SPREAD / 2.0)


def test_sizes_of_one_slope_do_not_lead_far_away():
    """As far from the transition, where no crossing is: three couplings still fit into the bracket."""
    bracket = (-1.4, -1.1)
    centre, apart = _next_place(straight(8, 0.5), straight(16, 0.5 + 1e-7), 32, bracket)
    first, last = (centre + side * (COUPLINGS - 1) / 2 * apart for side in (-1, 1))
    assert bracket[0] - 0.1 < first < last < bracket[1] + 0.1


def test_a_bracket_without_a_crossing_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"^No crossing .* from 1 to 1.5: move or narrow it\.  .*[a-z]\.$"):
        workflows.finite_size_scaling([4, 6, 8], (1.0, 1.5), model="phi4", lam=0.25, progress=False, **SMALL)
