"""Finite-size scaling: the laws and the fits against exact one-site models, and sizes that are not run twice."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import workflows
from tests.support.mean_field_model import binder, coexistence_mu2, one_site
from workflows.budget import LadderSettings
from workflows.scaling.first_order import Infinite
from workflows.scaling.fits import largest_sizes, least_squares, widened, with_correction

COMMON = {"model": one_site, "progress": False}
FIRST, SECOND = COMMON | {"sweeps": 320}, COMMON | {"particles": 64, "replicas": 4}


def test_least_squares_gives_the_textbook_mean_and_chi_squared():
    y, error = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 1.0])
    fit = least_squares(np.ones((3, 1)), y, error)
    weight = 1 / error**2
    assert fit.value[0] == pytest.approx((weight * y).sum() / weight.sum())
    assert fit.error[0] == pytest.approx(weight.sum() ** -0.5)
    assert fit.chi2 == pytest.approx((((y - fit.value[0]) / error) ** 2).sum())
    assert fit.dof == 2


def test_small_sizes_are_left_out_where_the_law_does_not_hold_yet():
    sizes = np.array([4, 8, 16, 32])
    y, error = 1.0 + 5.0 * np.exp(-sizes / 4), np.full(4, 0.01)
    fit = largest_sizes(np.ones((4, 1)), y, error, sizes)
    assert list(fit.used) == [False, False, True, True] or list(fit.used) == [False, False, False, True]
    assert fit.dof >= 1


def test_a_correction_to_scaling_is_taken_out():
    """Points on 2 + 0.3 L^-1.6, with errors far smaller than the correction."""
    rng, sizes, error = np.random.default_rng(5), np.array([8, 12, 16, 24, 32]), np.full(5, 1e-4)
    z = []
    for _ in range(200):
        y = 2.0 + 0.3 * sizes**-1.6 + error * rng.standard_normal(5)
        fit = with_correction(lambda omega: sizes**-omega, y, error)
        z.append((fit.value[0] - 2.0) / fit.error[0])
    assert abs(np.mean(z)) < 1.0
    assert 0.2 < np.std(z) < 1.2
    assert np.abs(largest_sizes(np.ones((5, 1)), y, error, sizes).value[0] - 2.0) > 10 * error[0]


def test_first_order_follows_the_multiplicity_term(tmp_path, monkeypatch):
    sizes = [3, 4, 5]
    found = workflows.finite_size_scaling(sizes, (0.3, 1.5), out=tmp_path / "fss.nc", **FIRST)
    exact = np.array([coexistence_mu2(L) for L in sizes])
    assert (np.abs(found.mu2.values - exact) < 6 * found.mu2_err.values).all()
    # At an ordered share of 2/3 each of the two ordered phases weighs as much as the disordered one.
    moved = np.array([coexistence_mu2(L, share=2 / 3) for L in sizes])
    term = -np.log(2) / found.log_odds_slope.values
    assert (np.abs(exact - moved - term) < 0.1 * np.abs(term)).all()
    assert found.attrs["order"] == "first"
    infinite, error = float(found.mu2_infinite), float(found.mu2_infinite_err)
    assert moved.min() - 4 * error < infinite < moved.max() + 4 * error
    assert abs(infinite - float(found.mu2_infinite_uncorrected)) <= error

    ran = []
    quench = LadderSettings.quench

    def counted(self, problem, *rest):
        ran.append(float(problem.volume))
        return quench(self, problem, *rest)

    monkeypatch.setattr(LadderSettings, "quench", counted)
    longer = workflows.finite_size_scaling([*sizes, 6], (0.3, 1.5), out=tmp_path / "fss.nc", overwrite=True, **FIRST)
    assert set(ran) == {36.0}
    assert (longer.mu2.values[:3] == found.mu2.values).all()


def points_of(sizes, rng=None):
    """phi^6 as it was measured: 2.28345 - 0.0072 exp(-(L - 6)/1.4), with errors of 320 sweeps."""
    sizes = np.array(sizes)
    error = np.interp(sizes, [6, 8, 10, 12, 16, 24], [8e-4, 4.9e-4, 3.8e-4, 3.8e-4, 2.5e-4, 1.9e-4])
    exact = 2.28345 - 0.0072 * np.exp(-(sizes - 6) / 1.4)
    return exact + (0.0 if rng is None else error * rng.standard_normal(len(sizes))), error, sizes


def test_small_first_order_sizes_are_corrected_or_not_trusted():
    few = Infinite.of(*points_of([6, 8, 10]))
    assert abs(few.plain.value[0] - 2.28345) > 3 * few.plain.error[0]  # what the mean of the largest sizes would say
    assert "with a correction for small sizes, and 2.28254 without: sizes above L = 10 are needed" in few.doubts("mu2")[0]
    enough = Infinite.of(*points_of([8, 12, 16, 24]))
    assert enough.doubts("mu2") == []
    assert enough.corrected.value[0] == pytest.approx(2.28345, abs=0.5 * enough.corrected.error[0])
    # The correction costs little where it is small.
    assert enough.corrected.error[0] < 1.2 * enough.plain.error[0]
    equal = points_of([16, 20, 24])
    assert Infinite.of(*equal).doubts("mu2") == []
    bent = equal[0] + 10 * equal[1] * np.array([0, 1, 0]), *equal[1:]
    assert Infinite.of(*bent).doubts("mu2") != []
    # The smallest of four does not fit, and the other three fit any law.
    four = points_of([8, 12, 16, 24])
    odd = four[0] + 4 * four[1] * np.array([1, -1, 1, 0]), *four[1:]
    assert "L = 8 does not follow the law" in Infinite.of(*odd).doubts("mu2")[0]


def test_the_error_of_the_infinite_lattice_covers_its_correction():
    rng = np.random.default_rng(8)
    for sizes in ([6, 8, 10], [6, 8, 12, 16]):
        z, result = [], xr.Dataset()
        for _ in range(60):
            Infinite.of(*points_of(sizes, rng)).add_to(result, "mu2")
            z.append((float(result["mu2_infinite"]) - 2.28345) / float(result["mu2_infinite_err"]))
        assert abs(np.mean(z)) < 0.5 and 0.5 < np.std(z) < 1.3, sizes


def test_second_order_finds_where_binder_cumulants_meet():
    sizes, bracket = [4, 8, 16], (-0.6, 0.4)
    settings = {**SECOND, "lam": 0.25, "eta": 0.0}
    found = workflows.finite_size_scaling(sizes, bracket, **settings)
    critical = float(found.mu2_critical)
    assert found.attrs["order"] == "second"
    exact = np.array([binder(one_site(L, critical, lam=0.25, eta=0.0)) for L in sizes])
    assert (np.abs(found.binder.values - exact) < 6 * found.binder_err.values + 1e-3).all()
    # The prior is part of the mass: 1/V shifts the point, and the whole moves as one site, with slopes ~ sqrt(V) = L.
    assert abs(critical) < 0.15
    assert float(found.nu) == pytest.approx(1.0, abs=0.3)


    assert not found.trusted
    assert "Corrections to scaling cannot be told from 3 sizes" in found.why


@pytest.mark.parametrize(
    ("order", "given", "says"),
    [
        ("first", {"particles": 100, "replicas": 4}, "first order, so particles and replicas are not used"),
        ("second", {"sweeps": 3200}, "second order, so sweeps is not used; its settings are particles, replicas"),
    ],
)
def test_settings_of_the_other_order_are_not_ignored_silently(order, given, says, monkeypatch, tmp_path):
    def stop(*_):
        raise InterruptedError

    monkeypatch.setattr(LadderSettings, "quench", stop)
    with pytest.warns(FutureWarning, match=says) as warned, pytest.raises(InterruptedError):
        workflows.finite_size_scaling([8, 12, 16], (2.25, 2.33), order=order, out=tmp_path / "fss.nc", **COMMON | given)
    assert warned[0].filename == __file__
    request = json.loads((tmp_path / "fss.ladders/request.json").read_text())
    assert not set(given) & set(request)


def test_a_parameter_of_a_fit_is_replaced_in_a_copy():
    x = np.arange(3.0)
    fit = least_squares(np.stack([np.ones(3), x], axis=1), 1 + 0.5 * x, np.full(3, 0.01))
    before = fit.value.copy(), fit.error.copy()
    changed = fit.with_parameter(1, 0.8, 0.1).with_further_error(1, 0.2)
    assert (changed.value[1], changed.error[1]) == (0.8, pytest.approx(np.hypot(0.1, 0.2)))
    assert (fit.value == before[0]).all() and (fit.error == before[1]).all()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"sizes": [8, 12.5, 16]}, "sizes must be whole numbers"),
        ({"sizes": "8"}, "sizes must be whole numbers"),
        ({"sizes": [8, 8, 12]}, "at least 3 different"),
        ({"sizes": [1, 8, 12]}, "sizes must be at least 2"),
        ({"bracket": (2.3, 2.2)}, "reversed"),
        ({"bracket": None}, "bracket is missing"),
        ({"order": "third"}, "order must be 'first' or 'second'"),
        ({"out": "no/folder/fss.nc"}, "does not exist"),
    ],
)
def test_wrong_requests_are_refused(wrong, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, OSError), match=says):
        workflows.finite_size_scaling(**{"sizes": [8, 12, 16], "bracket": (2.25, 2.33), "out": "fss.nc"} | wrong)
    assert list(tmp_path.iterdir()) == []


def test_an_error_covers_the_scatter_about_a_law():
    x = np.arange(5.0)
    design = np.stack([x, np.ones(5)], axis=1)
    along = least_squares(design, 2 * x + 1, np.full(5, 0.1))
    assert np.array_equal(widened(along).error, along.error), "points on the line do not make it smaller"
    bent = least_squares(design, 2 * x + 1 + 0.3 * (x - 2) ** 2, np.full(5, 0.1))
    assert bent.p_value < 1e-6
    np.testing.assert_allclose(widened(bent).error, bent.error * np.sqrt(bent.chi2 / 3))
