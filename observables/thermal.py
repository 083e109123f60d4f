"""What are Z, the energy, the heat capacity and the entropy at each temperature?"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.errors import Uncertain
from observables.estimation.estimator import Columns, Targets, estimate, no_moments
from observables.estimation.labels import dataset
from observables.samples.pool import Pool, Source


def partition_function(ladder: Source, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """log Z(beta) = log E_pi[exp(-beta U)].

    beta and couplings (such as mu2=) are numbers or lists; the lists become the dimensions of the answer.  log_z is the
    logarithm of the mean Z of the replicas, corrected for the bias of the logarithm: by +log_z_err^2/2 with telescoped
    volumes, by -(B - 1) log_z_err^2/2 for B blocks of replicas with self-consistent ones (`Uncertain.log_correction`).
    """
    pool = Pool.of(ladder)
    targets = Targets.grid(pool, beta, couplings)
    uncertain = Uncertain(estimate(pool, targets, no_moments), errors)
    log_z, error = uncertain.of(lambda log_z, mean: log_z)
    return dataset(uncertain, {"log_z": (log_z + uncertain.log_correction(error), error)})


def thermodynamics(ladder: Source, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """Mean energy <U>, heat capacity beta^2 (<U^2> - <U>^2), entropy log Z + beta <U> and free energy -log Z / beta."""
    pool = Pool.of(ladder)
    targets = Targets.grid(pool, beta, couplings)
    at = np.array([point["beta"] for point in targets.points])
    # Squares are taken about a typical energy, so that the small difference of two large numbers keeps its digits.
    centre = _typical_energy(pool, targets)
    found = estimate(pool, targets, lambda replica, energy: Columns([energy - centre, (energy - centre) ** 2]))
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
    found = estimate(pool, Targets.grid(pool, middle["beta"], couplings), lambda replica, energy: Columns([energy]))
    return float(found.pooled()[1][0, 0])
