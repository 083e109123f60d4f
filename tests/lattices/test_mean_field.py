"""Mean field gives the known numbers, and a stopping energy below the ordered phase and above the ground state."""

import math

import numpy as np
import pytest

import lattices
from lattices.meanfield.gaussian import GaussianField, mean_power


def test_phi6_at_its_defaults():
    found = lattices.mean_field(lattices.phi6(L=40, mu2=2.28347))
    assert found.coexistence_mu2 == pytest.approx(2.5)
    assert found.barrier == pytest.approx(0.463, abs=5e-4)
    assert found.q_cut == pytest.approx(1.25)
    assert found.disordered.q == pytest.approx(0.184, abs=0.02)  # simulations, and what a Gaussian leaves out
    assert found.ordered.q == pytest.approx(1.89, abs=0.1)
    assert found.disordered.log_z < -54.5  # a lower bound


@pytest.mark.parametrize(("lam", "eta"), [(-1.0, 0.2), (-3.0, 1.0), (-0.4, 0.05)])
def test_coexistence_of_a_uniform_field(lam, eta):
    mu2 = lam**2 / (2 * eta)
    found = lattices.mean_field(lattices.phi6(L=8, mu2=mu2, lam=lam, eta=eta))
    assert found.coexistence_mu2 == pytest.approx(mu2)
    phi = np.linspace(0, math.sqrt(-lam / eta), 200_001)
    potential = mu2 / 2 * phi**2 + lam * phi**4 + eta * phi**6
    assert found.barrier == pytest.approx(potential[phi**2 < -lam / (2 * eta)].max(), rel=1e-6)
    assert found.minima == pytest.approx((0.0, math.sqrt(-lam / (2 * eta))))
    assert potential.min() == pytest.approx(0.0, abs=1e-8)


def test_minima_and_ground_state():
    broken = lattices.phi4(L=4, mu2=-2.0, lam=0.25, m0_sq=1.0)
    assert broken.mean_field.minima == pytest.approx((math.sqrt(2.0),))
    u = 1.5 / (2 * 0.25)  # phi^2 at the minimum of (mu2 - m0_sq)/2 phi^2 + lam phi^4
    assert broken.mean_field.ground_state_energy == pytest.approx(16 * (-1.5 * u + 0.25 * u**2))
    assert lattices.scalar_field((4,), mu2=0.5).mean_field.ground_state_energy == -math.inf
    assert lattices.scalar_field((4,), mu2=1.0).mean_field.ground_state_energy == 0.0


@pytest.mark.parametrize("mu2", [0.3, 1.0, 2.5])
def test_a_free_field_is_exact(mu2):
    model = lattices.scalar_field((6, 4), mu2=mu2, m0_sq=1.0, stiffness=1.5)
    prior, posterior = (1.5 * model.lattice.eigenvalues + mass for mass in (1.0, mu2))
    phase = model.mean_field.disordered
    assert phase.log_z == pytest.approx(0.5 * np.log(prior / posterior).sum())
    assert phase.energy == pytest.approx(0.5 * (mu2 - 1.0) * (1 / posterior).sum())
    field = GaussianField(model.lattice.eigenvalues, 1.5, 1.0, {2: (mu2 - 1.0) / 2})
    exact = 0.5 * (mu2 - 1.0) ** 2 * (1 / posterior**2).sum()
    assert field.energy_std(field.disordered) == pytest.approx(math.sqrt(exact), rel=1e-4, abs=1e-9)


def test_moments_of_a_shifted_gaussian():
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    for n in (2, 4, 6, 8):
        exact = weights @ (0.7 + math.sqrt(0.3) * nodes) ** n / weights.sum()
        assert mean_power(n, 0.49, 0.3) == pytest.approx(exact)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("L", [2, 4, 8])
@pytest.mark.parametrize("mu2", [-1.0, 1.5, 2.28, 2.5])
def test_stopping_energy_can_be_reached_and_is_deep(L, dim, mu2):
    model = lattices.phi6(L=L, mu2=mu2, dim=dim)
    found = model.mean_field
    assert found.two_phases
    assert model.phases == {"disordered": ("q", 0.0, 1.25), "ordered": ("q", 1.25, math.inf)}
    assert found.ground_state_energy < model.stop["energy"] < 0
    if found.ordered is not None:
        field = GaussianField(model.lattice.eigenvalues, 2.0, 1.0, {2: (mu2 - 1) / 2, 4: -1.0, 6: 0.2})
        room = found.ordered.energy - found.ground_state_energy  # on two sites less than a standard deviation
        assert model.stop["energy"] < found.ordered.energy - min(1.5 * field.energy_std(field.ordered), room / 2)


@pytest.mark.parametrize(
    "model",
    [
        lattices.phi4(L=8, mu2=-0.7, lam=0.125),
        lattices.phi6(L=16, mu2=3.0),
        lattices.phi6(L=8, mu2=1.0, lam=0.1),
        lattices.scalar_field((8,), mu2=0.5),
    ],
    ids=["phi4", "far from coexistence", "continuous", "free"],
)
def test_without_a_first_order_transition_the_evidence_decides(model):
    assert model.phases == {}
    assert "below" in model.stop


def test_softness_grows_with_the_volume():
    nu = [lattices.phi6(L=L, mu2=2.28).softness for L in (2, 8, 16, 40, 100)]
    assert nu == [2.0, 8.0, 32.0, 200.0, 256.0]
