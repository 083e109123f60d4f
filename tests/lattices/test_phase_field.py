"""Phases of a scalar field, each from its own Gaussian: exact norms, energies and cuts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lattices
from lattices.field import ScalarField
from lattices.phase_field import PhaseField

MODELS = {
    "square": lattices.phi6(shape=(4, 6), mu2=2.3),
    "cubic": lattices.phi6(shape=(3, 3, 4), mu2=2.3),
    "ring": lattices.scalar_field_on_graph([(i, (i + 1) % 7) for i in range(7)], mu2=2.3, couplings={4: -1.0, 6: 0.2}),
}


def phase_of(model: ScalarField) -> PhaseField:
    return PhaseField(model, mean=1.2, mass_sq=3.5, shift=0.4, low=1.0, high=np.inf, signed=True, name="a phase")


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_gaussian_and_energy_make_up_the_action(model):
    phase = phase_of(model)
    x = jax.random.normal(jax.random.key(0), (5, *model.shape)) + 0.5
    sites = model.lattice.sites
    action = -jax.vmap(phase.log_prior)(x) + jax.vmap(phase.energy)(x) + 0.4 * sites
    # -log prior and U of the model make up its own action, up to the norm of the prior.
    whole = jax.vmap(lambda x: model.energy(x) - model.log_prior(x))(x)
    np.testing.assert_allclose(action - action[0], whole - whole[0], rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_lanes_agree_with_single_configurations(model):
    phase = phase_of(model)
    x = jax.random.normal(jax.random.key(1), (5, *model.shape)) + 0.5
    lanes, beta = jnp.moveaxis(x, 0, -1), 0.3
    energy = jax.vmap(phase.energy)(x)
    np.testing.assert_allclose(phase.lane_energy(lanes), energy, rtol=1e-5, atol=1e-4)

    def action(x):
        return beta * phase.energy(x) - phase.log_prior(x)

    total = phase.lane_action(lanes, beta).reshape(-1, 5).sum(axis=0)
    np.testing.assert_allclose(total, jax.vmap(action)(x), rtol=1e-5, atol=1e-4)
    force = jnp.moveaxis(phase.lane_force(lanes, beta), -1, 0)
    np.testing.assert_allclose(force, jax.vmap(jax.grad(action))(x), rtol=1e-4, atol=1e-3)
    seen, expected = phase.lane_observe(lanes), jax.vmap(phase.observe)(x)
    assert seen.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(seen[name], values, rtol=1e-4, atol=1e-4, err_msg=name)


def test_draws_have_the_mean_and_the_variance_of_the_gaussian():
    phase = phase_of(MODELS["square"])
    x = np.asarray(phase.sample_prior(jax.random.key(2), 20_000))
    variance = np.mean(1 / (2.0 * phase.field.lattice.eigenvalues + 3.5))
    m = x.mean(axis=(1, 2))
    assert abs(m.mean() - 1.2) < 4 * m.std() / np.sqrt(len(m))
    square = ((x - 1.2) ** 2).mean(axis=(1, 2))
    assert abs(square.mean() - variance) < 4 * square.std() / np.sqrt(len(square))


def test_inside_is_cut_by_q_and_by_the_sign():
    phase = phase_of(MODELS["square"])
    x = jnp.stack([jnp.full((4, 6), value) for value in (0.5, -1.5, 1.5)], axis=-1)
    assert np.asarray(phase.lane_inside(x)).tolist() == [False, False, True]


def test_scale_is_the_exact_norm_of_the_gaussian():
    """For a free field the Gaussian of its own mass is the field, D is constant, and Z is the ratio of the norms."""
    free = lattices.scalar_field((4, 4), mu2=2.5, couplings={}, m0_sq=1.0, stiffness=1.0)
    phase = PhaseField(free, 0.0, 2.5, 0.0, 0.0, np.inf, False, "free")
    k = free.lattice.eigenvalues
    assert phase.log_scale == pytest.approx(0.5 * np.log((k + 1.0) / (k + 2.5)).sum())
    assert float(jnp.abs(phase.energy(jax.random.normal(jax.random.key(3), (4, 4))))) < 1e-5


def test_phases_of_phi6_are_its_self_consistent_gaussians():
    model = lattices.phi6(L=16, mu2=2.2866)
    phases = lattices.phase_fields(model)
    assert phases["disordered"].mean == 0 and phases["disordered"].multiplicity == 1
    assert phases["ordered"].mean == model.mean_field.ordered.abs_m and phases["ordered"].multiplicity == 2
    x = phases["ordered"].sample_prior(jax.random.key(4), 500)
    energy = np.asarray(jax.vmap(phases["ordered"].energy)(x))
    assert abs(energy.mean()) < 4 * energy.std() / np.sqrt(500)  # the shift is the mean


def test_other_couplings_keep_the_gaussian():
    model = lattices.phi6(L=8, mu2=2.29)
    phase = lattices.phase_fields(model)["ordered"].at(lattices.phi6(L=8, mu2=2.30))
    assert phase.mass_sq == lattices.phase_fields(model)["ordered"].mass_sq
    assert float(phase.field.mu2) == 2.30


def test_a_model_without_two_phases_is_refused():
    with pytest.raises(ValueError, match="no first-order transition"):
        lattices.phase_fields(lattices.phi4(L=8, mu2=-1.2, lam=0.25))
    with pytest.raises(ValueError, match="no Gaussian field is near the ordered phase"):
        lattices.phase_fields(lattices.phi6(L=8, mu2=6.0))
