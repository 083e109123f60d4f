"""Exact distributions of the radial targets: energy, radius and one coordinate at beta = 1.

With s = |x|^2, chi^2_D under the prior, and Z from the target:

    P(E) dE = chi^2_D(s) exp(-U(s)) ds / Z at U(s) = E,       P(r) dr = 2 r chi^2_D(r^2) exp(-U(r^2)) dr / Z
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

Array = np.ndarray


def log_energy_density(target: Any, energy: Array) -> Array:
    """log P(E) at beta = 1; -inf outside the energies of the target."""
    s = np.exp(np.linspace(np.log(1e-6), np.log(50.0 * target.dim), 400_001))
    u = np.asarray(target.radial_energy(s, np))
    log_p = stats.chi2.logpdf(s, target.dim) - u - np.log(np.gradient(u, s)) - target.log_z
    return np.interp(energy, u, log_p, left=-np.inf, right=-np.inf)


def log_radial_density(target: Any, radius: Array) -> Array:
    """log P(r) at beta = 1."""
    s = radius**2
    return np.log(2 * radius) + stats.chi2.logpdf(s, target.dim) - target.radial_energy(s, np) - target.log_z


def coordinate_density(widths: list[float], shares: list[float], x: Array) -> Array:
    """P(x_1) of a mixture of isotropic Gaussians: sum_j w_j N(x; 0, tau_j^2), tau^2 = sigma^2/(1 + sigma^2)."""
    tau = [width / np.sqrt(1 + width**2) for width in widths]
    return np.sum([share * stats.norm.pdf(x, scale=one) for share, one in zip(shares, tau, strict=True)], axis=0)
