"""Where the betas of a bridge are placed, and the thermodynamic integral along them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from quenchphys.bridging.chains import Chains

PILOTS = 3  # short runs that place the betas
SPACING = 1.5  # standard deviations of U between neighbouring betas, at most
LONGEST = 400.0  # Lambda, beyond which the prior is not near the phase


class Placement(NamedTuple):
    """Where the chains are, and how long the way between prior and target is."""

    betas: np.ndarray
    length: float


def lengths(betas: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """int_0^beta std(U) dbeta at 0 and at every beta, by trapezoids; `deviation` is std(U) there."""
    return np.concatenate([[0.0], np.cumsum(0.5 * (deviation[1:] + deviation[:-1]) * np.diff(betas, prepend=0.0))])


def log_volumes(betas: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """log G = -int_0^beta <U> dbeta at every beta, from <U> and its slope -Var U at 0 and at every beta (last axis)."""
    width = np.diff(betas, prepend=0.0)
    trapezoid = 0.5 * (mean[..., 1:] + mean[..., :-1])
    correction = width * (variance[..., 1:] - variance[..., :-1]) / 12
    return -np.cumsum(width * (trapezoid + correction), axis=-1)


def placed(chains: Chains, draws: np.ndarray) -> Placement:
    """Betas at equal steps of Lambda, from short runs at betas that are moved after each of them."""
    inside = draws[np.isfinite(draws)]
    betas = np.linspace(0, 1, chains.level_unit + 1)[1:]
    for _ in range(PILOTS):
        chains.start(betas)
        chains.advance(tune=True)
        deviation = chains.advance(tune=True).energy.std(axis=(1, 2))
        length = lengths(betas, np.concatenate([[inside.std()], deviation]))
        count = chains.level_unit * math.ceil(length[-1] / SPACING / chains.level_unit)
        if not length[-1] < LONGEST:
            raise ValueError(
                f"the bridge from the prior to its target is {length[-1]:.3g} standard deviations long, more than "
                f"{LONGEST:g}: the prior is not near the phase"
            )
        known = np.concatenate([[0.0], betas])
        betas = np.interp(np.linspace(0, length[-1], len(betas) + 1), length, known)[1:]
    final = np.interp(np.linspace(0, length[-1], count + 1), length, known)[1:]
    final[-1] = 1.0
    return Placement(final, float(length[-1]))


def error_of(energy: np.ndarray, draws: np.ndarray, betas: np.ndarray) -> float:
    """Standard error of log Z from the scatter of the groups at every beta, of which chains are independent.

    The scatter of whole integrals would do as well, but with a few groups it is itself uncertain by a fifth, and a run that
    stops as soon as it happens to be small enough states errors that are too small.
    """
    width = np.diff(betas, prepend=0.0, append=betas[-1])
    weight = 0.5 * (width + np.concatenate([[0.0], width[:-1]]))  # of the mean at 0 and at every beta, by trapezoids
    return float(np.sqrt(np.sum(weight**2 * _means(energy, draws).var(axis=0, ddof=1)) / energy.shape[1]))


def _means(energy: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """<U> of every group at 0 and at every beta, (group, 1 + level)."""
    inside = np.where(np.isfinite(draws), draws, np.nan)
    return np.concatenate([np.nanmean(inside, axis=1)[:, None], energy.mean(axis=-1).T], axis=1)


def integrals(energy: np.ndarray, draws: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """log G of every group at every beta, (group, level)."""
    inside = np.where(np.isfinite(draws), draws, np.nan)
    # Variances only correct the trapezoids: those of all groups together are less noisy.
    variance = np.concatenate([[np.nanvar(inside)], energy.var(axis=(1, 2))])
    return log_volumes(betas, _means(energy, draws), variance)
