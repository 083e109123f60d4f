"""Exact densities of the radial targets are normalised, and agree with what the targets know."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import simpson

import quenchphys as qp
from workflows.reproduction.exact import coordinate_density, log_energy_density, log_radial_density


@pytest.mark.parametrize("target", [qp.targets.gaussian(7), qp.targets.spike_slab(7)], ids=lambda target: target.name)
def test_densities_are_those_of_the_posterior(target):
    radius = np.linspace(1e-4, 8.0, 40_001)
    p = np.exp(log_radial_density(target, radius))
    assert simpson(p, x=radius) == pytest.approx(1.0, abs=1e-6)
    assert simpson(p * radius**2, x=radius) == pytest.approx(target.moments()["r2"], rel=1e-5)
    energy = np.linspace(float(target.radial_energy(1e-5, np)), 60.0, 400_001)
    p_energy = np.exp(log_energy_density(target, energy))
    assert simpson(p_energy, x=energy) == pytest.approx(1.0, abs=1e-3)
    step = 1e-4
    slope = (target.log_z_at(1 - step) - target.log_z_at(1 + step)) / (2 * step)  # <U>
    assert simpson(p_energy * energy, x=energy) == pytest.approx(slope, rel=2e-3)


def test_one_coordinate_of_the_spike_and_slab():
    x = np.linspace(-6, 6, 20_001)
    target = qp.targets.spike_slab(7)
    p = coordinate_density([target.slab, target.spike], [1 - target.spike_share, target.spike_share], x)
    assert simpson(p, x=x) == pytest.approx(1.0)
    assert simpson(p * x**2, x=x) == pytest.approx(target.moments()["r2"] / 7)
