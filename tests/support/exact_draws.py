"""Exact draws from a level of a radial target: s = |x|^2 by inverse transform on a fine grid, the direction uniform."""

from __future__ import annotations

import numpy as np
from scipy import stats


def draw_level(target, log_factor, n: int, rng: np.random.Generator) -> np.ndarray:
    """n draws of x from pi(x) f(U(x)), log f given as a function of the energy."""
    s = np.linspace(0, stats.chi2.isf(1e-14, target.dim), 400_001)[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_density = stats.chi2.logpdf(s, target.dim) + log_factor(np.asarray(target.radial_energy(s, np)))
    density = np.exp(np.nan_to_num(log_density, nan=-np.inf) - np.nanmax(log_density))
    cumulative = np.cumsum(density)
    squared = np.interp(rng.random(n) * cumulative[-1], cumulative, s)
    direction = rng.standard_normal((n, target.dim))
    return np.sqrt(squared)[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
