"""Predictions of a posterior for examples that were put aside.

With S draws theta_s of the posterior and n test examples (z_i, y_i) the posterior-predictive negative log likelihood is

    NLL = -1/n sum_i log [ 1/S sum_s p(y_i | z_i, theta_s) ].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from observables.draws import posterior
from observables.estimation.errors import student_ratio
from observables.samples.pool import Source

Array = np.ndarray

AT_ONCE = 1000  # configurations


def predictive_nll(
    source: Source | xr.Dataset,
    log_likelihood: Callable[[Any], Any],
    *,
    draws: int = 1000,
    beta: float = 1.0,
    seed: int = 0,
) -> xr.Dataset:
    """The negative log likelihood of test examples under the posterior predictive distribution, per example.

    Parameters
    ----------
    source : Ladder, Walk, several of them, Pool, or Dataset
        The samples; or draws with a variable `field` over (chain, draw, ...), as `posterior` and `quenchphys.chains` return
        them.
    log_likelihood : callable
        log p(y_i | z_i, x) of every test example, (m, n) for m configurations: `test_log_likelihood` of a network.
    draws, beta, seed
        As in `posterior`, for samples that are no draws yet.

    Returns
    -------
    Dataset
        nll with nll_err, from a jackknife over chains (the replicas of a ladder) with an allowance for these being few, and
        nll_each, the NLL of each example.

    Examples
    --------
    >>> model = qp.targets.network("sonar.csv")
    >>> ladder = qp.quench(model, particles=100)
    >>> observables.predictive_nll(ladder, model.test_log_likelihood)
    """
    drawn = source if isinstance(source, xr.Dataset) else posterior(source, draws, beta, seed=seed)
    if "field" not in drawn or not {"chain", "draw"} <= set(drawn["field"].dims):
        raise ValueError("Draws must have a variable 'field' over the dimensions chain and draw, but these have not.")
    field = drawn["field"].transpose("chain", "draw", ...).values
    chains = field.shape[0]
    if chains < 2:
        raise ValueError(f"The error of a prediction needs at least 2 independent chains, but there is {chains}.")
    log_p = np.stack([_mean_likelihood(own, log_likelihood) for own in field])  # (chain, example)
    if not np.all(np.isfinite(log_p)):
        raise ValueError("The likelihood of a test example is zero or undefined (NaN) for all draws of a chain.")
    each = _nll(log_p)
    without = np.array([_nll(np.delete(log_p, c, axis=0)).mean() for c in range(chains)])
    error = np.sqrt((chains - 1) * without.var()) * student_ratio(chains - 1)
    result = xr.Dataset({"nll": each.mean(), "nll_err": error, "nll_each": ("example", each)})
    result["nll"].attrs = {"long_name": "posterior-predictive negative log likelihood per test example", "units": "nats"}
    result["nll_err"].attrs = {"long_name": f"standard error of the {result['nll'].attrs['long_name']}", "units": "nats"}
    result["nll_each"].attrs = {"long_name": "posterior-predictive negative log likelihood of an example", "units": "nats"}
    return result.assign_attrs(drawn.attrs)


def _mean_likelihood(field: Array, log_likelihood: Callable[[Any], Any]) -> Array:
    """log of the mean likelihood of every example over the draws (draw, ...) of a chain."""
    parts = []
    for first in range(0, len(field), AT_ONCE):
        log_p = np.asarray(log_likelihood(field[first : first + AT_ONCE]), float)
        if log_p.ndim != 2 or len(log_p) != len(field[first : first + AT_ONCE]):
            raise ValueError(
                "log_likelihood must return one row for each configuration and one column for each test example; for "
                f"{len(field[first : first + AT_ONCE])} configurations it returned the shape {log_p.shape}."
            )
        parts.append(logsumexp(log_p, axis=0))
    return logsumexp(parts, axis=0) - np.log(len(field))


def _nll(log_p: Array) -> Array:
    """-log of the mean over chains, for every example."""
    return np.log(len(log_p)) - logsumexp(log_p, axis=0)
