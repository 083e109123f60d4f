"""Draws of configurations: exact means and shares, calibrated over seeds, and what cannot be drawn is refused."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import observables
import quenchphys as qp
from quenchphys.ladder import Ladder
from quenchphys.walk import Walk
from tests.support import synthetic

SMALL = synthetic.Chi2(d1=2, d2=1, top=-0.6)  # a twentieth of Z lies above the first level


def without_prior_draws(ladder):
    """The ladder as older versions wrote it, with configurations of levels alone."""
    kept = ladder.configurations
    tree = ladder.tree.copy()
    tree["configurations"].dataset = kept.isel(sample=np.flatnonzero((kept["level"] >= 0).all("replica").values))
    return Ladder(tree)


def with_prior_draws(ladder, every=4):
    """A ladder of the engine that kept every fourth draw from the prior as well, without its field."""
    kept, draws = ladder.configurations, ladder.prior.sizes["draw"]
    draw = np.tile(np.arange(0, draws, every), (kept.sizes["replica"], 1))
    more = xr.Dataset({
        "field": (kept["field"].dims, np.zeros((*draw.shape, *kept["field"].shape[2:]), np.float32)),
        "level": (("replica", "sample"), np.full(draw.shape, -1)),
        "particle": (("replica", "sample"), draw),
    })  # fmt: skip
    tree = ladder.tree.copy()
    tree["configurations"].dataset = xr.concat([kept, more], "sample")
    return Ladder(tree)


def z_of(chains, exact):
    """Of the mean over chains, by Student's t mapped to the normal."""
    t = (chains.mean() - exact) / (chains.std(ddof=1) / np.sqrt(len(chains)))
    return stats.norm.isf(stats.t.sf(t, len(chains) - 1))


@pytest.mark.parametrize(
    ("problem", "softness", "particles", "last"),
    [(SMALL, 2.0, 240, 1.0), (SMALL, None, 240, 4), (synthetic.Chi2(), 20.0, 48, 3.0)],
)
def test_draws_have_the_means_of_the_target(problem, softness, particles, last):
    """Over many seeds: the mean energy and an observable, at the couplings of the run and at others.

    A chain that rests on n effective configurations is biased by about 1/n, here a tenth of the error of eight.
    """
    z = []
    for seed in range(20):
        made = observables.Pool(synthetic.ladder(problem, softness, particles, 8, seed, ess=0.7, last=last))
        drawn = observables.posterior(made, draws=1000, seed=seed)
        moved = observables.posterior(made, draws=1000, seed=seed, a=1.8)
        z.append([
            z_of(drawn.energy.mean("draw").values, problem.canonical(1.0).mean()),
            z_of(moved.s1.mean("draw").values, problem.d1 / (1 + 2 * 1.8)),
        ])  # fmt: skip
    z = np.array(z)
    # Of 20 scores the mean has the error 0.22 and the standard deviation 0.16.
    assert np.all(np.abs(z.mean(axis=0)) < 0.7), z.mean(axis=0)
    assert np.all((z.std(axis=0) > 0.55) & (z.std(axis=0) < 1.5)), z.std(axis=0)


def test_draws_are_labelled_and_carry_their_fields():
    made = synthetic.ladder(synthetic.TwoPhases(), particles=200, replicas=8, seed=4, ess=0.8, last=17.0)
    drawn = observables.posterior(made, draws=400, seed=1)
    assert drawn.field.dims == ("chain", "draw", "component")
    assert drawn.sizes["chain"] == 8
    np.testing.assert_array_equal(drawn.field[..., 0], drawn.energy)
    share = (drawn.energy < 30).mean("draw")
    assert abs(share.mean() - 0.5) < 4 * share.std() / np.sqrt(8)
    assert drawn.ess.min() > 10
    with pytest.raises(ValueError, match="draws"):
        observables.posterior(made, draws=0)
    with pytest.raises(ValueError, match="do not"):
        observables.posterior(made, beta=40.0)


def test_chains_weigh_by_their_z():
    """Few particles, so that replicas differ; a quarter of them was kept, so averages agree within their errors only."""
    made = observables.Pool(synthetic.ladder(SMALL, 2.0, particles=60, replicas=16, seed=3))
    drawn = observables.posterior(made, draws=4000)
    alone = observables.diagnostics(made).log_z.values
    np.testing.assert_allclose(drawn.weight, np.exp(alone - alone.max()) / np.exp(alone - alone.max()).sum(), rtol=1e-6)
    assert drawn.weight.max() > 1.2 * drawn.weight.min()
    pooled = float(observables.order_parameters(made).energy)
    each = drawn.energy.mean("draw")
    assert abs(float(each.weighted(drawn.weight).mean()) - pooled) < 3 * float(each.std()) / np.sqrt(16)


def test_without_prior_draws_a_target_above_the_levels_is_refused():
    made = without_prior_draws(synthetic.ladder(SMALL, particles=200, replicas=4, seed=1, last=1.0))
    with pytest.raises(ValueError, match=r"replica 0 kept cannot represent .* of it lies at energies where hardly any"):
        observables.posterior(made)
    # A target within the levels does not need them.
    low = without_prior_draws(synthetic.ladder(synthetic.Chi2(), particles=200, replicas=8, seed=1))
    drawn = observables.posterior(low, draws=2000).energy.mean("draw").values
    assert abs(z_of(drawn, synthetic.Chi2().canonical(1.0).mean())) < 3


def test_draws_of_the_engine():
    """Of the Gaussian in two dimensions most of Z lies above the first level."""
    z = []
    for seed in range(3):
        made = with_prior_draws(qp.quench(qp.targets.gaussian(2), particles=200, replicas=8, seed=seed, progress=False))
        z.append(z_of(observables.posterior(made, draws=1000).energy.mean("draw").values, 0.8))
    assert abs(np.mean(z)) < 3 / np.sqrt(3), z


def test_draws_of_a_walk_come_from_its_last_configurations():
    """Chains of pi(x) exp(-U/2) in several parts; U is 4 |x|^2/2 and each coordinate normal, so everything is exact."""
    dim, parts = 4, 5
    z = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        walks = []
        for _ in range(parts):
            x = rng.standard_normal((8, 20, 10, dim)) / np.sqrt(1 + 2)
            r2, prior = (x**2).sum(axis=-1), (rng.standard_normal((8, 200, dim)) ** 2).sum(axis=-1)
            seen = {"energy": 2 * r2, "r2": r2, "log_w": 3.0 - r2}
            walks.append(synthetic.walk(seen, 3.0 - prior, last=x[:, -1]))
        drawn = observables.posterior(walks, draws=400, seed=seed)
        assert drawn.field.dims == ("chain", "draw", "site")
        assert drawn.sizes["chain"] == 1
        np.testing.assert_allclose((drawn.field**2).sum("site"), drawn.r2, rtol=1e-6)
        z.append((drawn.r2.mean().item() - dim / 5) / (drawn.r2.std().item() / np.sqrt(drawn.ess.item())))
    # The draws themselves add to the error, and the effective number is approximate.
    assert abs(np.mean(z)) < 3 * 1.3 / np.sqrt(30), z
    assert 0.5 < np.std(z) < 1.7, z
    few = Walk(walks[0].data.isel(group=slice(0, 2), chain=slice(0, 5)))
    with pytest.raises(ValueError, match="walk kept only"):
        observables.posterior(few)
