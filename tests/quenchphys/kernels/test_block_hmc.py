"""Hamiltonian Monte Carlo in blocks: independent parts, and an invariant density."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lattices
from lattices.phase_field import PhaseField
from quenchphys.kernels.block_hmc import BlockHMC, Blocks


def free_phase(shape, mass_sq=0.8, target=2.0) -> PhaseField:
    """A bridge between two free fields, so that the density is Gaussian at every beta."""
    free = lattices.scalar_field(shape, mu2=target, couplings={}, m0_sq=1.0, stiffness=1.0)
    return PhaseField(free, 0.0, mass_sq, 0.0, 0.0, np.inf, False, "free")


@pytest.mark.parametrize(("shape", "counts"), [((7, 9), (2, 3)), ((6, 4, 5), (2, 1, 2))])
def test_a_block_has_the_energy_of_its_own_sites(shape, counts):
    phase, blocks = free_phase(shape), Blocks(shape, counts)
    x = jax.random.normal(jax.random.key(0), (*shape, 3))
    before = blocks.total(phase.lane_action(x, 0.5))
    whole = phase.lane_action(x, 0.5).reshape(-1, 3).sum(axis=0)
    np.testing.assert_allclose(before.reshape(-1, 3).sum(axis=0), whole, rtol=1e-5)
    one = np.zeros((*counts, 1), np.float32)
    one[tuple(count - 1 for count in counts)] = 1
    inner = blocks.free * blocks.spread(jnp.asarray(one))  # the sites of one block that may move
    change = blocks.total(phase.lane_action(x + inner * 0.3, 0.5)) - before
    assert float(jnp.abs(change * (1 - one)).max()) < 1e-4
    assert float(jnp.abs(change * one).max()) > 0.01


def moving(kernel, phase, beta, step_size):
    """One trajectory from a key."""

    def move(key, x):
        chances = jax.tree.map(lambda all_of_it: all_of_it[0], kernel.chances(phase, key, 1, x.shape[-1]))
        return kernel.transition(phase, chances, x, jnp.float32(beta), jnp.float32(step_size), kernel.steps)

    return jax.jit(move)


@pytest.mark.parametrize("counts", [(1, 1), (2, 3)])
def test_the_density_is_invariant(counts, monkeypatch):
    """Exact draws stay exact: <phi^2> and the links of a free field, before and after some trajectories."""
    shape, beta = (8, 9), 0.7
    phase = free_phase(shape)
    monkeypatch.setattr(PhaseField, "blocks", property(lambda self: counts))
    k = phase.field.lattice.eigenvalues
    mass_sq = 0.8 + beta * (2.0 - 0.8)
    exact_field = PhaseField(phase.field, 0.0, mass_sq, 0.0, 0.0, np.inf, False, "")
    x = jnp.moveaxis(exact_field.sample_prior(jax.random.key(1), 4000), 0, -1)
    kernel = BlockHMC(steps=3)
    move = moving(kernel, phase, beta, step_size=0.65)
    accepted = []
    for number in range(6):
        x, acceptance, *_ = move(jax.random.key(10 + number), x)
        accepted.append(float(acceptance))
    assert 0.5 < np.mean(accepted) < 0.98  # a test that accepts everything would not see a wrong acceptance
    rows = np.asarray(x).reshape(-1, 4000)
    for value, exact in (
        ((rows**2).mean(axis=0), np.mean(1 / (k + mass_sq))),
        (np.asarray(phase.field.lattice.lane_links(x)).reshape(-1, 4000).mean(axis=0), np.mean(k / (k + mass_sq))),
    ):
        assert abs(value.mean() - exact) < 4 * value.std() / np.sqrt(4000)


def test_a_trajectory_that_leaves_is_taken_back():
    phase = free_phase((6, 6))
    cut = PhaseField(phase.field, 0.0, 0.8, 0.0, 0.0, 0.17, False, "")
    x = 0.1 * jax.random.normal(jax.random.key(2), (6, 6, 64))
    move = moving(BlockHMC(steps=4), cut, beta=1.0, step_size=0.3)
    left = 0.0
    for number in range(8):
        x, _, out, _ = move(jax.random.key(number), x)
        left += float(out)
        assert bool(cut.lane_inside(x).all())
    assert left > 0
