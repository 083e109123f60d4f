"""The exact answers of the targets, by other means than those that made them."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import integrate, special

import quenchphys as qp

TARGETS = [
    *(qp.targets.gaussian(d) for d in (3, 100)),
    *(qp.targets.spike_slab(d) for d in (10, 50)),
    *(qp.targets.bimodal(d) for d in (3, 20)),
]


def _id(target):
    return f"{target.name}({target.dim})"


@pytest.mark.parametrize("target", TARGETS, ids=_id)
@pytest.mark.parametrize("softness", [0.0, 2.0, 8.5])
def test_volumes_integrate_to_the_evidence(target, softness):
    """Gamma(nu+1) Z = integral of G(E) exp(-E) dE."""
    log_volume = np.vectorize(lambda e: target.log_volume(e, softness))
    lowest = (
        float(np.min(target.energy(np.ones(target.dim, np.float32))))
        if target.name == "bimodal"
        else target.radial_energy(0.0, np)
    )
    # Fine at the bottom, where the volume vanishes, and even above it, where the phases lie.
    reach = 60 + 4 * target.dim + 8 * softness
    grid = lowest + np.union1d(np.geomspace(1e-3, reach, 60), np.linspace(1e-2, reach, 60 + 4 * target.dim))
    integrand = log_volume(grid) - grid
    top = integrand.max()
    log_z = top + np.log(integrate.trapezoid(np.exp(integrand - top), grid)) - special.gammaln(softness + 1)
    assert log_z == pytest.approx(target.log_z, abs=5e-3)


@pytest.mark.parametrize("target", [qp.targets.gaussian(3), qp.targets.spike_slab(4), qp.targets.bimodal(2)], ids=_id)
def test_against_plain_monte_carlo(target):
    x = target.sample_prior(jax.random.key(0), 400_000)
    energy = np.asarray(jax.vmap(target.energy)(x), np.float64)
    for beta in (0.3, 1.0):
        values = np.exp(-beta * energy)
        error = values.std() / values.mean() / np.sqrt(len(values))
        assert abs(np.log(values.mean()) - target.log_z_at(beta)) < 4 * error
    for level in np.quantile(energy, [0.02, 0.5]):
        values = np.maximum(level - energy, 0) ** 2
        error = values.std() / values.mean() / np.sqrt(len(values))
        assert abs(np.log(values.mean()) - target.log_volume(level)) < 4 * error
    weight = np.exp(-energy)
    seen = jax.vmap(target.observe)(x)
    for name, exact in target.moments().items():
        value = np.asarray(seen[name], np.float64)
        mean = np.sum(weight * value) / np.sum(weight)
        error = np.sqrt(np.sum((weight * (value - mean)) ** 2)) / np.sum(weight)
        assert abs(mean - exact) < 4 * error


def test_closed_forms():
    assert qp.targets.gaussian(10).log_z == pytest.approx(5 * np.log(0.2))
    slab = qp.targets.spike_slab(50)
    assert slab.log_z == pytest.approx(slab.log_z_at(1.0), abs=1e-6)
    assert slab.log_z == pytest.approx(25 * np.log(0.5) + np.log(10))
    modes = qp.targets.bimodal(30)
    s2 = np.geomspace(0.01, 1, 30) ** 2
    one = 0.5 * np.sum(np.log(s2 / (1 + s2))) - 0.5 * np.sum(1 / (1 + s2))
    assert modes.log_z == pytest.approx(one + np.log(2), abs=1e-6)


@pytest.mark.parametrize("wrong", [0, -3, 2.5, True, "ten"])
def test_wrong_dimension(wrong):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        qp.targets.gaussian(wrong)
