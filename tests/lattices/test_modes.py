"""The modes are orthonormal and diagonalise the free field, and all ways to compute them agree."""

import jax
import numpy as np
import pytest

import lattices
from lattices.graph import from_links
from lattices.torus import Torus, periodic

SHAPES = [(2,), (5,), (4, 2), (6, 10), (3, 4, 5), (2, 3, 2, 3)]


def stencil(shape):
    """-Laplacian of a periodic lattice as a matrix, link by link, for comparison."""
    sites = np.arange(np.prod(shape)).reshape(shape)
    laplacian = np.zeros((sites.size, sites.size))
    for axis in range(len(shape)):
        for a, b in zip(sites.ravel(), np.roll(sites, -1, axis).ravel(), strict=True):
            laplacian[a, a] += 1
            laplacian[b, b] += 1
            laplacian[a, b] -= 1
            laplacian[b, a] -= 1
    return laplacian


def links_of(shape):
    sites = np.arange(np.prod(shape)).reshape(shape)
    return [
        (a, b)
        for axis in range(len(shape))
        for a, b in zip(sites.ravel().tolist(), np.roll(sites, -1, axis).ravel().tolist(), strict=True)
    ]


def mode_matrix(lattice):
    """Row x holds the modes of a field that is 1 at site x."""
    unit_fields = np.eye(lattice.sites, dtype=np.float32).reshape(-1, *lattice.shape)
    return np.asarray(lattice.to_modes(unit_fields), float)


@pytest.mark.parametrize("transform", ["matrix", "fft"])
@pytest.mark.parametrize("shape", SHAPES)
def test_modes_are_orthonormal_and_diagonalise_the_laplacian(shape, transform):
    lattice = Torus(shape, transform)
    modes = mode_matrix(lattice)
    np.testing.assert_allclose(modes @ modes.T, np.eye(lattice.sites), atol=2e-6)
    np.testing.assert_allclose(modes.T @ stencil(shape) @ modes, np.diag(lattice.eigenvalues), atol=2e-5)


@pytest.mark.parametrize("lattice", [Torus((6, 10), "matrix"), Torus((6, 10), "fft"), from_links(links_of((4, 3)))])
def test_from_modes_is_transpose_and_inverse(lattice):
    x = np.random.default_rng(0).normal(size=(2, 3, *lattice.shape)).astype(np.float32)
    y = lattice.to_modes(x)
    assert y.shape == (2, 3, lattice.sites)
    np.testing.assert_allclose(lattice.from_modes(y), x, atol=3e-6)
    z = np.random.default_rng(1).normal(size=y.shape).astype(np.float32)
    np.testing.assert_allclose((z * y).sum(), (lattice.from_modes(z) * x).sum(), rtol=1e-4)


@pytest.mark.parametrize("lattice", [Torus((4, 3), "matrix"), from_links(links_of((4, 3)))], ids=["torus", "graph"])
def test_laplacian_is_half_the_gradient_of_the_link_energy(lattice):
    x = np.random.default_rng(3).normal(size=(2, *lattice.shape)).astype(np.float32)
    expected = x.reshape(2, -1) @ stencil((4, 3))
    np.testing.assert_allclose(np.asarray(lattice.laplacian(x)).reshape(2, -1), expected, atol=1e-5)


def test_the_transform_follows_the_longest_axis():
    assert periodic((8, 40)).transform == "matrix"
    assert periodic((8, 512)).transform == "fft"


@pytest.mark.parametrize("shape", [(2,), (2, 2), (3, 5), (4, 2, 3)])
def test_a_torus_by_its_links_is_the_same_torus(shape):
    """Also with L = 2, where two links join each pair."""
    by_links, by_axes = from_links(links_of(shape)), periodic(shape)
    np.testing.assert_allclose(by_links.eigenvalues, np.sort(by_axes.eigenvalues), atol=1e-5)
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(by_links.link_energy(x.ravel()), by_axes.link_energy(x), rtol=1e-5)
    np.testing.assert_allclose(by_links.lowest_power(x.ravel()), by_axes.lowest_power(x), rtol=1e-4)


def test_netket_square_lattice_gives_the_same_model():
    import netket as nk

    couplings = {4: -1.0, 6: 0.2}
    by_graph = lattices.scalar_field_on_graph(nk.graph.Square(6), mu2=2.3, couplings=couplings, stiffness=2.0)
    by_axes = lattices.scalar_field((6, 6), mu2=2.3, couplings=couplings, stiffness=2.0)
    x = by_axes.sample_prior(jax.random.key(0), 1)[0]
    assert_same = np.testing.assert_allclose
    assert_same(by_graph.energy(x.ravel()), by_axes.energy(x), rtol=1e-5)
    assert_same(by_graph.log_prior(x.ravel()), by_axes.log_prior(x), rtol=1e-5)
    recorded = by_graph.observe(x.ravel())
    for name, expected in by_axes.observe(x).items():
        assert_same(recorded[name], expected, rtol=1e-4, err_msg=name)
    assert_same(by_graph.stop["energy"], by_axes.stop["energy"], rtol=1e-5)


@pytest.mark.parametrize("kind", ["Triangular", "Honeycomb", "Kagome", "open"])
def test_netket_lattices_of_other_kinds(kind):
    import netket as nk

    if kind == "open":
        source = nk.graph.Grid([4, 5], pbc=False)
    else:
        source = getattr(nk.graph, kind)([3, 4])
    lattice = from_links(source)
    degrees = {"Triangular": 6, "Honeycomb": 3, "Kagome": 4}
    laplacian = np.diag([len(neighbours) for neighbours in source.adjacency_list()]).astype(float)
    for a, b in source.edges():
        laplacian[a, b] -= 1
        laplacian[b, a] -= 1
    if kind in degrees:
        assert set(np.diag(laplacian)) == {degrees[kind]}
    modes = mode_matrix(lattice)
    np.testing.assert_allclose(modes.T @ laplacian @ modes, np.diag(lattice.eigenvalues), atol=2e-5)
    assert lattice.eigenvalues[1 + lattice.lowest_count] > lattice.lowest_eigenvalue + 1e-4
