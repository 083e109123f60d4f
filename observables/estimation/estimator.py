"""What is the average over any target?  The balance heuristic over all levels and prior draws of a ladder.

For a target pi(x) t(x), sample j of level k has the weight

    W_kj = n_k w_kj t(x_kj) / D(U_kj),     D(U) = sum_l n_l f_l(U) / G_l,     t = exp(-beta U')

and Z = sum W, <O> = sum W O / sum W.  Blocks of replicas are averaged as Z = mean of Z_b, so that log Z is the
logarithm of a mean and a mean weighs every block by its Z_b.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from observables.samples.of_ladders import Samples
from observables.samples.pool import Pool

Array = np.ndarray

ESS_FLOOR = 100.0  # an answer resting on fewer effective samples is refused
NEGLIGIBLE = 40.0  # a sample with exp(-40) of the largest weight changes nothing


@dataclass(frozen=True)
class Columns:
    """Moments as one array of values a moment, each over all samples of a replica."""

    values: Sequence[Array]

    @property
    def count(self) -> int:
        return len(self.values)

    def sums(self, weight: Array, where: Array) -> Array:
        return np.array([weight @ v[where].astype(float) for v in self.values])

    def rows(self, part: slice) -> Array:
        return (
            np.stack([v[part] for v in self.values], axis=1).astype(float)
            if self.values
            else np.empty((part.stop - part.start, 0))
        )


@dataclass(frozen=True)
class Bins:
    """Moments that are indicators of disjoint bins: the bin of every sample, -1 for none."""

    index: Array
    count: int

    def sums(self, weight: Array, where: Array) -> Array:
        index = self.index[where]
        return np.bincount(index[index >= 0], weight[index >= 0], minlength=self.count)

    def rows(self, part: slice) -> Array:
        index = self.index[part]
        rows = np.zeros((len(index), self.count))
        rows[np.flatnonzero(index >= 0), index[index >= 0]] = 1.0
        return rows


Moments = Callable[[Samples, Array], Columns | Bins]  # (replica, U' of its samples) -> the moments of its samples


def no_moments(replica: Samples, energy: Array) -> Columns:
    """For log Z alone."""
    return Columns([])


@dataclass(frozen=True)
class Targets:
    """The grid of targets asked for: beta and couplings, each a number or a one-dimensional array."""

    axes: Mapping[str, Array]  # every axis asked for, with its values, in order
    dims: tuple[str, ...]  # those given as arrays
    rest: Mapping[str, float]  # the couplings not asked for: those of the first ladder
    bias: Callable[[Array], Array] | None = None  # an additional factor exp(bias(U')), such as one that flattens P(U')

    @staticmethod
    def grid(pool: Pool, beta: Any, couplings: Mapping[str, Any]) -> Targets:
        for name in couplings:
            if name not in pool.couplings:
                known = ", ".join(pool.couplings) or "none"
                raise ValueError(f"This ladder has no coupling {name!r}; its couplings are: {known}.")
        asked = {"beta": beta} | dict(couplings)
        axes = {}
        for name, value in asked.items():
            values = np.asarray(value, float)
            if values.ndim > 1 or not np.all(np.isfinite(values)) or values.size == 0:
                raise ValueError(f"{name} must be a finite number or a list of them, but {value!r} was given.")
            axes[name] = np.atleast_1d(values)
        if np.any(axes["beta"] < 0):
            raise ValueError(f"beta must not be negative, but {axes['beta'].min():g} was given.")
        rest = {name: value for name, (value, _, _) in pool.couplings.items() if name not in couplings}
        return Targets(axes, tuple(name for name, value in asked.items() if np.ndim(value) == 1), rest)

    @property
    def points(self) -> list[dict[str, float]]:
        """One {axis: value} a target; the last axis runs fastest."""
        return [dict(zip(self.axes, point, strict=True)) for point in itertools.product(*self.axes.values())]

    def log_t(self, energy: Array, beta: Array | float) -> Array:
        log_t = -beta * energy
        return log_t if self.bias is None else log_t + self.bias(energy)

    @property
    def coords(self) -> dict[str, Any]:
        return {name: (values if name in self.dims else values[0]) for name, values in self.axes.items()}

    def array(self, flat: Array, extra: Sequence[str] = ()) -> xr.Variable:
        """Values over all points, (T, ...), on the axes asked for."""
        shape = tuple(len(self.axes[name]) for name in self.dims)
        return xr.Variable((*self.dims, *extra), np.asarray(flat).reshape((*shape, *np.shape(flat)[1:])))


@dataclass(frozen=True)
class Estimate:
    """log Z and the means of the moments, block by block: the raw material of every answer."""

    pool: Pool
    targets: Targets
    moments: Moments
    log_z: Array  # (B, T)
    mean: Array  # (B, T, m)
    ess: Array  # (T,) Kish: (sum W)^2 / sum W^2
    bottom_share: Array  # (T,) weight on energies the last levels hardly reach

    @property
    def block_weight(self) -> Array:
        """Z_b / sum Z_b"""
        return np.exp(self.log_z - logsumexp(self.log_z, axis=0))

    def pooled(self, blocks: Sequence[int] | None = None) -> tuple[Array, Array]:
        """log of the mean Z (T,) and the means (T, m), from all blocks or some of them."""
        keep = list(range(len(self.log_z))) if blocks is None else list(blocks)
        log_z = logsumexp(self.log_z[keep], axis=0) - np.log(len(keep))
        weight = np.exp(self.log_z[keep] - logsumexp(self.log_z[keep], axis=0))
        return log_z, np.einsum("bt,btm->tm", weight, self.mean[keep])


def estimate(pool: Pool, targets: Targets, moments: Moments, check: bool = True) -> Estimate:
    """Every target and moment from every block; with `check`, targets the ladder does not support are refused."""
    points = targets.points
    shape = (len(pool.blocks), len(points))
    log_z, log_z2, bottom = np.full(shape, -np.inf), np.full(shape, -np.inf), np.zeros(shape)
    mean: Array | None = None
    for b, (block, log_bases) in enumerate(zip(pool.blocks, pool.log_base, strict=True)):
        total: list[list[Array]] = [[] for _ in points]
        for replica, log_base in zip(block, log_bases, strict=True):
            for some, energy in along(targets, replica):
                values = moments(replica, energy)
                for t in some:
                    log_w = log_base + targets.log_t(energy, points[t]["beta"])
                    top = log_w.max()
                    where = np.flatnonzero(log_w > top - NEGLIGIBLE)
                    weight = np.exp(log_w[where] - top)
                    below = weight[replica.energy[where] < replica.bottom].sum()
                    parts = [weight.sum(), (weight**2).sum(), below, *values.sums(weight, where)]
                    total[t].append(np.concatenate([[top], parts]))
        for t, rows in enumerate(total):
            table = np.array(rows)
            scale = np.exp(table[:, 0] - table[:, 0].max())
            z = (scale * table[:, 1]).sum()
            log_z[b, t] = table[:, 0].max() + np.log(z)
            log_z2[b, t] = 2 * table[:, 0].max() + np.log((scale**2 * table[:, 2]).sum())
            bottom[b, t] = (scale * table[:, 3]).sum() / z
            if mean is None:
                mean = np.zeros((*shape, table.shape[1] - 4))
            mean[b, t] = scale @ table[:, 4:] / z
    assert mean is not None
    ess = np.exp(2 * logsumexp(log_z, axis=0) - logsumexp(log_z2, axis=0))
    share = (np.exp(log_z - logsumexp(log_z, axis=0)) * bottom).sum(axis=0)
    found = Estimate(pool, targets, moments, log_z, mean, ess, share)
    if check:
        refuse_unsupported(found)
    return found


def along(targets: Targets, replica: Samples) -> Iterator[tuple[list[int], Array]]:
    """(targets that differ in beta alone, U' of the samples there), for every set of couplings."""
    groups: dict[tuple[tuple[str, float], ...], list[int]] = {}
    for t, point in enumerate(targets.points):
        couplings = {name: value for name, value in point.items() if name != "beta"} | dict(targets.rest)
        groups.setdefault(tuple(couplings.items()), []).append(t)
    for couplings_here, some in groups.items():
        energy = replica.energy_at(dict(couplings_here))
        energy[~np.isfinite(energy)] = 0.0  # such a sample has no weight; its energy must not spoil the sums
        yield some, energy


BOTTOM_SHARE = 0.25  # of a target; more of it on so few particles means that the target lies below the ladder


def refuse_unsupported(found: Estimate) -> None:
    for t, point in enumerate(found.targets.points):
        where = ", ".join(f"{name} = {value:g}" for name, value in point.items())
        if found.bottom_share[t] > BOTTOM_SHARE:
            raise ValueError(
                f"The ladder does not reach low enough for {where}: {found.bottom_share[t]:.0%} of this target lies "
                f"below the energies of its last level (at most {BOTTOM_SHARE:.0%} is allowed); run a deeper ladder."
            )
        if not found.ess[t] >= ESS_FLOOR:
            raise ValueError(
                f"The ladder does not support {where}: the answer would rest on {found.ess[t]:.3g} effective samples, "
                f"and at least {ESS_FLOOR:g} are needed; run a ladder nearer to it, or one with more particles."
            )
