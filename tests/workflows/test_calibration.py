"""Calibration: right errors pass, wrong ones are named, exact values are used where they are known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import quenchphys as qp
import workflows
from workflows.calibration import exact_values, normal_score
from workflows.results import save_figure, summary

TRUE = {"x": 1.0, "y": -2.0}


def study(seed, stated=1.0, off=0.0):
    """Two numbers with the standard error 0.1, and one over two phases; `stated` is what they claim of it."""
    rng = np.random.default_rng(seed)
    x, y = (TRUE[name] + 0.1 * rng.standard_normal() for name in ("x", "y"))
    data = {"x": x + off, "x_err": 0.1 * stated, "y": y, "y_err": 0.1}
    data |= {"z": ("phase", rng.standard_normal(2)), "z_err": ("phase", [1.0, 1.0]), "no_error": 3.0}
    return xr.Dataset(data, coords={"phase": ["cold", "hot"]})


def test_right_errors_are_found_right(tmp_path):
    found = workflows.calibrate(study, exact=TRUE, seeds=200, out=tmp_path / "z.nc", progress=False)
    assert found["quantity"].values.tolist() == ["x", "y", "z[cold]", "z[hot]"]
    assert found.trusted == 1 and found.why == ""
    np.testing.assert_allclose(found.z_sd, 1.0, atol=0.2)
    assert found.exactly_known.values.tolist() == [True, True, False, False]
    kept = workflows.load_result(tmp_path / "z.nc")
    assert "z-scores of 200 runs" in summary(kept)
    assert save_figure(kept, tmp_path / "z.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"stated": 0.6}, "Errors of x are too small: z scatters by 1."),
        ({"stated": 1.6}, "Errors of x are too large: z scatters by 0."),
        ({"off": 0.06}, "x is biased by +0."),
    ],
)
def test_wrong_errors_are_named(fault, says):
    def run(seed):
        return study(seed, **fault)

    found = workflows.calibrate(run, exact=TRUE, seeds=200, progress=False)
    assert found.trusted == 0
    assert says in found.why and " y " not in found.why
    # Without the exact value a bias cannot be seen, but the scatter can.
    blind = workflows.calibrate(run, seeds=200, progress=False)
    assert ("x" in blind.why) == ("stated" in fault)


def blocks(seed, stated=1.0, dof=True, count=4):
    """The mean of a few normal numbers, and the mean and standard deviation of others over two phases."""
    rng = np.random.default_rng(seed)
    x = rng.normal(TRUE["x"], 1.0, (3, count))
    mean, error = x.mean(axis=1), stated * x.std(axis=1, ddof=1) / np.sqrt(count)
    data = {"x": mean[0], "x_err": error[0], "y": ("phase", mean[1:]), "y_err": ("phase", error[1:])}
    data |= {f"{name}_dof": count - 1 for name in "xy"} if dof else {}
    return xr.Dataset(data, coords={"phase": ["cold", "hot"]})


def test_errors_from_few_blocks_are_right_by_their_degrees_of_freedom():
    """t with 3 degrees of freedom has the standard deviation 1.73, and its normal score 1."""
    known = dict.fromkeys(("x", "y[cold]", "y[hot]"), TRUE["x"])
    found = workflows.calibrate(blocks, exact=known, seeds=400, progress=False)
    assert found.trusted == 1, found.why
    assert np.all(np.abs(found.z_sd - 1) < 4 / np.sqrt(800))  # standard errors
    assert np.all(found.p_value > 0.01)
    assert np.all(found.dof == 3)
    # Without the exact value t is that of the mean of all, and as wide.
    blind = workflows.calibrate(blocks, seeds=400, progress=False)
    assert np.all(np.abs(blind.z_sd - 1) < 4 / np.sqrt(800))
    unsaid = workflows.calibrate(lambda seed: blocks(seed, dof=False), exact=known, seeds=400, progress=False)
    assert np.all(unsaid.z_sd > 1.3) and np.all(np.isinf(unsaid.dof))
    for stated, word in ((0.6, "small"), (1.7, "large")):
        wrong = workflows.calibrate(lambda seed, s=stated: blocks(seed, s), exact=known, seeds=200, progress=False)
        assert f"Errors of x are too {word}" in wrong.why


def test_normal_scores():
    t, dof = np.array([-3.0, 0.0, 0.5, 12.0]), np.array([7.0, 2.0, 1.0, 30.0])
    np.testing.assert_allclose(normal_score(t, dof), stats.norm.ppf(stats.t.cdf(t, dof)), rtol=1e-3, atol=1e-12)
    # Far out, where the distribution function is 1 and even its tail is 0, scores stay finite and odd, and grow.
    far = normal_score([1e2, 1e10, 1e80, 1e120], 3.0)
    np.testing.assert_array_equal(far, -normal_score([-1e2, -1e10, -1e80, -1e120], 3.0))
    assert np.all(np.isfinite(far)) and np.all(np.diff(far) > 0)
    np.testing.assert_allclose(normal_score([-60.0, 0.3, 60.0], np.inf), [-60.0, 0.3, 60.0])
    np.testing.assert_allclose(normal_score([5.0, 60.0], 1e6), [5.0, 60.0], rtol=2e-3)


def test_every_run_has_a_seed_of_its_own():
    seen = []

    def run(seed):
        seen.append(seed)
        return study(seed)

    for first in (0, 1):
        workflows.calibrate(run, seeds=20, seed=first, progress=False)
    assert len(set(seen)) == 40


def test_a_ladder_is_compared_with_the_exact_values_of_its_target():
    target = qp.targets.gaussian(4)
    known = exact_values(target, 1.0)
    assert known["log_z"] == pytest.approx(-2 * np.log(5))
    assert known["energy"] == pytest.approx(1.6, rel=1e-5)  # D/2 / (sigma^2 + 1)
    assert known["heat_capacity"] == pytest.approx(1.28, rel=1e-3)
    found = workflows.calibrate(target, seeds=8, particles=100, replicas=2, progress=False)
    assert {"log_z", "energy", "heat_capacity", "r2"} <= set(found["quantity"].values)
    assert found.exactly_known.all()
    assert np.all(np.abs(found.z_mean) < 4 / np.sqrt(8))


def test_what_cannot_be_calibrated_is_refused():
    with pytest.raises(TypeError, match="a function of a seed can be calibrated, but float was given"):
        workflows.calibrate(1.0)
    with pytest.raises(ValueError, match="seeds must be at least 8"):
        workflows.calibrate(study, seeds=3)
    with pytest.raises(ValueError, match="nothing to calibrate"):
        workflows.calibrate(lambda seed: xr.Dataset({"x": 1.0}), seeds=8, progress=False)
    with pytest.raises(ValueError, match="must be positive, but x_dof is 0"):
        workflows.calibrate(lambda seed: xr.Dataset({"x": 1.0, "x_err": 0.1, "x_dof": 0}), seeds=8, progress=False)
