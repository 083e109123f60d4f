"""Every kernel leaves the density of a level invariant: started in it, the population stays in it."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import quenchphys as qp
from quenchphys.kernels import HMC, MALA, Barker, MinimumNorm
from quenchphys.parallel.random_numbers import Stream, normal, threefry
from quenchphys.problem import view
from quenchphys.smc.density import Density, evaluate
from quenchphys.smc.levels import SoftLevels, Temperatures
from tests.support.exact_draws import draw_level

DIM, N = 6, 40_000
TARGET = qp.targets.spike_slab(DIM)
VIEW = view(TARGET)
# Inside the transition region of the target, where both phases count.
LEVELS = {
    "soft": (SoftLevels(np.float32(2.0)), 0.5),
    "hard": (SoftLevels(np.float32(0.0)), 0.5),
    "singular": (SoftLevels(np.float32(-0.4)), 0.5),
    "tempered": (Temperatures(np.float32(1.0)), 0.7),
}
KERNELS = {
    "mala": MALA(step_size=0.8),
    "hmc": HMC(leapfrogs=4, step_size=0.5),
    "minimum norm": MinimumNorm(steps=3, step_size=0.7),
    "barker": Barker(step_size=1.2),
}


@partial(jax.jit, static_argnums=0)
def run(kernel, family, parameter, step, scale, x):
    """Twelve transitions; compiled once for each kernel and kind of level."""

    def transition(point, key):
        density = Density(VIEW, family, parameter)
        return kernel.transition(Stream(key), jax.random.fold_in(key, 1), point, density, step, scale)

    return jax.lax.scan(transition, evaluate(VIEW, x), jax.random.split(jax.random.key(7), 12))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_keeps_the_density_of_a_level(kernel, level):
    family, parameter = LEVELS[level]
    parameter = jnp.float32(parameter)
    x = draw_level(
        TARGET, lambda u: np.asarray(family.log_factor(jnp.float32(u), parameter)), N, np.random.default_rng(3)
    )
    # Anisotropic on purpose: the metric must not matter for what is sampled.
    scale = 0.3 * jnp.linspace(0.5, 1.5, DIM)
    # At a singular wall nearly all particles sit where any step is long.
    step = jnp.float32(KERNELS[kernel].step_size * (0.3 if level == "singular" else 1.0))

    start = evaluate(VIEW, jnp.float32(x))
    end, moves = run(KERNELS[kernel], family, parameter, step, scale, jnp.float32(x))
    acceptance = float(moves.acceptance.mean())
    assert 0.1 < acceptance < 0.97, "the step must be long enough for a wrong acceptance rule to show"
    moved = np.mean(np.any(np.asarray(end.position) != x.astype(np.float32), axis=1))
    assert moved > 0.6
    expected = draw_level(
        TARGET, lambda u: np.asarray(family.log_factor(jnp.float32(u), parameter)), N, np.random.default_rng(4)
    )
    for name, sampled, exact in [
        ("energy", np.asarray(end.energy), np.asarray(TARGET.radial_energy(np.sum(expected**2, 1), np))),
        ("first coordinate", np.asarray(end.position)[:, 0], expected[:, 0]),
        ("last coordinate squared", np.asarray(end.position)[:, -1] ** 2, expected[:, -1] ** 2),
    ]:
        assert stats.ks_2samp(sampled, exact).pvalue > 1e-3, name
        error = np.sqrt((sampled.var() + exact.var()) / N)
        assert abs(sampled.mean() - exact.mean()) < 4 * error, name
    assert np.all(np.asarray(start.energy) == np.asarray(evaluate(VIEW, start.position).energy))
    if level in ("soft", "hard", "singular"):
        assert np.max(np.asarray(end.energy)) < float(parameter)


def test_energies_carried_along_are_those_of_the_positions():
    """A point's energy and gradients stay those of its position through a long chain."""
    density = Density(VIEW, SoftLevels(np.float32(2.0)), jnp.float32(2.0))
    point = evaluate(VIEW, 0.1 * jax.random.normal(jax.random.key(0), (500, DIM)))

    @jax.jit
    def once(point, key):
        for kernel in KERNELS.values():
            point, _ = kernel.transition(Stream(key), key, point, density, jnp.float32(0.5), jnp.full(DIM, 0.3))
        return point

    for key in jax.random.split(jax.random.key(1), 10):
        point = once(point, key)
    again = evaluate(VIEW, point.position)
    for carried, computed in zip(point, again, strict=True):
        np.testing.assert_allclose(carried, computed, rtol=2e-5, atol=2e-5)


