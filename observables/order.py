"""Order parameters: averages of every recorded observable, and their fluctuations."""

from __future__ import annotations

from typing import Any

import xarray as xr

from observables.estimation.errors import Answer, Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.labels import dataset
from observables.estimation.moments import Columns
from observables.estimation.targets import Targets
from observables.samples.pool import Pool, Source


def order_parameters(ladder: Source, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """The mean of the energy and of every recorded observable, and what follows from them.

    binder = 1 - <m^4> / (3 <m^2>^2) and susceptibility = V (<m^2> - <|m|>^2), where m2, m4 and abs_m are recorded.  V is
    the number of degrees of freedom, the sites of a scalar field.

    Parameters
    ----------
    ladder, beta, errors, couplings
        As in `partition_function`.

    Returns
    -------
    Dataset
        Every observable under its name with its error, binder and susceptibility where they can be had, and ess.

    Examples
    --------
    >>> found = observables.order_parameters(ladder, mu2=[2.28, 2.29, 2.30])
    >>> found.q.values, found.q_err.values
    """
    pool = Pool.of(ladder)
    names = ["energy", *pool.observables]
    targets = Targets.grid(pool, beta, couplings)
    found = estimate(
        pool, targets, lambda samples, energy: Columns([energy, *(samples.observable(n) for n in pool.observables)])
    )
    uncertain = Uncertain(found, errors)
    means = uncertain.of(lambda log_z, mean: mean)
    answers = {name: Answer(means.value[:, i], means.error[:, i]) for i, name in enumerate(names)}
    column = {name: i for i, name in enumerate(names)}
    if {"m2", "m4"} <= set(names):
        m2, m4 = column["m2"], column["m4"]
        answers["binder"] = uncertain.of(lambda log_z, mean: 1 - mean[:, m4] / (3 * mean[:, m2] ** 2))
    if {"m2", "abs_m"} <= set(names):
        m2, abs_m = column["m2"], column["abs_m"]
        volume = float(pool.run.dimension)
        answers["susceptibility"] = uncertain.of(lambda log_z, mean: volume * (mean[:, m2] - mean[:, abs_m] ** 2))
    return dataset(uncertain, answers)
