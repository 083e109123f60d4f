"""Energies, gradients, the norm of the prior and recorded observables agree with the action."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lattices

MODELS = {
    "phi4": lattices.phi4(L=6, mu2=-0.7, lam=0.125),
    "phi6": lattices.phi6(L=5, mu2=2.2866),
    "phi8": lattices.scalar_field((3, 4, 2), mu2=0.3, couplings={4: -0.5, 8: 0.1}, m0_sq=0.6, stiffness=1.5),
    "free": lattices.scalar_field((7,), mu2=0.4),
    "graph": lattices.scalar_field_on_graph([(0, 1), (1, 2), (2, 0), (2, 3)], mu2=0.5, couplings={4: 0.3, 6: 0.1}),
}


def prior_draws(model, n=3, seed=0):
    return np.asarray(model.sample_prior(jax.random.key(seed), n))


def links_squared(model, x):
    """sum over links in float64, each one by itself."""
    if len(model.shape) == 1 and model.dims == ("site",):
        return sum((x[a] - x[b]) ** 2 for a, b in np.asarray(model.lattice.links))
    return sum(((np.roll(x, -1, axis) - x) ** 2).sum() for axis in range(x.ndim))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_energy_and_gradient(model):
    x = prior_draws(model)
    energy, gradient = model.energy_and_grad(x)
    wide = x.astype(float)
    axes = tuple(range(1, x.ndim))
    expected = (model.mu2 - model.m0_sq) / 2 * (wide**2).sum(axes)
    for n, c in model.interaction.items():
        expected = expected + c * (wide**n).sum(axes)
    np.testing.assert_allclose(energy, expected, rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(gradient, jax.vmap(jax.grad(model.energy))(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_log_prior_is_normalised_and_diagonal_in_the_basis(model):
    x = prior_draws(model)
    for one in x:
        wide = one.astype(float)
        quadratic = model.stiffness * links_squared(model, wide) + model.m0_sq * (wide**2).sum()
        precision = model.stiffness * np.asarray(model.lattice.eigenvalues, float) + model.m0_sq
        expected = -quadratic / 2 + 0.5 * np.log(precision / (2 * np.pi)).sum()
        np.testing.assert_allclose(model.log_prior(one), expected, rtol=1e-5)
        y = np.asarray(model.basis.to_modes(one), float)
        np.testing.assert_allclose(quadratic, (np.asarray(model.basis.precision) * y**2).sum(), rtol=1e-5)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_recorded_observables(model):
    x = prior_draws(model, 1)[0]
    wide = x.astype(float)
    m = wide.mean()
    expected = {"q": (wide**2).mean(), "m": m, "abs_m": abs(m), "m2": m**2, "m4": m**4}
    expected["link"] = links_squared(model, wide)
    expected |= {f"phi{n}": (wide**n).sum() for n in {2, 4, 6, *model.powers}}
    recorded = model.observe(x)
    assert set(recorded) == {*expected, "s_min"}
    for name, value in expected.items():
        np.testing.assert_allclose(recorded[name], value, rtol=1e-4, atol=1e-7, err_msg=name)


def test_structure_factor_at_the_smallest_momenta():
    x = np.random.default_rng(3).normal(size=(8, 8, 6))
    field = np.abs(np.fft.fftn(x)) ** 2 / x.size
    model = lattices.scalar_field(x.shape, mu2=0.5)
    expected = (field[1, 0, 0] + field[0, 1, 0]) / 2  # the axis of length 6 has a larger momentum
    np.testing.assert_allclose(model.observe(x.astype(np.float32))["s_min"], expected, rtol=1e-4)


def test_correlation_length_of_a_free_field_is_exact():
    model = lattices.scalar_field((12, 12), mu2=0.3, m0_sq=0.3, stiffness=2.0)
    chi, s_min = 1 / 0.3, 1 / (2.0 * model.lattice.lowest_eigenvalue + 0.3)
    np.testing.assert_allclose(lattices.correlation_length(model, chi / 144, s_min), np.sqrt(2.0 / 0.3))
    assert np.isnan(lattices.correlation_length(model, 0.5 * s_min / 144, s_min))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_couplings_rebuild_the_energy(model):
    """U is linear in the recorded sums: what reweighting in the couplings rests on."""
    x = prior_draws(model, 1)[0]
    recorded = model.observe(x)
    energy = sum(value * factor * recorded[name] for value, name, factor in model.couplings.values())
    np.testing.assert_allclose(energy - model.m0_sq / 2 * recorded["phi2"], model.energy(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_symmetries_keep_prior_and_energy(model):
    x = prior_draws(model, 1)[0]
    for move in model.symmetries:
        assert not np.array_equal(move(x), x)
        assert model.energy(move(x)) == model.energy(x)
        assert model.log_prior(move(x)) == model.log_prior(x)


def test_another_coupling_does_not_compile_again():
    traces = []

    @jax.jit
    def program(model, key):
        traces.append(1)
        x = model.sample_prior(key, 2)
        recorded = jax.vmap(model.observe)(x)
        return model.energy_and_grad(x), jax.vmap(model.log_prior)(x), model.basis.precision, recorded

    for mu2, lam, eta, m0_sq in [(2.28, -1.0, 0.2, 1.0), (2, 0, 0.3, 2), (-1.5, 0.1, 1.0, 0.5)]:
        program(lattices.phi6(L=4, mu2=mu2, lam=lam, eta=eta, m0_sq=m0_sq), jax.random.key(0))
    assert len(traces) == 1
    for links in ([(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 3), (3, 2)]):
        program(lattices.scalar_field_on_graph(links, mu2=0.5), jax.random.key(0))
    assert len(traces) == 2


def test_single_precision_is_enough_on_a_large_lattice():
    """U is a sum of 10^5 terms; its rounding stays far below one nat, the scale on which weights change."""
    model = lattices.phi6(L=320, mu2=2.28)
    x = 1.4 + 0.3 * np.random.default_rng(4).normal(size=(1, 320, 320)).astype(np.float32)
    p = x.astype(float) ** 2
    exact = (p * (0.64 + p * (-1 + 0.2 * p))).sum()
    assert abs(float(model.energy_and_grad(x)[0][0]) - exact) < 0.05
    y = model.basis.to_modes(x)
    np.testing.assert_allclose(model.basis.from_modes(y), x, atol=1e-5)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", ["phi6", "graph"])
def test_arrays_stay_single_precision(name, x64):
    """Also where a library such as NetKet has switched JAX to double precision."""

    @jax.jit
    def everything(model, key):
        x = model.sample_prior(key, 2)
        modes = model.basis.to_modes(x)
        recorded = jax.vmap(model.observe)(x)
        prior = jax.vmap(model.log_prior)(x)
        return x, modes, model.basis.from_modes(modes), model.energy_and_grad(x), model.basis.precision, recorded, prior

    with jax.enable_x64(x64):
        leaves = jax.tree.leaves(everything(MODELS[name], jax.random.key(0)))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("float32")}


def test_what_is_written_into_a_file():
    model = MODELS["graph"]
    assert model.dims == ("site",)
    assert model.parameters["links"] == [[0, 1], [1, 2], [2, 0], [2, 3]]
    rebuilt = lattices.scalar_field(
        **{k: v for k, v in MODELS["phi8"].parameters.items() if k not in ("couplings",)},
        couplings={int(n): c for n, c in MODELS["phi8"].parameters["couplings"].items()},
    )
    x = prior_draws(rebuilt, 1)[0]
    assert rebuilt.energy(x) == MODELS["phi8"].energy(x)
    assert rebuilt.dims == ("x", "y", "z")
