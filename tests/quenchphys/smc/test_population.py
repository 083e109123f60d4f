"""Branching and resampling represent the same weighted measure; effective sizes mean what they say."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenchphys.smc.levels import SoftLevels, Temperatures
from quenchphys.smc.population import branch, choice_bias, effective_size, lineage_effective_size, normalise, resample
from quenchphys.smc.step import ratio_and_slope


@pytest.fixture
def weighted():
    rng = np.random.default_rng(1)
    w = rng.gamma(0.7, size=60)
    w[rng.choice(60, 15, replace=False)] = 0.0
    return np.log(w / w.sum(), where=w > 0, out=np.full(60, -np.inf)).astype(np.float32)


def test_branching_keeps_the_measure_exactly(weighted):
    parent, log_weight = branch(jax.random.key(0), jnp.asarray(weighted))
    carried = np.zeros(60)
    np.add.at(carried, np.asarray(parent), np.exp(np.asarray(log_weight, np.float64)))
    np.testing.assert_allclose(carried, np.exp(weighted.astype(np.float64)), rtol=1e-5)
    alive = weighted > -np.inf
    assert np.array_equal(np.asarray(parent)[alive], np.flatnonzero(alive))
    assert np.all(np.asarray(log_weight) > -np.inf)


def test_branching_chooses_donors_by_weight(weighted):
    keys = jax.random.split(jax.random.key(2), 20_000)
    parents = np.asarray(jax.vmap(lambda k: branch(k, jnp.asarray(weighted))[0])(keys))
    dead = weighted == -np.inf
    for slot in np.flatnonzero(dead)[[0, -1]]:
        share = np.bincount(parents[:, slot], minlength=60) / len(keys)
        expected = np.exp(weighted)
        error = np.sqrt(expected * (1 - expected) / len(keys))
        assert np.all(np.abs(share - expected) <= 4.5 * error + 1e-12)


def test_resampling_is_that_of_blackjax(weighted):
    from blackjax.smc.resampling import systematic

    for seed in range(50):
        key, log_weight = jax.random.key(seed), jnp.asarray(weighted)
        np.testing.assert_array_equal(resample(key, log_weight, 25), systematic(key, jnp.exp(log_weight), 25))


def test_resampling_keeps_the_measure_in_expectation(weighted):
    keys = jax.random.split(jax.random.key(3), 20_000)
    chosen = np.asarray(jax.vmap(lambda k: resample(k, jnp.asarray(weighted), 25))(keys))
    copies = np.stack([np.bincount(row, minlength=60) for row in chosen])
    expected = 25 * np.exp(weighted)
    assert np.all(np.abs(copies - expected) < 1 + 1e-4), "systematic resampling is never a whole copy off"
    error = copies.std(axis=0) / np.sqrt(len(keys))
    assert np.all(np.abs(copies.mean(axis=0) - expected) <= 4.5 * error + 1e-6)


def test_effective_sizes():
    equal = jnp.log(jnp.full(8, 1 / 8))
    assert float(effective_size(equal)) == pytest.approx(8)
    assert float(effective_size(jnp.array([0.0, -jnp.inf, -jnp.inf]))) == pytest.approx(1)
    assert float(effective_size(jnp.full(3, -jnp.inf))) == 0
    # Two families of four equal particles are two lineages.
    assert float(lineage_effective_size(equal, jnp.array([0, 0, 0, 0, 5, 5, 5, 5]))) == pytest.approx(2)


def share_kept(log_weight, log_ratio):
    """<r>^2/<r^2> in double precision."""
    w, r = (np.exp(np.asarray(a, np.float64)) for a in (log_weight, log_ratio))
    w, r = w / w.sum(), np.nan_to_num(r / r.max())
    return (w @ r) ** 2 / (w @ r**2)


def test_carried_weights_do_not_sway_the_choice_of_a_level():
    """S = beta U: the slack of a level is gamma distributed and log G(E) = beta E.  Weights that say nothing are carried."""
    softness, beta, n, runs = 20.0, 1.0, 32, 4000
    family = SoftLevels(np.float32(softness))
    rng = np.random.default_rng(12)
    energy = jnp.float32(-rng.gamma(softness + 1, 1 / beta, size=(runs, n)))  # below the level at 0
    carried = rng.normal(scale=0.8, size=(runs, n))  # effective size about half
    carried = jnp.float32(carried - np.logaddexp.reduce(carried, axis=1, keepdims=True))

    @jax.vmap
    def error(energy, log_weight):
        new = family.next(energy, log_weight, jnp.float32(0.0), jnp.float32(0.95))
        _, log_ratio = normalise(log_weight + family.log_ratio(energy, jnp.float32(0.0), new))
        return log_ratio - beta * new

    found = np.asarray(jax.jit(error)(energy, carried), float)
    # Of a given level the mean of log r is low by half its variance; what the choice of the level adds is no larger.
    assert abs(found.mean()) < found.var() + 4 * found.std() / np.sqrt(runs)


@pytest.mark.parametrize("carried", [0.0, 0.8], ids=["alike", "weighted"])
@pytest.mark.parametrize("family", [SoftLevels(2.0), SoftLevels(20.0), Temperatures(9.0)], ids=["2", "20", "temper"])
def test_the_bias_of_a_chosen_level_is_known(family, carried):
    """Exact populations again, here with the mean of r itself, not its logarithm, so that nothing but the choice is biased.

    Soft levels have S = U, log G(E) = E; temperatures have U ~ gamma(20), G(beta) = (1 + beta)^-20, from beta = 1.
    """
    n, runs, target = 64, 20_000, jnp.float32(0.95)
    rng = np.random.default_rng(4)
    soft = isinstance(family, SoftLevels)
    shape = float(family.softness) + 1 if soft else 20.0
    slack = rng.gamma(shape, 1.0 if soft else 0.5, size=(runs, n))
    energy, here = jnp.float32(-slack if soft else slack), jnp.float32(0.0 if soft else 1.0)
    log_weight = rng.normal(scale=carried, size=(runs, n))
    log_weight = jnp.float32(log_weight - np.logaddexp.reduce(log_weight, axis=1, keepdims=True))

    @jax.vmap
    def errors(energy, log_weight):
        new = family.next(energy, log_weight, here, target)
        step, slope = ratio_and_slope(family, energy, here, new)
        _, log_ratio = normalise(log_weight + step)
        exact = new if soft else -20.0 * jnp.log1p((new - 1.0) / 2.0)
        return log_ratio - exact, choice_bias(log_weight, step, slope, jnp.arange(n))

    error, bias = (np.asarray(a, float) for a in jax.jit(errors)(energy, log_weight))
    before, after = np.expm1(error), np.expm1(error - bias)
    noise = before.std() / np.sqrt(runs)
    if soft and family.softness == 2.0:  # elsewhere it is hardly larger than the noise of all these runs
        assert before.mean() > 6 * noise
    assert abs(after.mean()) < 3 * noise + 0.1 * abs(before.mean())


@pytest.mark.parametrize("softness", [-0.5, 0.0, 0.5, 2.0, 30.0])
def test_soft_levels(softness):
    family = SoftLevels(np.float32(softness))
    rng = np.random.default_rng(5)
    energy = (1000 + rng.gamma(3.0, size=2000)).astype(np.float32)
    energy[3] = np.inf
    parameter = family.first(jnp.asarray(energy), 500.0)
    log_factor = family.log_factor(jnp.asarray(energy), parameter)
    assert float(effective_size(log_factor)) == pytest.approx(500, rel=0.02 if softness >= 0 else 0.3)
    log_weight, _ = normalise(log_factor)
    new = family.next(jnp.asarray(energy), log_weight, parameter, 0.9)
    assert float(new) < float(parameter)
    ratio = family.log_ratio(jnp.asarray(energy), parameter, new)
    assert share_kept(log_weight, ratio) == pytest.approx(0.9, rel=0.02 if softness >= 0 else 0.4)
    alive = energy < float(new)
    slack = float(parameter) - energy[alive].astype(np.float64)
    exact = softness * np.log((float(new) - energy[alive].astype(np.float64)) / slack)
    np.testing.assert_allclose(np.asarray(ratio)[alive], exact, atol=1e-3 * max(1, abs(softness)))
    assert np.all(np.asarray(ratio)[~alive] == -np.inf)


def test_temperatures():
    family = Temperatures(np.float32(1.0))
    energy = jnp.asarray(np.random.default_rng(6).normal(1e4, 40.0, size=2000), jnp.float32)
    first = family.first(energy, 1000.0)
    log_factor = family.log_factor(energy, first)
    assert 0 < float(first) < 0.1
    assert float(effective_size(log_factor)) == pytest.approx(1000, rel=0.02)
    log_weight, _ = normalise(log_factor)
    second = family.next(energy, log_weight, first, 0.9)
    ratio = family.log_ratio(energy, first, second)
    assert share_kept(log_weight, ratio) == pytest.approx(0.9, rel=0.02)
    # A step that keeps enough all the way to the end goes there at once.
    assert float(family.next(energy * 1e-6, log_weight, first, 0.9)) == 1.0
