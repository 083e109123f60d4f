"""The denominator D(U): the table against a plain sum."""

import numpy as np
import pytest
from scipy.special import logsumexp

from observables.samples.mixture import TABLE_TOLERANCE, Mixture


def plain(mixture, energy):
    """log D as the formula says."""
    out = []
    for u in energy:
        terms = [np.log(mixture.draws)]
        for level, scale in zip(mixture.level, mixture.log_scale, strict=True):
            if mixture.softness is None:
                terms.append(scale - level * u)
            elif u < level:
                terms.append(scale + mixture.softness * np.log(level - u))
        out.append(logsumexp(terms))
    return np.array(out)


@pytest.mark.parametrize("softness", [-0.5, 0.0, 0.5, 1.0, 2.0, 2.7, 40.0])
def test_quenched_mixture_is_the_sum_over_its_levels(softness):
    rng = np.random.default_rng(3)
    level = np.sort(rng.gamma(2.0, 30.0, 300))[::-1]  # unevenly spaced, some of them nearly equal
    log_volume = 20 * np.log(level / level[0]) + 0.1 * rng.normal(size=300)
    mixture = Mixture(level, np.log(100) - log_volume, softness, draws=1000)
    energy = np.concatenate([rng.uniform(-5, level[0] + 20, 2000), level - 1e-6, level + 1e-6])
    np.testing.assert_allclose(mixture.log_density(energy), plain(mixture, energy), atol=3 * TABLE_TOLERANCE, rtol=0)


def test_tempered_mixture_is_the_sum_over_its_temperatures():
    beta = np.linspace(0.01, 1, 40)
    mixture = Mixture(beta, np.log(100) + 50 * np.log1p(4 * beta), None, draws=1000)
    energy = np.random.default_rng(0).uniform(0, 300, 2000)
    np.testing.assert_allclose(mixture.log_density(energy), plain(mixture, energy), atol=3 * TABLE_TOLERANCE, rtol=0)


@pytest.mark.parametrize("softness", [2.0, None])
def test_a_hard_core_does_not_coarsen_the_table(softness):
    """Levels from 1e13 down to a well of depth 5, and prior draws up to 1e20."""
    rng = np.random.default_rng(1)
    level = np.concatenate([np.geomspace(1e13, 1.0, 120), np.linspace(0.9, -4.5, 60)])
    if softness is None:
        level = np.geomspace(1e-13, 1.0, 180)
    log_volume = np.linspace(0.0, -6.0, 180) + (0.0 if softness is None else softness * np.log(level + 5.0))
    mixture = Mixture(level, np.log(100) - log_volume, softness, draws=1000)
    energy = np.concatenate([rng.uniform(-5, 5, 2000), 10 ** rng.uniform(0, 20, 2000)])
    np.testing.assert_allclose(mixture.log_density(energy), plain(mixture, energy), atol=3 * TABLE_TOLERANCE, rtol=0)


def test_slope_is_the_derivative():
    level = np.linspace(100, 5, 50)
    mixture = Mixture(level, np.log(100) - 15 * np.log(level), 2.0, draws=1000)
    energy = np.linspace(0.5, 98.7, 200)
    step = 1e-5
    difference = (mixture.exact(energy + step)[0] - mixture.exact(energy - step)[0]) / (2 * step)
    np.testing.assert_allclose(mixture.exact(energy)[1], difference, atol=1e-6)


def test_shares_are_those_of_the_mixture():
    level = np.linspace(100, 5, 50)
    mixture = Mixture(level, np.log(100) - 15 * np.log(level / 100), 2.0, draws=1000)
    energy = np.concatenate([np.linspace(1, 99, 1500), [120.0]])
    shares = np.zeros((len(energy), 50))
    for rows, near, share in mixture.shares(energy):
        shares[rows, near] = share
    exact = np.exp(mixture.log_scale + mixture.log_factors(energy) - plain(mixture, energy)[:, None])
    np.testing.assert_allclose(shares, exact, atol=1e-12)
    assert shares[0].sum() > 0.99
    assert shares[-1].sum() == 0