class StiffField:
    """Coordinates of very different prior precision, and U = |x|^2/2: at beta the precision is that of the prior + beta."""

    precision = np.geomspace(1, 1e4, 40, dtype=np.float32)
    basis = qp.SiteBasis((40,), precision)

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 40)) / jnp.sqrt(self.precision)

    def log_prior(self, x):
        return -0.5 * jnp.sum(self.precision * x * x)

    def energy(self, x):
        return 0.5 * jnp.sum(x * x)


def test_a_stiff_free_field_moves_exactly_and_keeps_its_density():
    """Long steps, at which leapfrog steps make an error in each of the forty coordinates."""
    problem, beta = StiffField(), 3.0
    precision = problem.precision + beta
    exact = np.random.default_rng(8).normal(size=(20_000, 40)) / np.sqrt(precision)
    scale = 1 / jnp.sqrt(jnp.float32(precision))

    def chain(given):
        problem = view(given)
        density = Density(problem, Temperatures(np.float32(beta)), jnp.float32(beta))

        def transition(point, key):
            return HMC(leapfrogs=3).transition(Stream(key), key, point, density, jnp.float32(0.7), scale)

        end, moves = jax.jit(
            lambda x: jax.lax.scan(transition, evaluate(problem, x), jax.random.split(jax.random.key(9), 8))
        )(jnp.float32(exact))
        return end, float(moves.acceptance.mean())

    class OnSites(StiffField):
        basis = None

    end, acceptance = chain(problem)
    # Only the softest coordinates, whose precision comes from U, are not moved exactly.
    assert 1 - acceptance < 0.5 * (1 - chain(OnSites())[1])
    reduced = np.asarray(end.position, float) * np.sqrt(precision)
    assert not np.any(reduced == exact * np.sqrt(precision))
    error = np.sqrt(2 / len(exact))
    assert np.max(np.abs((reduced**2).mean(0) - 1)) < 4 * error
    assert abs((reduced**2).mean() - 1) < 4 * error / np.sqrt(40)
    assert stats.kstest(reduced[:, 0], "norm").pvalue > 1e-3


def test_noise_is_jax_threefry_and_normal():
    from jax.extend.random import threefry_2x32

    key, counter = jax.random.key(11), jnp.arange(2000, dtype=jnp.uint32)
    words = jax.random.key_data(key)
    ours = threefry((words[0], words[1]), (counter[:1000], counter[1000:]))
    np.testing.assert_array_equal(jnp.concatenate(ours), threefry_2x32(words, counter))
    sample = np.asarray(normal(key, (300, 1001)))
    assert sample.shape == (300, 1001)
    assert stats.kstest(sample.ravel(), "norm").pvalue > 1e-3
    assert np.isfinite(sample).all()
    np.testing.assert_array_equal(normal(key, (50, 1001), first=200), sample[200:250])
    # No two rows alike, and no correlation between the two words of a pair.
    assert abs(np.corrcoef(sample[:, :501].ravel()[: 300 * 500], sample[:, 501:].ravel()[: 300 * 500])[0, 1]) < 0.01
    assert len(np.unique(sample[:, 0])) > 295


class Overflowing:
    """U = x^6 - x^4, which has no value in single precision far out (inf - inf), and none at all where x_0 > `edge`."""

    def __init__(self, edge):
        self.edge = edge

    shape = (4,)

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 4))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        return jnp.sum(x**6 - x**4) + jnp.where(x[0] > self.edge, jnp.nan, 0.0)


@pytest.mark.parametrize(("edge", "undefined"), [(np.inf, False), (1.0, True)])
def test_a_trajectory_that_runs_away_is_rejected_and_a_model_without_energy_is_named(edge, undefined):
    problem = view(Overflowing(edge))
    start = evaluate(problem, 0.1 * jax.random.normal(jax.random.key(0), (400, 4)))
    density = Density(problem, Temperatures(np.float32(1.0)), jnp.float32(1.0))
    for step, runs_away in ((0.3, False), (4.0, True)):
        key = jax.random.key(3)
        end, move = HMC(leapfrogs=8).transition(Stream(key), key, start, density, jnp.float32(step), jnp.ones(4))
        assert bool(jnp.isfinite(end.energy).all())
        assert (float(move.acceptance.mean()) < 0.5) == runs_away
        assert bool(move.undefined.any()) == (undefined and not runs_away)
