"""Samples as ArviZ takes them: equally weighted draws over (chain, draw)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.exchange.weighted import Weighted, library
from observables.samples.pool import Pool, Source


def to_arviz(ladder: Source, draws: int = 1000, beta: float = 1.0, *, seed: int = 0, **couplings: Any) -> Any:
    """Draws of the energy and every observable as an `arviz.InferenceData`, for summaries, plots and comparisons.

    Samples are drawn by weight from all of them together, so that means over all chains and draws are those of
    `order_parameters`.  They stay in order: chain 0 holds the samples of the first replica (or group of chains), and so on;
    where replicas differ in Z, a chain has a few of its neighbour.

    Draws of a walk keep the order of sampling: ArviZ's effective sample size sees their correlations if there are about as
    many draws as sweeps.  Draws of a ladder have no order: r_hat compares replicas, but the effective sample size is that of
    independent draws, so use the errors of `order_parameters`.

    Parameters
    ----------
    ladder : Ladder, Walk, several of them, or Pool
        The samples.
    draws : int
        Draws in a chain.  There are as many chains as replicas or groups.
    beta, couplings
        As in `partition_function`, but for a single target.
    seed : int
        Seed of the draws.

    Returns
    -------
    arviz.InferenceData
        The group `posterior` with energy and every observable; for ladders the group `prior` with exact draws from the
        prior.  The attributes are those of the run, with log_z.

    Examples
    --------
    >>> import arviz
    >>> arviz.summary(observables.to_arviz(walk, mu2=2.286))
    """
    if not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be a positive whole number, but {draws!r} was given.")
    arviz = library("arviz", "to_arviz")
    samples = Weighted.of(ladder, beta, couplings, "An ArviZ data set has")
    rng = np.random.default_rng(seed)
    chains = len(samples.pool.blocks)
    chosen = samples.resampled(chains * int(draws), rng).reshape(chains, int(draws))
    if samples.pool.of_ladders:
        chosen = rng.permuted(chosen, axis=1)  # in order of level they would look like one slow chain
    groups = {"posterior": _dataset({name: values[chosen] for name, values in samples.recorded.items()})}
    if samples.pool.of_ladders:
        groups["prior"] = _prior(samples.pool)
    attrs = {str(name): value for name, value in samples.attrs.items()} | {"inference_library": "quenchphys"}
    return arviz.InferenceData(attrs=attrs, **groups)


def _prior(pool: Pool) -> xr.Dataset:
    """Exact draws from the prior, (replica, draw), as many of each as the shortest replica has."""
    count = min(replica.draws for replica in pool.replicas)
    table = {"energy": [replica.prior_energy[:count] for replica in pool.replicas]}
    for name in pool.observables:
        table[name] = [replica.prior_observables[name][:count] for replica in pool.replicas]
    return _dataset({name: np.stack(rows) for name, rows in table.items()})


def _dataset(table: dict[str, np.ndarray]) -> xr.Dataset:
    chains, draws = next(iter(table.values())).shape
    axes = {"chain": np.arange(chains), "draw": np.arange(draws)}
    return xr.Dataset({name: (("chain", "draw"), values) for name, values in table.items()}, coords=axes)
