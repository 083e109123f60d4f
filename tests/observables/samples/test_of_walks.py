"""Samples of chains, drawn exactly: known odds, a known log Z, and questions that only ladders answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import observables
import quenchphys as qp
from observables.samples.of_walks import crossings, spread_starts
from quenchphys.walk import Walk
from tests.support import synthetic

D, SIGMA = 4, 0.5
GROUPS, SWEEPS, CHAINS, DRAWS = 16, 50, 40, 1000


@pytest.fixture(scope="module")
def ladder():
    return qp.quench(qp.targets.gaussian(D), particles=400, seed=1, progress=False)


@pytest.fixture(scope="module")
def walk():
    """Independent draws of pi(x) w(U), w = exp(-U/2): each coordinate is normal with precision 1 + 0.5/sigma^2."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((GROUPS, SWEEPS, CHAINS, D)) / np.sqrt(1 + 0.5 / SIGMA**2)
    prior_energy = (rng.standard_normal((GROUPS, DRAWS, D)) ** 2).sum(axis=-1) / (2 * SIGMA**2)
    r2 = (x**2).sum(axis=-1)
    energy = r2 / (2 * SIGMA**2)
    return synthetic.walk({"energy": energy, "r2": r2, "log_w": 7.0 - 0.5 * energy}, 7.0 - 0.5 * prior_energy)


def scale_of(walk, **changed):
    """The scale of a walk with other variables."""
    return observables.Pool(Walk(walk.data.assign(changed))).scale


def test_log_z_is_absolute_where_chains_meet_the_prior(walk):
    """Scaled by draws from the prior, they know Z of both sides of a cut, with the errors they state."""
    parts = [{"sweep": slice(0, 20), "draw": slice(0, 200)}, {"sweep": slice(20, None), "draw": slice(200, None)}]
    pool = observables.Pool([Walk(walk.data.isel(part)) for part in parts])
    scale = pool.scale
    exact_c = 7.0 - D / 2 * np.log1p(0.5 / SIGMA**2)  # of exp(7 - U/2)
    error = np.sqrt((GROUPS * CHAINS - 1) * np.var(scale.without))
    assert len(scale.without) == GROUPS * CHAINS
    assert abs(scale.log_c - exact_c) < 4 * error
    assert 0.3 < error * np.sqrt(scale.meetings.sum()) < 3  # Bennett's own estimate
    found = observables.partition_function(pool, beta=1.0)
    cut = 0.5
    inside = stats.chi2.cdf(cut * (1 + 1 / SIGMA**2), D)
    exact = qp.targets.gaussian(D).log_z + np.log([inside, 1 - inside])
    phases = observables.phase_averages(pool, by="r2", cut=cut)
    assert (np.abs(phases.log_z - exact) < 4 * phases.log_z_err).all()
    assert (phases.log_z_err < 0.1).all()
    assert abs(float(found.log_z) - qp.targets.gaussian(D).log_z) < 4 * float(found.log_z_err) < 0.4
    assert np.logaddexp.reduce(phases.log_z.values) == pytest.approx(float(found.log_z), abs=1e-12)


def one_chain_a_group(walk):
    """The same walk with the first chain of every group alone."""
    return Walk(walk.data.isel(chain=[0]))


def test_the_error_of_log_z_leaves_out_a_chain_with_its_share_in_the_scale(walk):
    """The jackknife by hand: the pool of all other chains, with a scale of its own."""
    walk = one_chain_a_group(walk)
    found = observables.partition_function(walk, errors="replicas")
    rest = [observables.partition_function(Walk(walk.data.drop_isel(group=g))) for g in range(GROUPS)]
    by_hand = np.sqrt((GROUPS - 1) * np.var([float(one.log_z) for one in rest]))
    assert float(found.log_z_err) == pytest.approx(by_hand, rel=0.02)
    fixed = found.log_z_err.values / np.sqrt((GROUPS - 1) * np.var(observables.Pool(walk).scale.without))
    assert fixed != pytest.approx(1.0, rel=0.02)


