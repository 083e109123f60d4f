"""A quench with the model's own settings gives the exact answers: free fields, rings, a narrow torus."""

import numpy as np
import pytest

import lattices
import observables
import quenchphys as qp
from tests.support.transfer_matrix import ring


def assert_within_three(name, value, error, exact, largest_error):
    print(f"{name}: {value:.4f} +- {error:.4f}, exact {exact:.4f}, {(value - exact) / error:+.1f} standard errors")
    assert error < largest_error
    assert abs(value - exact) < 3 * error


def triangular():
    import netket as nk

    return lattices.scalar_field_on_graph(nk.graph.Triangular([5, 5]), mu2=3.0)


FREE_FIELDS = {
    "2D": lambda: lattices.scalar_field((8, 8), mu2=0.3),
    "triangular": triangular,
}


@pytest.mark.parametrize("name", FREE_FIELDS)
def test_free_field_from_one_mass_to_another(name):
    model = FREE_FIELDS[name]()
    ladder = qp.quench(model, particles=300, replicas=8, seed=1)
    found = observables.partition_function(ladder, beta=[1.0])
    prior, posterior = (np.asarray(model.lattice.eigenvalues, float) + mass for mass in (1.0, model.mu2))
    exact = 0.5 * np.log(prior / posterior).sum()
    assert_within_three("log Z", float(found.log_z[0]), float(found.log_z_err[0]), exact, 0.05)


# The three models below differ in couplings only, but for their shape: the first two share one compiled program.
RINGS = {
    "phi^4 ring": lattices.scalar_field((16,), mu2=-2.0, couplings={4: 0.5, 6: 0.0}, stiffness=1.0),
    "phi^6 ring": lattices.scalar_field((16,), mu2=2.3, couplings={4: -1.0, 6: 0.2}, stiffness=2.0),
    "phi^6 on a torus of width 2": lattices.phi6(shape=(8, 2), mu2=2.3),
}


@pytest.mark.parametrize("name", RINGS)
def test_against_the_transfer_matrix(name):
    model = RINGS[name]
    width = model.shape[1] if len(model.shape) == 2 else 1
    quadrature = {"width": 2, "points": 37, "largest": 2.8} if width == 2 else {}
    exact = ring(model.shape[0], model.potential, model.m0_sq, model.stiffness, **quadrature)
    ladder = qp.quench(model, particles=400, replicas=8, seed=2)
    assert ladder.outcome.trusted
    log_z = observables.partition_function(ladder, beta=[1.0])
    assert_within_three("log Z", float(log_z.log_z[0]), float(log_z.log_z_err[0]), exact.log_z, 0.05)
    found = observables.order_parameters(ladder, beta=1.0)
    sites = model.lattice.sites
    for power, expected in (("phi2", exact.phi2), ("phi4", exact.phi4)):
        value, error = float(found[power]) / sites, float(found[f"{power}_err"]) / sites
        assert_within_three(f"<{power}>", value, error, expected, 0.05 * expected)


def test_the_transfer_matrix_is_converged():
    potentials = ({2: -1.0, 4: 0.5}, {2: 1.15, 4: -1.0, 6: 0.2})
    for potential in potentials:
        coarse, fine = (ring(16, potential, 1.0, 2.0, points=points) for points in (201, 301))
        for name in ("log_z", "phi2", "phi4"):
            assert getattr(coarse, name) == pytest.approx(getattr(fine, name), abs=1e-8)
    free = ring(16, {2: 0.35}, 1.0, 1.0)
    khat_sq = 4 * np.sin(np.pi * np.arange(16) / 16) ** 2
    assert free.log_z == pytest.approx(0.5 * np.log((khat_sq + 1) / (khat_sq + 0.7)).sum(), abs=1e-8)
    assert free.phi2 == pytest.approx(np.mean(1 / (khat_sq + 0.7)), abs=1e-8)
