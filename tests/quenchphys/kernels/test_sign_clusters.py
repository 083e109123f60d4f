"""Sign clusters: connected sites, exact on small lattices by enumeration of all signs, and chains that use them."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import lattices
from quenchphys.kernels.sign_clusters import SignClusters, clusters
from quenchphys.parallel.random_numbers import key_of

# A ring with a chord, and a site that hangs on two links to the same neighbour.
LINKS = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4), (3, 4)]
MODELS = {
    "torus": lattices.scalar_field((3, 2), mu2=-1.0, couplings={4: 0.3}, stiffness=0.4),
    "graph": lattices.scalar_field_on_graph(LINKS, mu2=-1.0, couplings={4: 0.3, 6: 0.1}, stiffness=0.5),
}


def links_of(model):
    """All links (site, site), from the Laplacian of the prior alone."""
    sites = int(np.prod(model.shape))
    unit = jnp.eye(sites).reshape(sites, *model.shape)
    laplacian = np.asarray(model.lattice.laplacian(unit)).reshape(sites, sites)
    return [
        (a, b) for a in range(sites) for b in range(a + 1, sites) for _ in range(round(-laplacian[a, b]))
    ]  # fmt: skip


@pytest.mark.parametrize("shape", [(16, 16), (5, 3, 4)], ids=["square", "cube"])
def test_clusters_are_the_connected_sites(shape):
    model = lattices.scalar_field(shape, mu2=0.1)
    sites, lanes, axes = int(np.prod(shape)), 4, len(shape)
    joined = np.random.default_rng(1).random((axes, *shape, lanes)) < 1 / axes
    found = np.asarray(jax.jit(partial(clusters, model, shape=(*shape, lanes)))(joined)).reshape(sites, lanes)
    number = np.arange(sites).reshape(shape)
    for lane in range(lanes):
        ends = [(number[link], np.roll(number, -1, axis)[link]) for axis, link in enumerate(joined[..., lane])]
        first, second = (np.concatenate(side) for side in zip(*ends, strict=True))
        graph = coo_array((np.ones(len(first)), (first, second)), (sites, sites))
        count, wanted = connected_components(graph, directed=False)
        pairs = set(zip(wanted, found[:, lane], strict=True))
        assert len(pairs) == count == len(set(found[:, lane])), "one label for each cluster, and no other"


@pytest.mark.parametrize("name", MODELS)
def test_every_set_of_signs_has_its_probability_after_one_move(name):
    """From the exact distribution of the signs at fixed |phi| a move leads to the exact distribution."""
    model = MODELS[name]
    sites = int(np.prod(model.shape))
    size = np.linspace(0.4, 1.5, sites)[::-1]
    states = np.array(list(itertools.product([-1, 1], repeat=sites)))
    fields = (states * size).reshape(-1, *model.shape).astype(np.float32)
    density = np.array([float(model.log_prior(x) - model.energy(x)) for x in fields])
    exact = np.exp(density - density.max())
    exact /= exact.sum()
    lanes = 40_000
    start = np.random.default_rng(2).choice(len(states), lanes, p=exact)
    x = jnp.moveaxis(jnp.asarray(fields[start]), 0, -1)
    moved = np.asarray(jax.jit(lambda key, x: SignClusters().transition(model, key, x))(key_of(3), x))
    assert np.array_equal(np.abs(moved), np.abs(np.asarray(x))), "|phi| is left alone"
    up = (np.moveaxis(moved, -1, 0).reshape(lanes, sites) > 0).astype(int)
    found = np.bincount(up @ (1 << np.arange(sites)[::-1]), minlength=len(states)) / lanes
    assert np.mean(np.any(np.sign(moved) != np.sign(np.asarray(x)), axis=tuple(range(x.ndim - 1)))) > 0.5
    z = (found - exact) / np.sqrt(exact * (1 - exact) / lanes)
    assert np.abs(z).max() < 4.5 and (z**2).mean() < 2.0


@pytest.mark.parametrize("name", MODELS)
def test_signs_are_coupled_by_every_link_of_the_lattice(name):
    model = MODELS[name]
    products = np.asarray(model.lattice.lane_products(jnp.arange(1.0, 1 + np.prod(model.shape)).reshape(*model.shape, 1)))
    wanted = sorted((1.0 + a) * (1.0 + b) for a, b in links_of(model))
    assert np.allclose(sorted(products.ravel()), wanted), "every link once, double ones twice"
    x = jnp.ones((*model.shape, 2), jnp.float32)
    assert np.allclose(model.lane_sign_couplings(x), float(model.stiffness))


def test_lanes_have_the_action_of_the_model():
    """-log prior + beta U, its gradient, and the energy: as the model has them, up to the norm of the prior."""
    model = lattices.phi6(L=4, mu2=2.0)
    x = model.sample_prior(jax.random.key(0), 3)
    lanes, beta = jnp.moveaxis(x, 0, -1), 0.7
    action = jax.vmap(lambda x: -model.log_prior(x) + beta * model.energy(x))
    own = model.lane_action(lanes, beta).reshape(-1, 3).sum(axis=0)
    assert np.allclose(np.diff(own), np.diff(action(x)), rtol=1e-4, atol=1e-3)
    gradient = jax.vmap(jax.grad(lambda x: -model.log_prior(x) + beta * model.energy(x)))(x)
    assert np.allclose(np.moveaxis(np.asarray(model.lane_force(lanes, beta)), -1, 0), gradient, rtol=1e-3, atol=1e-3)
    assert np.allclose(model.lane_energy(lanes), jax.vmap(model.energy)(x), rtol=1e-5, atol=1e-4)
    assert np.asarray(model.lane_inside(lanes)).all()
