"""Thermodynamics over beta: Z, the mean energy, the heat capacity, the entropy and the free energy."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.errors import Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.labels import dataset
from observables.estimation.moments import Columns, no_moments
from observables.estimation.targets import Targets
from observables.samples.pool import Pool, Source


def partition_function(ladder: Source, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """log Z(beta) = log E_pi[exp(-beta U)].

    log_z is the logarithm of the mean Z of the replicas, corrected by +log_z_err^2/2 for the bias of the logarithm: Z itself
    is unbiased.

    Parameters
    ----------
    ladder : Ladder, Walk, several of them, or Pool
        The samples.
    beta : float or sequence of floats
        Inverse temperatures; a sequence becomes a dimension of the answer.
    errors : {"auto", "replicas", "genealogy"}
        Where errors come from: a jackknife over replicas (or chains), the genealogy of the particles, or both
        together, by their degrees of freedom and with an allowance for these being few.
    couplings : float or sequence of floats
        Other values of the couplings, such as mu2=2.29, to which the samples are reweighted.

    Returns
    -------
    Dataset
        log_z with log_z_err, and ess, the effective samples of the answer.

    Examples
    --------
    >>> observables.partition_function(ladder, beta=[0.5, 1.0])
    >>> observables.partition_function(ladder, mu2=[2.28, 2.29]).log_z
    """
    pool = Pool.of(ladder)
    targets = Targets.grid(pool, beta, couplings)
    return log_z_of(Uncertain(estimate(pool, targets, no_moments), errors))


def log_z_of(uncertain: Uncertain) -> xr.Dataset:
    """log Z of an estimate, as `partition_function` returns it."""
    log_z, error = uncertain.of(lambda log_z, mean: log_z)
    return dataset(uncertain, {"log_z": (log_z + uncertain.log_correction(error), error)})


def thermodynamics(ladder: Source, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """Mean energy <U>, heat capacity beta^2 (<U^2> - <U>^2), entropy log Z + beta <U> and free energy -log Z / beta.

    Parameters
    ----------
    ladder, beta, errors, couplings
        As in `partition_function`.

    Returns
    -------
    Dataset
        log_z, energy, heat_capacity, entropy and free_energy, each with its error, and ess.

    Examples
    --------
    >>> found = observables.thermodynamics(ladder, beta=np.linspace(0.1, 1.0, 10))
    >>> found.heat_capacity.values, found.heat_capacity_err.values
    """
    pool = Pool.of(ladder)
    targets = Targets.grid(pool, beta, couplings)
    at = np.array([point["beta"] for point in targets.points])
    # Squares are taken about a typical energy, so that the small difference of two large numbers keeps its digits.
    centre = _typical_energy(pool, targets)
    found = estimate(pool, targets, lambda samples, energy: Columns([energy - centre, (energy - centre) ** 2]))
    uncertain = Uncertain(found, errors)
    log_z, log_z_err = uncertain.of(lambda log_z, mean: log_z)
    correction = uncertain.log_correction(log_z_err)
    log_z = log_z + correction
    answers = {
        "log_z": (log_z, log_z_err),
        "energy": uncertain.of(lambda log_z, mean: centre + mean[:, 0]),
        "heat_capacity": uncertain.of(lambda log_z, mean: at**2 * (mean[:, 1] - mean[:, 0] ** 2)),
        "entropy": uncertain.of(lambda log_z, mean: log_z + at * (centre + mean[:, 0])),
        "free_energy": uncertain.of(lambda log_z, mean: -log_z / at),
    }
    answers["entropy"] = (answers["entropy"][0] + correction, answers["entropy"][1])
    with np.errstate(divide="ignore", invalid="ignore"):
        free, free_err = -log_z / at, answers["free_energy"][1]
    # At beta = 0 the free energy is its limit, the mean energy of the prior.
    answers["free_energy"] = tuple(
        np.where(at > 0, value, limit) for value, limit in zip((free, free_err), answers["energy"], strict=True)
    )
    return dataset(uncertain, answers)


def _typical_energy(pool: Pool, targets: Targets) -> float:
    """The mean energy at the middle temperature."""
    points = targets.points
    middle = points[len(points) // 2]
    couplings = {name: value for name, value in middle.items() if name != "beta"}
    found = estimate(pool, Targets.grid(pool, middle["beta"], couplings), lambda samples, energy: Columns([energy]))
    return float(found.pooled()[1][0, 0])
