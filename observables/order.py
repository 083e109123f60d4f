"""In which phase is the system?  Order parameters, their fluctuations, and the weight of each phase."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.errors import Answer, Uncertain
from observables.estimation.estimator import Columns, Targets, estimate
from observables.estimation.labels import dataset
from observables.samples.pool import Pool, Source


def order_parameters(ladder: Source, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """The mean of the energy and of every recorded observable, and what follows from them.

    binder = 1 - <m^4> / (3 <m^2>^2) and susceptibility = V (<m^2> - <|m|>^2), where m2, m4, abs_m are recorded.
    """
    pool = Pool.of(ladder)
    names = ["energy", *pool.observables]
    targets = Targets.grid(pool, beta, couplings)
    found = estimate(
        pool, targets, lambda replica, energy: Columns([energy, *(replica.observable(n) for n in pool.observables)])
    )
    uncertain = Uncertain(found, errors)
    means = uncertain.of(lambda log_z, mean: mean)
    answers = {name: Answer(means.value[:, i], means.error[:, i]) for i, name in enumerate(names)}
    column = {name: i for i, name in enumerate(names)}
    if {"m2", "m4"} <= set(names):
        m2, m4 = column["m2"], column["m4"]
        answers["binder"] = uncertain.of(lambda log_z, mean: 1 - mean[:, m4] / (3 * mean[:, m2] ** 2))
    if {"m2", "abs_m", "q", "phi2"} <= set(names):
        m2, abs_m = column["m2"], column["abs_m"]
        volume = sites(pool)
        answers["susceptibility"] = uncertain.of(lambda log_z, mean: volume * (mean[:, m2] - mean[:, abs_m] ** 2))
    return dataset(uncertain, answers)


def sites(pool: Pool) -> float:
    """The number of lattice sites, from q = phi2 / V."""
    replica = pool.replicas[0]
    phi2, q = (replica.observable(name)[:1000].astype(float) for name in ("phi2", "q"))
    return float(np.round(np.nansum(phi2) / np.nansum(q)))


def phase_weights(
    ladder: Source, by: str = "q", cut: float = 1.25, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any
) -> xr.Dataset:
    """The share of the ordered phase, that is of `by` >= `cut`, and the log of its odds."""
    pool = Pool.of(ladder)
    check_recorded(pool, by)
    targets = Targets.grid(pool, beta, couplings)
    found = estimate(pool, targets, lambda replica, energy: Columns([(replica.observable(by) >= cut).astype(float)]))
    uncertain = Uncertain(found, errors)
    answers = {
        "ordered_share": uncertain.of(lambda log_z, mean: mean[:, 0]),
        "log_odds": uncertain.of(lambda log_z, mean: np.log(mean[:, 0]) - np.log1p(-mean[:, 0])),
    }
    result = dataset(uncertain, answers)
    return result.assign_attrs(phase_by=by, phase_cut=float(cut))


def check_recorded(pool: Pool, name: str) -> None:
    if name not in ("energy", *pool.observables):
        known = ", ".join(["energy", *pool.observables])
        raise ValueError(f"This ladder recorded no observable {name!r}; recorded are: {known}.")
