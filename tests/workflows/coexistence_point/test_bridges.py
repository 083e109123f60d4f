"""Coexistence without crossing: bridges to both phases, and both methods together."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

import lattices
import quenchphys as qp
import workflows
from workflows.budget import CoexistenceSettings
from workflows.coexistence_point.agreement import MOST_APART, both_answers, joined
from workflows.coexistence_point.bridges import Odds, mixed_weight, smaller
from workflows.coexistence_point.method import method_for
from workflows.results import draw, summary

# By multicanonical chains that cross (docs/validation.md).
EXACT = (2.28656, 5e-5)


@pytest.fixture(scope="module")
def point(tmp_path_factory):
    out = tmp_path_factory.mktemp("phases") / "run.nc"
    return workflows.coexistence(L=16, method="phases", error=1e-3, out=out, progress=False), out


def test_the_point_is_that_of_chains_that_cross(point):
    found, _ = point
    value, error = EXACT
    assert abs(float(found.mu2) - value) < 3.5 * math.hypot(float(found.mu2_err), error)
    assert float(found.mu2_err) < 2e-3 and found.trusted == 1
    assert float(found.q.sel(phase="disordered")) == pytest.approx(0.187, abs=0.01)
    assert float(found.q.sel(phase="ordered")) == pytest.approx(1.89, abs=0.05)


def test_what_was_not_sampled_is_not_there(point):
    found, _ = point
    assert "barrier" not in found and "m" not in found and 0 < float(found.mixed_weight) < 0.02
    said = summary(found)
    assert "each phase was sampled from its own side" in said and "barrier" not in said
    cut, axis = found.attrs["phase_cut"], found.q_axis.values
    widths = np.diff(axis)
    assert widths[np.searchsorted(axis, cut) - 1] == widths.max()  # the gap between the phases
    assert len(draw(found).axes) == 2


def test_a_repeated_call_reads_its_bridges(point, monkeypatch):
    found, out = point
    out.unlink()
    monkeypatch.setattr(qp, "bridge", lambda *_, **__: pytest.fail("sampled again"))
    again = workflows.coexistence(L=16, method="phases", error=1e-3, out=out, progress=False)
    assert float(again.mu2) == float(found.mu2) and float(again.mu2_err) == float(found.mu2_err)


def test_a_bracket_without_the_point_is_refused():
    with pytest.raises(ValueError, match=r"does not contain the coexistence point: mu2 lies below 2.35, near 2.2"):
        workflows.coexistence(L=16, bracket=(2.35, 2.4), method="phases", error=1e-2, progress=False)


def test_phases_that_are_not_metastable_are_not_trusted():
    with pytest.warns(UserWarning, match="not to be trusted"):
        found = workflows.coexistence(L=4, bracket=(2.2, 2.5), method="phases", error=0.05, progress=False)
    assert found.trusted == 0 and "it is not metastable on this lattice" in found.why


def test_auto_crosses_where_it_is_quick():
    def method(problem, **given):
        return method_for(problem, CoexistenceSettings.of(**given))

    small, large = (lattices.phi6(L=L, mu2=2.29) for L in (32, 64))
    assert method(small) == "crossing" and method(large) == "phases"
    assert method(large, sweeps=3200) == "crossing" and method(large, groups=24, seed=3) == "phases"
    assert method(small, error=1e-4) == "phases" and method(small, method="both") == "both"
    other = qp.targets.spike_slab(4000)
    assert method(other) == "crossing"
    with pytest.raises(TypeError, match="needs a scalar field"):
        method(other, method="phases")
    with pytest.raises(TypeError, match="error is for bridges"):
        method(other, error=0.1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "phase"}, "method must be one of auto, crossing, phases, both; 'phase' was given"),
        ({"error": -1.0}, "error must be positive and finite; -1.0 was given"),
        ({"error": 1e-4, "method": "crossing"}, "error is for bridges"),
        ({"groups": 12, "method": "phases"}, "groups must be a multiple of 8 for bridges; 12 was given"),
    ],
)
def test_bad_settings_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        workflows.coexistence(L=16, progress=False, **given)


def test_a_small_lattice_knows_the_odds_of_a_large_one():
    """log odds = V df + log m."""
    df, slope, m = -0.003, -0.85, 2
    small = Odds(1600 * df + math.log(m), 1600 * slope, 1600, m, np.array([4.0, 16.0]))
    large = small.on(6400)
    assert large.value == pytest.approx(6400 * df + math.log(m)) and large.slope == pytest.approx(6400 * slope)
    np.testing.assert_allclose(large.lengths, [8, 32])
    assert smaller(lattices.phi6(shape=(256, 64), mu2=2.28)).lattice.shape == (128, 32)
    assert smaller(lattices.phi6(L=40, mu2=2.28)).lattice.shape == (40, 40)


def test_mixed_states_are_bounded_by_the_shorter_bridge(point):
    """The rule of three: none in n trials bounds a probability by 3/n."""
    _, out = point
    kept = [qp.load(file) for file in sorted(out.with_suffix(".ladders").glob("bridge_*.nc"))]
    shortest = min(ladder.particles["energy"].isel(level=0).size for ladder in kept)
    assert mixed_weight(kept) == pytest.approx(3 / shortest)


def a_point(value: float, error: float, **more: float) -> xr.Dataset:
    given = {"mu2": (value, error), "latent_heat": (10.0, 1.0)}
    data = {name + end: ((), number) for name, pair in given.items() for end, number in zip(("", "_err"), pair, strict=True)}
    return xr.Dataset(data | {name: ((), number) for name, number in more.items()}, attrs={"trusted": 1, "why": ""})


def test_two_answers_become_one():
    found = both_answers(a_point(2.0, 0.3, barrier=5.0), a_point(2.5, 0.4, mixed_weight=1e-3), "mu2")
    assert float(found.mu2_distance) == pytest.approx(1.0)
    assert float(found.mu2) == pytest.approx((2.0 / 0.09 + 2.5 / 0.16) / (1 / 0.09 + 1 / 0.16))
    assert float(found.mu2_err) == pytest.approx((1 / 0.09 + 1 / 0.16) ** -0.5)
    assert float(found.latent_heat_err) == pytest.approx(math.sqrt(0.5)) and float(found.barrier) == 5
    assert found.trusted == 1 and found.attrs["method"] == "both"


def test_two_answers_that_disagree_are_not_trusted():
    with pytest.warns(UserWarning, match="standard errors apart"):
        found = both_answers(a_point(2.0, 0.3), a_point(2.0 + 0.5 * (MOST_APART + 0.1), 0.4, mixed_weight=1e-3), "mu2")
    assert found.trusted == 0 and "4.1 standard errors apart" in found.why


def test_a_value_without_an_error_counts_for_nothing():
    value, error = joined((np.array([1.0, np.nan]), np.array([0.1, np.nan])), (np.array([2.0, 3.0]), np.array([0.0, 0.2])))
    np.testing.assert_allclose(value, [1, 3])
    np.testing.assert_allclose(error, [0.1, 0.2])


def test_sizes_without_a_barrier_are_shown_without_one():
    sizes = np.array([16, 24, 40, 128])
    barrier = np.array([9.0, 14.0, 23.0, np.nan])
    columns = {"mu2": 2.2834 + 0.8 / sizes**2, "barrier": barrier, "interface_tension": barrier / (2 * sizes)}
    columns |= {"plateau": barrier - 3, "wall_area": 2.0 * sizes, "wall_term": -np.log(sizes)}
    columns["latent_heat"] = 0.9 * sizes**2
    data = {name: ("size", values) for name, values in columns.items()}
    data |= {f"{name}_err": ("size", 0.01 * values) for name, values in columns.items()}
    data["log_odds_slope"] = ("size", -0.85 * sizes**2)
    for name in ("mu2_infinite", "interface_tension_infinite"):
        fit = {"": 0.3, "_err": 0.01, "_chi2": 1.0, "_dof": 2, "_smallest_size": 16}
        data |= {name + end: ((), value) for end, value in fit.items()}
    attrs = {"workflow": "finite_size_scaling", "order": "first", "coupling": "mu2", "trusted": 1, "why": ""}
    found = xr.Dataset(data, {"size": sizes}, attrs | {"problem": "phi6", "couplings": "{}", "seed": 0})
    row = next(line for line in summary(found).splitlines() if line.strip().startswith("128"))
    assert row.split()[2:4] == ["-", "-"]
    barriers = draw(found).axes[1]
    assert all(np.isfinite(line.get_ydata()).all() for line in barriers.lines)
