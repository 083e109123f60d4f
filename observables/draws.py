"""Equally weighted configurations of any target."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.estimator import estimate
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from observables.samples.of_ladders import Replica
from observables.samples.pool import Pool, Source
from quenchphys.ladder import Ladder

Array = np.ndarray

CONFIGURATION_FLOOR = 10.0  # effective configurations a chain must rest on


def posterior(ladder: Source, draws: int = 1000, beta: float = 1.0, *, seed: int = 0, **couplings: Any) -> xr.Dataset:
    """Configurations drawn by weight from those a ladder kept, with their observables.

    Parameters
    ----------
    ladder : Ladder, several of them, or Pool
        The samples; a walk keeps no configurations but its last.
    draws : int
        Draws from each replica.
    beta, couplings
        As in `partition_function`, but for a single target.
    seed : int
        Seed of the draws.

    Returns
    -------
    Dataset
        field, energy, every observable and level over (chain, draw), where a chain is a replica.  Where fewer
        configurations carry weight than are drawn, some repeat; ess is the number of effective ones each chain rests on.

    Examples
    --------
    >>> drawn = observables.posterior(ladder, draws=200)
    >>> drawn.field.mean(("chain", "draw"))
    """
    if not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be a positive whole number, but {draws!r} was given.")
    pool = Pool.of_levels(ladder, "A draw of configurations")
    targets = Targets.single(pool, beta, couplings, "A posterior has")
    estimate(pool, targets, no_moments)
    target = {name: float(values[0]) for name, values in targets.axes.items() if name != "beta"} | dict(targets.rest)
    rng = np.random.default_rng(seed)
    chains = []
    for one in pool.ladders:
        alone = Pool(one, pool.volumes) if len(pool.ladders) > 1 else pool
        for r, (replica, (base,)) in enumerate(zip(alone.replicas, alone.log_base, strict=True)):
            log_w = base + targets.log_t(replica.energy_at(target), beta)
            chains.append(_chain(one, r, replica, log_w, int(draws), rng))
    result = xr.concat(chains, dim="chain")
    result["ess"].attrs = {"long_name": "effective number of configurations the chain rests on", "units": "1"}
    return result.assign_coords(targets.coords).assign_attrs(pool.attrs)


def _chain(ladder: Ladder, r: int, replica: Replica, log_w: Array, draws: int, rng: np.random.Generator) -> xr.Dataset:
    """Draws from the configurations of one replica.

    The kept particles are a fixed fraction of all, chosen without regard to their weight: their weights W apply.
    """
    kept = ladder.configurations.isel(replica=r)
    level, particle = kept["level"].values, kept["particle"].values
    there = np.flatnonzero((level >= 0) & (particle >= 0))
    index = replica.draws + level[there] * replica.shape[1] + particle[there]
    weight = np.exp(log_w[index] - log_w[index].max(initial=-np.inf)) if len(there) else np.empty(0)
    ess = float(weight.sum() ** 2 / (weight**2).sum()) if len(there) else 0.0
    if not ess >= CONFIGURATION_FLOOR:
        raise ValueError(
            f"Replica {r} kept only {ess:.3g} effective configurations of this target, and at least "
            f"{CONFIGURATION_FLOOR:g} are needed; keep more configurations, or use more particles."
        )
    # Systematic resampling: a configuration of weight w comes floor(draws w) or ceil(draws w) times.
    positions = (rng.uniform() + np.arange(draws)) / draws
    chosen = np.searchsorted(np.cumsum(weight) / weight.sum(), positions).clip(max=len(weight) - 1)
    chosen = rng.permutation(chosen)
    result = xr.Dataset({"field": kept["field"].isel(sample=there[chosen]).rename(sample="draw")})
    for name in ("energy", *ladder.observables):
        result[name] = ("draw", replica.observable(name)[index[chosen]])
    result["level"] = ("draw", level[there[chosen]])
    return result.assign(ess=ess)
