"""What does a typical configuration look like?  Equally weighted configurations of any target."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.estimator import Targets, estimate, no_moments
from observables.samples.of_ladders import Replica
from observables.samples.pool import Pool, Source
from quenchphys.ladder import Ladder

Array = np.ndarray

CONFIGURATION_FLOOR = 10.0  # effective configurations a chain must rest on


def posterior(ladder: Source, draws: int = 1000, beta: float = 1.0, *, seed: int = 0, **couplings: Any) -> xr.Dataset:
    """`draws` configurations of each replica, drawn by weight from those the ladder kept, with their observables.

    Dimensions chain (the replicas) and draw.  Where fewer configurations carry weight than are drawn, some repeat;
    `ess` says on how many effective ones each chain rests.
    """
    if not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be a positive whole number, but {draws!r} was given.")
    pool = Pool.of_levels(ladder, "A draw of configurations")
    targets = Targets.grid(pool, beta, couplings)
    if targets.dims:
        raise ValueError(f"A posterior has one target: {targets.dims[0]} must be a single number.")
    estimate(pool, targets, no_moments)
    target = {name: float(values[0]) for name, values in targets.axes.items() if name != "beta"} | dict(targets.rest)
    rng = np.random.default_rng(seed)
    chains = []
    for one in pool.ladders:
        alone = Pool(one, pool.volumes) if len(pool.ladders) > 1 else pool
        for r, (block, bases) in enumerate(zip(alone.blocks, alone.log_base, strict=True)):
            log_w = bases[0] + targets.log_t(block[0].energy_at(target), beta)
            chains.append(_chain(one, r, block[0], log_w, int(draws), rng))
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
