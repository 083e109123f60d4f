"""Levels of energies of any size: the first one, the weights from one to the next, and a hard core against quadrature."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp

import quenchphys as qp
from quenchphys.smc.levels import SoftLevels, Temperatures
from quenchphys.smc.population import effective_size

RNG = np.random.default_rng(5)
DRAWS, PARTICLES = 4000, 400
ENERGIES = {
    "gaussian": RNG.normal(size=DRAWS),
    "far from zero": 3e4 + RNG.normal(size=DRAWS),
    "minute": 1e-6 * RNG.exponential(size=DRAWS),
    "a hard core": np.minimum(np.abs(RNG.normal(size=DRAWS)) ** -12.0, 1e30),
    "tails over fifty orders of magnitude": np.exp(10 * RNG.normal(size=DRAWS)),
    "a third infinite": np.where(RNG.uniform(size=DRAWS) < 1 / 3, np.inf, RNG.exponential(size=DRAWS)),
}


@pytest.mark.parametrize("name", ENERGIES)
@pytest.mark.parametrize("softness", [0.5, 2.0, 64.0])
def test_the_first_level_has_the_wanted_size_whatever_the_tail(name, softness):
    energy = jnp.asarray(ENERGIES[name], jnp.float32)
    levels = SoftLevels(softness)
    top = levels.first(energy, float(PARTICLES))
    size = float(effective_size(levels.log_factor(energy, top)))
    assert PARTICLES <= size < 1.05 * PARTICLES


def test_the_first_level_of_draws_of_which_most_have_the_lowest_energy():
    energy = jnp.asarray(np.where(np.arange(DRAWS) < 3000, -7.0, 1e20), jnp.float32)
    levels = SoftLevels(2.0)
    assert -7.0 < float(levels.first(energy, float(PARTICLES))) < 0.0


@pytest.mark.parametrize("name", ENERGIES)
def test_the_first_temperature_has_the_wanted_size_whatever_the_tail(name):
    energy = jnp.asarray(np.minimum(ENERGIES[name], 1e29), jnp.float32)
    levels = Temperatures(np.float32(1e7 if name == "minute" else 1.0 if name == "gaussian" else 100.0))
    beta = levels.first(energy, float(PARTICLES))
    size = float(effective_size(levels.log_factor(energy, beta)))
    assert 0.99 * PARTICLES < size < 1.05 * PARTICLES or float(beta) == float(levels.last)


@pytest.mark.parametrize("old", [3.0, 1e3, 1e7, 1e12, 1e25])
@pytest.mark.parametrize("new", [2.999, 2.0, 1.3])
def test_weights_are_exact_to_rounding_however_far_a_level_falls(old, new):
    """nu log(s'/s) in float32 against float64: the error is some roundings of 1, not of the quotient."""
    energy = np.array([-1.0, 0.5, 1.25, 1.29999], np.float32)
    softness = 32.0
    old, new = np.float32(old), np.float32(new)
    found = np.asarray(SoftLevels(softness).log_ratio(jnp.asarray(energy), old, new), float)
    slack, before = (np.float64(level) - energy.astype(float) for level in (new, old))
    np.testing.assert_allclose(found, softness * np.log(slack / before), rtol=3e-7, atol=4e-7 * softness)


def test_a_metropolis_ratio_is_exact_to_rounding_however_far_the_energy_moves():
    levels, wall = SoftLevels(32.0), np.float32(1e12)
    energy, proposed = np.float32(3.0), np.float32(1e12) - np.float32(2**17)
    expected = 32.0 * np.log((float(wall) - float(proposed)) / (float(wall) - float(energy)))
    assert abs(float(levels.log_change(energy, proposed, wall)) - expected) < 1e-5 * abs(expected)
    assert abs(float(levels.log_change(proposed, energy, wall)) + expected) < 1e-5 * abs(expected)
    assert float(levels.log_change(energy, wall, wall)) == -np.inf


class HardCore:
    """A particle in three dimensions with the potential 4 epsilon ((sigma/r)^2n - (sigma/r)^n) and a Gaussian prior."""

    def __init__(self, power: int, sigma: float = 2.0, epsilon: float = 5.0):
        self.power, self.sigma, self.epsilon = power, sigma, epsilon

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 3))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        a = (self.sigma**2 / jnp.sum(x * x)) ** (self.power / 2)
        return 4 * self.epsilon * a * (a - 1)

    @property
    def log_z(self) -> float:
        def integrand(r):
            a = (self.sigma / r) ** self.power
            return np.sqrt(2 / np.pi) * r * r * np.exp(-r * r / 2 - 4 * self.epsilon * a * (a - 1))

        return float(np.log(quad(integrand, 0.8 * self.sigma, 20.0, points=[2.0, 2.25, 4.0], limit=500)[0]))


