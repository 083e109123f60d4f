"""Equally weighted configurations of any target, drawn from those that a run kept.

The kept configurations of a replica are m_k equally weighted samples of each level k, and m_0 exact draws from the prior.
They are a mixture of their own, with the volumes of the whole ladder, and the balance heuristic over just these gives

    W = t(x) / D(U),     D(U) = m_0 + sum_k m_k f_k(U) / G_k.

Particles are kept by weight, so the weight that they carried does not enter again.  Of a walk the last configuration of
every chain is kept, M in all, and D(U) = M w(U) / c.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from observables.estimation.estimator import estimate
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from observables.samples.base import Samples
from observables.samples.mixture import Mixture
from observables.samples.of_ladders import Replica
from observables.samples.of_walks import last_samples
from observables.samples.pool import Pool, Source
from quenchphys.ladder import Ladder

Array = np.ndarray

CONFIGURATION_FLOOR = 10.0  # effective configurations a chain must rest on
# Share of the target that may lie where a single configuration, if there is one, stands for a tenth of it: draws can be
# wrong by this much, and nothing in their weights would show it.
UNCOVERED = 0.02
NEARLY_NONE = 1e-6  # of a configuration


def posterior(ladder: Source, draws: int = 1000, beta: float = 1.0, *, seed: int = 0, **couplings: Any) -> xr.Dataset:
    """Configurations drawn by weight from those that a ladder or a walk kept, with their observables.

    Parameters
    ----------
    ladder : Ladder, Walk, several of them, or Pool
        The samples.  Of a walk the last configurations count: many short parts give more of them than a long one.
    draws : int
        Draws from each replica; from all chains of a walk together.
    beta, couplings
        As in `partition_function`, but for a single target.
    seed : int
        Seed of the draws.

    Returns
    -------
    Dataset
        field, energy and every observable over (chain, draw), where a chain is a replica of a ladder, or a whole walk;
        for ladders level, which is -1 for a draw from the prior.  Where fewer configurations carry weight than are drawn,
        some repeat; ess is the number of effective ones each chain rests on.  weight is the share of each chain in Z:
        draws of one chain weigh the same, but a replica that met little of a rare mode has a small Z too, so an average
        over all draws is best weighed by it.

    Examples
    --------
    >>> drawn = observables.posterior(ladder, draws=200)
    >>> drawn.field.weighted(drawn.weight).mean(("chain", "draw"))
    """
    if not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be a positive whole number, but {draws!r} was given.")
    pool = Pool.of(ladder)
    targets = Targets.single(pool, beta, couplings, "A posterior has")
    estimate(pool, targets, no_moments)
    rng = np.random.default_rng(seed)
    kept = list(_all_kept(pool, targets, beta))
    result = xr.concat([one.draw(int(draws), rng) for one in kept], dim="chain")
    log_z = np.array([one.log_z for one in kept])
    words = {"long_name": "share of the chain in Z", "units": "1"}
    result["weight"] = ("chain", np.exp(log_z - logsumexp(log_z)), words)
    result["ess"].attrs = {"long_name": "effective number of configurations the chain rests on", "units": "1"}
    return result.assign_coords(targets.coords).assign_attrs(pool.attrs)


@dataclass(frozen=True)
class Kept:
    """Configurations that one chain of draws is taken from, with their weights."""

    whose: str  # for messages
    field: xr.DataArray  # (draw, ...)
    recorded: Mapping[str, Array]
    log_w: Array
    log_z: float  # from all samples of its replica
    uncovered: float  # share of the target that they cannot represent

    def draw(self, draws: int, rng: np.random.Generator) -> xr.Dataset:
        """Draws by weight; refused where the configurations are too few, or lie elsewhere."""
        weight = np.exp(self.log_w - self.log_w.max(initial=-np.inf)) if len(self.log_w) else np.empty(0)
        ess = float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0
        if not ess >= CONFIGURATION_FLOOR:
            raise ValueError(
                f"{self.whose} kept only {ess:.3g} effective configurations of this target, and at least "
                f"{CONFIGURATION_FLOOR:g} are needed; keep more configurations, or use more particles."
            )
        if self.uncovered > UNCOVERED:
            raise ValueError(
                f"The configurations that {self.whose[0].lower() + self.whose[1:]} kept cannot represent this target: "
                f"{self.uncovered:.0%} of it lies at energies where hardly any was kept (at most {UNCOVERED:.0%} is "
                "allowed); averages of observables do not need configurations, and ladders that keep draws from the prior "
                "have them everywhere."
            )
        # Systematic resampling: a configuration of weight w comes floor(draws w) or ceil(draws w) times.
        positions = (rng.uniform() + np.arange(draws)) / draws
        chosen = np.searchsorted(np.cumsum(weight) / weight.sum(), positions).clip(max=len(weight) - 1)
        chosen = rng.permutation(chosen)
        result = xr.Dataset({"field": self.field.isel(draw=chosen)})
        for name, values in self.recorded.items():
            result[name] = ("draw", values[chosen])
        return result.assign(ess=ess)


def _all_kept(pool: Pool, targets: Targets, beta: float) -> Iterator[Kept]:
    """What every replica kept, or the whole walk."""
    couplings = {name: float(values[0]) for name, values in targets.axes.items() if name != "beta"} | dict(targets.rest)

    def log_t(samples: Samples) -> Array:
        return targets.log_t(samples.energy_at(couplings), beta)

    if not pool.of_ladders:
        yield _kept_by_walk(pool, log_t)
        return
    number = 0
    for ladder in pool.ladders:
        alone = Pool(ladder, pool.volumes) if len(pool.ladders) > 1 else pool
        for r, (replica, (base,)) in enumerate(zip(alone.replicas, alone.log_base, strict=True)):
            yield _kept_by_replica(ladder, r, f"Replica {number}", replica, base, log_t(replica))
            number += 1


def _kept_by_replica(ladder: Ladder, r: int, whose: str, replica: Replica, log_base: Array, log_t: Array) -> Kept:
    kept = ladder.configurations.isel(replica=r)
    level, particle = kept["level"].values, kept["particle"].values
    there = np.flatnonzero(particle >= 0)  # level -1 is the prior; without a particle, nothing was kept
    level, particle = level[there], particle[there]
    index = np.where(level >= 0, replica.draws + level * replica.shape[1] + particle, particle)
    defined = np.isfinite(replica.energy[index])
    mixture = mixture_of(replica, level)
    log_d = mixture.exact(np.where(defined, replica.energy[index], 0.0).astype(float))[0]
    recorded = {name: replica.observable(name)[index] for name in ("energy", *ladder.observables)}
    # Where nothing was kept D is nearly zero instead of zero, which a table of log D could not hold.
    everywhere = dataclasses.replace(mixture, draws=max(mixture.draws, NEARLY_NONE))
    return Kept(
        whose=whose,
        field=kept["field"].isel(sample=there).rename(sample="draw"),
        recorded=recorded | {"level": level},
        log_w=np.where(defined, log_t[index] - log_d, -np.inf),
        log_z=float(logsumexp(log_base + log_t)),
        uncovered=_uncovered(log_base + log_t, log_t - everywhere.log_density(replica.energy)),
    )


def mixture_of(replica: Replica, level: Array) -> Mixture:
    """The mixture that configurations of these levels were taken from; level -1 is the prior."""
    count = np.bincount(level[level >= 0], minlength=len(replica.level))
    some = np.flatnonzero(count)
    log_scale = np.log(count[some]) - replica.log_volume[some]
    return Mixture(replica.level[some], log_scale, replica.softness, float((level < 0).sum()))


def _kept_by_walk(pool: Pool, log_t: Callable[[Samples], Array]) -> Kept:
    """The last configurations of all chains and parts together: those of a single group would be few."""
    pool.check_one_coupling("A posterior")
    field, last = last_samples(pool.walks)
    log_w = np.concatenate([base + log_t(group) for group, base in pool.weighted])
    return Kept(
        whose="The walk",
        field=field,
        recorded=last.recorded,
        log_w=log_t(last) - last.log_w,
        log_z=0.0,
        uncovered=_uncovered(log_w, log_w + np.log(len(log_w) / len(last.energy))),
    )


def _uncovered(log_w: Array, log_one: Array) -> float:
    """The share of a target, with weights W of all samples, where one kept configuration would stand for a tenth of it.

    log_one is the logarithm of t/D at the samples, D the density of the kept configurations.
    """
    log_z = logsumexp(log_w)
    with np.errstate(invalid="ignore"):
        rare = log_one - log_z > -np.log(CONFIGURATION_FLOOR)
    return float(np.exp(logsumexp(log_w[rare]) - log_z)) if rare.any() else 0.0
