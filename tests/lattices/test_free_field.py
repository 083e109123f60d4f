"""Prior draws are exact: two-point function and spectrum against those of the free field, by chi-square."""

import jax
import numpy as np
import pytest
from scipy import stats

import lattices

DRAWS = 20_000


def triangular():
    import netket as nk

    return lattices.scalar_field_on_graph(nk.graph.Triangular([6, 6]), mu2=0.5, m0_sq=0.4)


MODELS = {
    "1D": lambda: lattices.scalar_field((16,), mu2=0.5, m0_sq=0.3, stiffness=1.5),
    "2D": lambda: lattices.scalar_field((8, 6), mu2=0.5, m0_sq=0.5, stiffness=2.0),
    "2D by FFT": lambda: lattices.scalar_field((3, 70), mu2=0.5, m0_sq=0.5),
    "3D": lambda: lattices.scalar_field((4, 4, 5), mu2=0.5, m0_sq=0.7),
    "triangular": triangular,
}


def precision_matrix(model):
    """stiffness * Laplacian + m0_sq from the links, not from the modes."""
    sites = model.lattice.sites
    hessian = jax.jit(jax.hessian(model.lattice.link_energy))(np.zeros(model.shape, np.float32))
    return model.stiffness * np.asarray(hessian, float).reshape(sites, sites) / 2 + model.m0_sq * np.eye(sites)


@pytest.mark.parametrize("name", MODELS)
def test_prior_draws(name):
    model = MODELS[name]()
    x = np.asarray(model.sample_prior(jax.random.key(8), DRAWS), float).reshape(DRAWS, -1)
    precision = precision_matrix(model)
    covariance = np.linalg.inv(precision)

    # Spectrum: the power of every eigenvector, in units of its exact value, is chi-square over DRAWS.
    eigenvalues, vectors = np.linalg.eigh(precision)
    power = (x @ vectors) ** 2 * eigenvalues
    spectrum = (power.mean(axis=0) - 1) / np.sqrt(2 / DRAWS)
    # Two-point function <phi_0 phi_x>: whitened, so that its entries are independent.
    products = x[:, :1] * x - covariance[0]
    spread = np.outer(covariance[0], covariance[0]) + covariance[0, 0] * covariance
    whitened = np.linalg.solve(np.linalg.cholesky(spread), products.mean(axis=0)) * np.sqrt(DRAWS)

    for what, deviations in (("spectrum", spectrum), ("two-point function", whitened)):
        chi_square = float((deviations**2).sum())
        likelihood = stats.chi2.sf(chi_square, deviations.size)
        print(f"{name}: {what} chi^2 = {chi_square:.1f} for {deviations.size} degrees of freedom, p = {likelihood:.3f}")
        assert 1e-3 < likelihood < 1 - 1e-3


def test_a_slightly_wrong_mass_would_be_seen():
    """The chi-square above has the power to fail: draws of a mass five percent off are rejected."""
    model = MODELS["1D"]()
    x = np.asarray(model.sample_prior(jax.random.key(8), DRAWS), float)
    wrong = precision_matrix(model) + 0.05 * model.m0_sq * np.eye(16)
    eigenvalues, vectors = np.linalg.eigh(wrong)
    deviations = (((x @ vectors) ** 2 * eigenvalues).mean(axis=0) - 1) / np.sqrt(2 / DRAWS)
    assert stats.chi2.sf((deviations**2).sum(), 16) < 1e-3