def test_the_scale_is_that_of_its_equation(walk):
    """Solved for a chain less, its equation has the root that the first order promises."""
    walk = one_chain_a_group(walk)
    scale = scale_of(walk)
    for left_out in (0, 7):
        rest = scale_of(Walk(walk.data.drop_isel(group=left_out)))
        assert rest.log_c == pytest.approx(scale.without[left_out], abs=1e-3)
        assert rest.log_c != pytest.approx(scale.log_c, abs=1e-4)


def test_chains_of_a_group_count_one_by_one():
    """16 groups know an error to a fifth, their 640 chains to a thirtieth, whichever walk of many is asked."""
    errors = []
    for seed in range(12):
        energy = np.random.default_rng(seed).exponential(size=(GROUPS, 20, CHAINS))
        samples = {"energy": energy, "x": np.random.default_rng(100 + seed).normal(size=energy.shape)}
        errors.append(float(observables.order_parameters(synthetic.walk(samples), beta=0.0).x_err))
    wanted = 1 / np.sqrt(GROUPS * 20 * CHAINS)
    assert np.mean(errors) == pytest.approx(wanted, rel=0.03)
    assert np.std(errors) < 0.08 * wanted


def test_draws_that_chains_never_meet_count_as_draws(walk):
    """With twice as many draws, half of them where w = 0, the mean of w is half of what it was."""
    draws = walk.data["prior_log_w"].values
    twice = np.concatenate([draws, np.full_like(draws, -np.inf)], axis=1)
    after = observables.Pool(Walk(walk.data.drop_vars("prior_log_w").assign(prior_log_w=(("group", "draw"), twice)))).scale
    assert after.log_c == pytest.approx(scale_of(walk).log_c - np.log(2), abs=0.05)


def test_chains_that_meet_no_draw_have_no_scale_to_be_believed(walk):
    assert scale_of(walk, prior_log_w=walk.data["prior_log_w"] - 60).meetings.sum() < 1e-3


def test_averages_are_those_of_any_target(walk):
    found = observables.order_parameters(walk, beta=[0.25, 1.0])
    exact = D / (1 + np.array([0.25, 1.0]) / SIGMA**2)
    assert (np.abs(found.r2 - exact) < 4 * found.r2_err).all()
    assert (found.r2_err < 0.05 * exact).all()


def test_crossings_are_counted_between_the_phases_only():
    q = np.array([[[0.0], [0.5], [1.0], [0.5], [1.0], [0.4], [0.0]]])
    assert crossings([synthetic.walk({"energy": q, "q": q})], "q", (0.2, 0.8)).tolist() == [2]


def test_starts_lie_between_the_energies_and_spread_over_the_levels(ladder):
    low, high = 1.0, 6.0
    start = spread_starts(ladder, low, high, groups=4, chains=25)
    energy = (start**2).sum(axis=-1) / (2 * SIGMA**2)
    assert start.shape == (4, 25, D)
    assert ((energy > low) & (energy < high)).all()
    assert (energy.max(axis=1) > 1.5 * energy.min(axis=1)).all()
    with pytest.raises(ValueError, match="no configuration with an energy between 900 and 901"):
        spread_starts(ladder, 900, 901, 2, 2)


def test_what_only_ladders_know_is_refused(walk):
    pool = observables.Pool(walk)
    for question in (
        observables.diagnostics,
        observables.quadrature,
        observables.level_marginal,
    ):
        with pytest.raises(TypeError, match="chains of a walk have no levels"):
            question(pool)
    with pytest.raises(TypeError, match="chains have no ancestors"):
        observables.partition_function(pool, errors="genealogy")


def test_only_parts_of_one_walk_are_pooled(ladder, walk):
    other = Walk(walk.data.assign(weight_log=walk.data["weight_log"] + np.arange(4)))
    with pytest.raises(ValueError, match="successive parts of one walk"):
        observables.Pool([walk, other])
    with pytest.raises(TypeError, match="Ladder, Walk was given"):
        observables.Pool([ladder, walk])
    with pytest.raises(ValueError, match="Errors from chains need at least 2"):
        observables.partition_function(synthetic.walk({"energy": np.ones((1, 200, 1))}))