def log_z_of(ladder: qp.Ladder) -> np.ndarray:
    """log Z of each replica by the balance heuristic, with the measured volumes and the exact mixture at every sample."""
    found = []
    for r, count in enumerate(ladder.levels.level_count.values):
        level, log_volume = (ladder.levels[name].values[r, :count].astype(float) for name in ("energy", "log_volume"))
        particles, draws = ladder.particles.sizes["particle"], ladder.prior.sizes["draw"]
        below = ladder.particles.isel(replica=r, level=slice(0, count))
        energy = np.concatenate([ladder.prior.energy.values[r], below.energy.values.ravel()]).astype(float)
        log_w = np.concatenate([np.zeros(draws), np.log(particles) + below.log_weight.values.ravel().astype(float)])
        there = np.isfinite(energy) & np.isfinite(log_w)
        energy, log_w = energy[there], log_w[there]
        slack = level[:, None] - energy
        log_f = np.where(slack > 0, ladder.softness * np.log(np.where(slack > 0, slack, 1.0)), -np.inf)
        mixture = logsumexp(np.log(particles) + log_f - log_volume[:, None], axis=0)
        found.append(logsumexp(log_w - energy - np.logaddexp(np.log(draws), mixture)))
    return np.array(found)


def test_energies_that_are_too_large_count_as_infinite():
    """Near the end of float32, differences and gradients overflow; such draws are dead, and the rest is sampled rightly."""
    model = HardCore(36)
    ladder = qp.quench(model, particles=100, replicas=2, seed=1, stop=qp.LevelLimit(3))
    energy = ladder.prior.energy.values
    assert np.isinf(energy).any() and energy[np.isfinite(energy)].max() <= 1e30
    assert (energy[np.isfinite(energy)] > 1e20).any()
    assert ladder.attrs["undefined_draws"] == 0


@pytest.mark.parametrize("power", [6, 36])
def test_a_hard_core_has_the_log_z_of_quadrature(power):
    """Energies of prior draws up to 1e20, or beyond what float32 holds; levels that fall by many orders of magnitude."""
    model = HardCore(power)
    ladder = qp.quench(model, particles=100, replicas=32, seed=1)
    assert np.nanmax(ladder.prior.energy) > 1e15
    assert ladder.outcome.trusted
    z = np.exp(log_z_of(ladder) - model.log_z)
    assert abs(z.mean() - 1) < 4 * z.std(ddof=1) / np.sqrt(len(z)), "and Z itself is unbiased"
    assert z.std() / np.sqrt(len(z)) < 0.03


def test_levels_may_be_prescribed_from_far_above():
    """The first level at 1e25, the second at 100: what a step weighs is exact however far it goes."""
    model = HardCore(6)
    ladder = qp.quench(
        model, particles=100, replicas=32, seed=2, levels=[1e25, 100.0, 10.0, 3.0, 0.0, -2.0, -3.5, -4.5]
    )
    z = np.exp(log_z_of(ladder) - model.log_z)
    assert abs(z.mean() - 1) < 4 * z.std(ddof=1) / np.sqrt(len(z))
    assert z.std() / np.sqrt(len(z)) < 0.05
