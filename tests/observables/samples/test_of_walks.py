"""Samples of walkers, drawn exactly, asked like a ladder: known odds, a known log Z, and questions they cannot answer."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import observables
import quenchphys as qp
from observables.samples.bennett import log_z_error, scale_of, scaled
from observables.samples.of_walks import crossings, spread_starts

D, SIGMA = 4, 0.5
GROUPS, SWEEPS, WALKERS, DRAWS = 16, 50, 40, 1000


@pytest.fixture(scope="module")
def ladder():
    return qp.quench(qp.targets.gaussian(D), particles=400, seed=1, progress=False)


@pytest.fixture(scope="module")
def walk():
    """Independent draws of pi(x) w(U), w = exp(-U/2): each coordinate is normal with precision 1 + 0.5/sigma^2."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((GROUPS, SWEEPS, WALKERS, D)) / np.sqrt(1 + 0.5 / SIGMA**2)
    prior_energy = (rng.standard_normal((GROUPS, DRAWS, D)) ** 2).sum(axis=-1) / (2 * SIGMA**2)
    r2 = (x**2).sum(axis=-1)
    dims = ("replica", "sweep", "walker")
    energy = r2 / (2 * SIGMA**2)
    found = {"energy": (dims, energy), "r2": (dims, r2), "log_w": (dims, 7.0 - 0.5 * energy)}
    return xr.Dataset(found | {"prior_log_w": (("replica", "draw"), 7.0 - 0.5 * prior_energy)})


def test_log_z_is_absolute_where_walkers_meet_the_prior(ladder, walk):
    """Scaled by draws from the prior, they know Z of both sides of a cut, with the errors they state."""
    parts = [{"sweep": slice(0, 20), "draw": slice(0, 200)}, {"sweep": slice(20, None), "draw": slice(200, None)}]
    pool = observables.walked(ladder, [walk.isel(part) for part in parts])
    scale = scale_of(pool)
    exact_c = 7.0 - D / 2 * np.log1p(0.5 / SIGMA**2)  # of exp(7 - U/2)
    assert abs(scale.log_c - exact_c) < 4 * np.sqrt((GROUPS - 1) * np.var(scale.without))
    assert 0.3 < np.sqrt((GROUPS - 1) * np.var(scale.without) * scale.meetings.sum()) < 3  # Bennett's own estimate
    held = scaled(pool, scale)
    found = observables.partition_function(held, beta=1.0)
    cut = 0.5
    errors = log_z_error(held, scale, "r2", cut)
    inside = stats.chi2.cdf(cut * (1 + 1 / SIGMA**2), D)
    exact = qp.targets.gaussian(D).log_z + np.log([inside, 1 - inside])
    phases = observables.phase_averages(held, by="r2", cut=cut)
    assert (np.abs(phases.log_z - exact) < 4 * errors).all()
    assert (errors < 0.1).all()
    assert np.logaddexp.reduce(phases.log_z.values) == pytest.approx(float(found.log_z.squeeze()), abs=2e-3)


def test_the_scale_is_that_of_its_equation(ladder, walk):
    """Solved for a group less, its equation has the root that the first order promises."""
    pool = observables.walked(ladder, [walk])
    scale = scale_of(pool)
    for left_out in (0, 7):
        rest = observables.walked(ladder, [walk.drop_isel(replica=left_out)])
        assert scale_of(rest).log_c == pytest.approx(scale.without[left_out], abs=1e-3)
        assert scale_of(rest).log_c != pytest.approx(scale.log_c, abs=1e-4)


def test_draws_that_walkers_never_meet_count_as_draws(ladder, walk):
    """With twice as many draws, half of them where w = 0, the mean of w is half of what it was."""
    draws = walk.prior_log_w
    twice = walk.drop_vars("prior_log_w").assign(prior_log_w=xr.concat([draws, xr.full_like(draws, -np.inf)], "draw"))
    before, after = (scale_of(observables.walked(ladder, [seen])) for seen in (walk, twice))
    assert after.log_c == pytest.approx(before.log_c - np.log(2), abs=0.05)


def test_walkers_that_meet_no_draw_have_no_scale_to_be_believed(ladder, walk):
    found = scale_of(observables.walked(ladder, [walk.assign(prior_log_w=walk.prior_log_w - 60)]))
    assert found.meetings.sum() < 1e-3


def test_averages_are_those_of_any_target(ladder, walk):
    found = observables.order_parameters(observables.walked(ladder, [walk]), beta=[0.25, 1.0])
    exact = D / (1 + np.array([0.25, 1.0]) / SIGMA**2)
    assert (np.abs(found.r2 - exact) < 4 * found.r2_err).all()
    assert (found.r2_err < 0.05 * exact).all()


def test_crossings_are_counted_between_the_phases_only():
    q = xr.DataArray(np.array([[[0.0], [0.5], [1.0], [0.5], [1.0], [0.4], [0.0]]]), dims=("replica", "sweep", "walker"))
    assert crossings([xr.Dataset({"q": q})], "q", (0.2, 0.8)).tolist() == [2]


def test_starts_lie_between_the_energies_and_spread_over_the_levels(ladder):
    low, high = 1.0, 6.0
    start = spread_starts(ladder, low, high, groups=4, walkers=25)
    energy = (start**2).sum(axis=-1) / (2 * SIGMA**2)
    assert start.shape == (4, 25, D)
    assert ((energy > low) & (energy < high)).all()
    assert (energy.max(axis=1) > 1.5 * energy.min(axis=1)).all()
    with pytest.raises(ValueError, match="no configuration with an energy between 900 and 901"):
        spread_starts(ladder, 900, 901, 2, 2)


def test_what_only_ladders_know_is_refused(ladder, walk):
    pool = observables.walked(ladder, [walk])
    for question in (
        observables.diagnostics,
        observables.quadrature,
        observables.level_marginal,
        observables.posterior,
    ):
        with pytest.raises(TypeError, match="walkers have no levels"):
            question(pool)
    with pytest.raises(TypeError, match="walkers have no ancestors"):
        observables.partition_function(pool, errors="genealogy")
