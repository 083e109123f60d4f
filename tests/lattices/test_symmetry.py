"""The listed permutations are symmetries of the lattice, and none is missing."""

import jax
import numpy as np
import pytest

import lattices


@pytest.mark.parametrize(
    ("shape", "shifts", "turns"), [((5,), 5, 2), ((4, 4), 16, 8), ((3, 5), 15, 4), ((3, 3, 3), 27, 48), ((2, 4), 8, 2)]
)
def test_groups_keep_the_action(shape, shifts, turns):
    model = lattices.phi4(shape=shape, mu2=0.5)
    x = np.asarray(model.sample_prior(jax.random.key(0), 1)[0])
    moves, point_moves = lattices.translations(shape), lattices.point_group(shape)
    assert (moves.shape, point_moves.shape) == ((shifts, x.size), (turns, x.size))
    for group in (moves, point_moves):
        assert len(np.unique(group, axis=0)) == len(group)
        moved = x.ravel()[group].reshape(-1, *shape)
        np.testing.assert_allclose(jax.vmap(model.lattice.link_energy)(moved), model.lattice.link_energy(x), rtol=1e-5)
    assert (point_moves[:, 0] == 0).all()  # a point group leaves the origin in place


def test_orbit_average_keeps_averages_and_makes_functions_invariant():
    shape = (4, 4)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def correlator(field):
        return {"right": field[0, 0] * field[0, 1], "down": field[0, 0] * field[1, 0]}

    averaged = lattices.orbit_average(correlator, lattices.translations(shape))
    np.testing.assert_allclose(averaged(x)["right"], (x * np.roll(x, -1, 1)).mean(), rtol=1e-5)
    turned = lattices.orbit_average(averaged, lattices.point_group(shape))
    np.testing.assert_allclose(turned(x)["right"], turned(x)["down"], rtol=1e-5)
    np.testing.assert_allclose(turned(x)["right"], (averaged(x)["right"] + averaged(x)["down"]) / 2, rtol=1e-5)


def test_groups_of_a_netket_lattice():
    import netket as nk

    source = nk.graph.Triangular([4, 4])
    model = lattices.scalar_field_on_graph(source, mu2=0.5)
    x = np.asarray(model.sample_prior(jax.random.key(0), 1)[0])
    moves, turns = lattices.translations(source), lattices.point_group(source)
    assert (moves.shape, turns.shape) == ((16, 16), (12, 16))
    moved = x[np.concatenate([moves, turns])]
    np.testing.assert_allclose(jax.vmap(model.lattice.link_energy)(moved), model.lattice.link_energy(x), rtol=1e-5)
