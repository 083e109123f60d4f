"""How large is the error of a single ladder?  Families of particles, read from the genealogy, as independent groups.

An estimate is a function of the populations of all levels.  A particle moves it in two ways: by its own weight, and by
the volume ratios G_{k+1}/G_k = sum_j w_kj r_k(U_kj) it takes part in, on which all later volumes rest.  To first order

    delta F = sum_k sum_j psi_kj,    psi_kj = V_kj + c_k w_kj r_k(U_kj)/mean(r_k)  minus its average in the level,

with V_kj = W_kj y_kj the sample's own term (y = 1 for log Z, O - <O> for a mean, W normalised), and
c_k = sum_{l > k} sum_i V_i p_l(U_i), where p_l = (n_l f_l/G_l)/D is the share of level l in the mixture.  Volumes
refined by WHAM have another second term; see `Volumes`.

Particles with a common ancestor are correlated, those without are nearly not, hence Var F = sum over families of
(sum of psi in the family)^2: Chan and Lai (2013), Lee and Whiteley (2018).  Lineages coalesce in long ladders, so the
ancestor is taken a limited number of levels back: Olsson and Douc (2019).  Here a ladder is cut into stretches of `lag`
levels; a stretch with the sum B, and the stretch before it with the sum A, are grouped by the ancestors at the
beginning of the stretch before, and contribute B^2 + 2AB.  The prior draws count as the level before the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from observables.estimator import Bins, Columns, Estimate, Targets, along
from observables.mixture import log_factor
from observables.replica import Replica
from observables.wham import Likelihood

Array = np.ndarray

SHARE_BINS = 2000  # energies, at least, at which the shares p_l are evaluated
NEGLIGIBLE = 60.0  # a sample with exp(-60) of all weight moves nothing
SURVIVING_FAMILIES = 20  # the lag is shortened until this many families are left on average


def covariance(found: Estimate, lag: int | None = None) -> Array:
    """(T, 1 + m, 1 + m): the covariance of log Z and the means of the moments, target by target."""
    log_z, mean = found.pooled()
    log_total = log_z + np.log(len(found.log_z))
    size = 1 + mean.shape[1]
    result = np.zeros((len(log_z), size, size))
    for block, log_bases in zip(found.pool.blocks, found.pool.log_base, strict=True):
        for group in zip(*(along(found.targets, replica) for replica in block), strict=True):
            some = group[0][0]
            beta = np.array([found.targets.points[t]["beta"] for t in some])
            parts = [
                Terms(found.targets, r, base, energy, found.moments(r, energy), beta, log_total[some], mean[some])
                for r, base, (_, energy) in zip(block, log_bases, group, strict=True)
            ]
            for part in parts:
                length = lag if lag is not None else choose_lag(part.replica)
                result[some] += _families(part, Volumes(part, parts), length)
    return result


@dataclass(frozen=True)
class Terms:
    """V = W y of the samples of one replica."""

    targets: Targets
    replica: Replica
    log_base: Array
    energy: Array  # U' of the samples
    values: Columns | Bins
    beta: Array  # (T,)
    log_total: Array  # (T,)
    mean: Array  # (T, m)

    def of(self, part: slice) -> Array:
        """V (n, T, 1 + m) of some samples."""
        log_w = self.targets.log_t(self.energy[part, None], self.beta)
        log_w += self.log_base[part, None] - self.log_total
        shape = (*log_w.shape, 1 + self.mean.shape[1])
        if log_w.max() < -NEGLIGIBLE:
            return np.zeros(shape)
        weight = np.exp(log_w)
        v = np.empty(shape)
        v[..., 0] = weight
        np.multiply(weight[..., None], self.values.rows(part)[:, None, :] - self.mean, out=v[..., 1:])
        return v

    def levels(self) -> Iterator[slice]:
        """The samples that are prior draws, then those of every level."""
        count, draws = self.replica.shape[1], self.replica.draws
        yield slice(0, draws)
        for k in range(self.replica.shape[0]):
            yield slice(draws + k * count, draws + (k + 1) * count)

    def chunks(self) -> Iterator[slice]:
        """All samples, in pieces of limited size, whatever their level."""
        rows = max(1, 2_000_000 // (len(self.beta) * (1 + self.mean.shape[1])))
        for start in range(0, len(self.energy), rows):
            yield slice(start, min(start + rows, len(self.energy)))


class Volumes:
    """How the samples of a replica move an estimate through its level volumes.

    a_l = dF/dlog G_l = sum_i V_i p_l(U_i).  Telescoped volumes: c_k = sum_{l > k} a_l times w r_k/mean(r_k).
    Self-consistent ones: n w sum_l b_l p_l(U) with H b = a, H the Hessian of the WHAM likelihood.
    """

    def __init__(self, part: Terms, parts: list[Terms]):
        self.replica = part.replica
        self.shape = (len(part.beta), 1 + part.mean.shape[1])
        sample = self.replica.energy[:: max(1, len(self.replica.energy) // 200_000)]
        self.edges = np.unique(
            np.quantile(sample[np.isfinite(sample)], np.linspace(0, 1, max(SHARE_BINS, len(self.replica.level)) + 1))
        )
        self.centres = np.concatenate([self.edges[:1], 0.5 * (self.edges[1:] + self.edges[:-1]), self.edges[-1:]])
        slopes = self._slopes(parts)  # a: (K, T * F)
        if self.replica.self_consistent:
            likelihood = Likelihood(self.replica)
            hessian = likelihood.derivatives(np.zeros(likelihood.hats.shape[1]))[1]
            at_levels = likelihood.hats @ np.linalg.lstsq(hessian, likelihood.hats.T @ slopes, rcond=1e-12)[0]
            self.response = np.zeros((len(self.centres), at_levels.shape[1]))
            for rows, near, share in self.replica.mixture.shares(self.centres):
                self.response[rows] = share @ at_levels[near]
        else:
            # c of the prior draws is the sum of all slopes, c of level k that of the levels after it
            self.later = slopes[::-1].cumsum(axis=0)[::-1].reshape(-1, *self.shape)

    def _bin(self, energy: Array) -> Array:
        return np.searchsorted(self.edges, energy, side="right")

    def _slopes(self, parts: list[Terms]) -> Array:
        histogram = np.zeros((len(self.centres), self.shape[0] * self.shape[1]))
        replica = self.replica
        for other in parts:
            energy, ratio = replica.energy, None
            if len(parts) > 1:  # V p_l = (V D_r/D) (p_l D/D_r), with D_r of this replica and D of the block
                energy = other.replica.energy_at({name: value for name, (value, _, _) in replica.couplings.items()})
                with np.errstate(invalid="ignore"):
                    log_ratio = replica.mixture.log_density(energy) + other.log_base - other.replica.log_share
                ratio = np.exp(np.nan_to_num(log_ratio, nan=-np.inf))
            for samples in other.chunks():
                v = other.of(samples)
                into = one_hot(self._bin(energy[samples]), len(self.centres), None if ratio is None else ratio[samples])
                histogram += into @ v.reshape(len(v), -1)
        slopes = np.zeros((len(replica.level), histogram.shape[1]))
        for rows, near, share in replica.mixture.shares(self.centres):
            slopes[near] += share.T @ histogram[rows]
        return slopes

    def terms(self, p: int, samples: slice, weight: Array) -> Array | float:
        """The second term of psi, (n, T, F), at the prior draws (p = 0) or at level p - 1."""
        if self.replica.self_consistent:
            response = self.response[self._bin(self.replica.energy[samples])].reshape(-1, *self.shape)
            return len(weight) * weight[:, None, None] * response
        if p == len(self.replica.level):
            return 0.0
        return self.later[p] * (weight * _next_ratio(self.replica, p, samples, weight))[:, None, None]


def _families(part: Terms, volumes: Volumes, lag: int) -> Array:
    """sum over stretches and families of B^2 + 2AB, (T, 1 + m, 1 + m)."""
    replica = part.replica
    if replica.parent is None:
        raise ValueError("This ladder has no genealogy (variable `parent`), so one replica has no error estimate.")
    result = np.zeros((volumes.shape[0], volumes.shape[1], volumes.shape[1]))
    # Sums by the ancestor at the beginning of a stretch; `before` is that ancestor's own, a stretch earlier.
    ancestor = before = np.arange(replica.draws)
    a = np.zeros((replica.draws, *volumes.shape))
    b = np.zeros_like(a)
    for p, samples in enumerate(part.levels()):
        if p > 0:
            ancestor = ancestor[replica.parent[p - 1]]
        if p > 0 and p % lag == 0:
            result += _products(a, _sum_by(before, len(a), b))
            a, before, ancestor = b, ancestor, np.arange(len(ancestor))
            b = np.zeros((len(ancestor), *volumes.shape))
        v = part.of(samples)
        weight = np.exp(replica.log_share[samples] - np.log(len(v)))
        v += volumes.terms(p, samples, weight)
        v -= weight[:, None, None] * v.sum(axis=0)
        b += _sum_by(ancestor, len(b), v)
    return result + _products(a, _sum_by(before, len(a), b))


def _next_ratio(replica: Replica, p: int, samples: slice, weight: Array) -> Array:
    """r_k / mean(r_k) at the particles of level k = p - 1 (the prior draws are p = 0)."""
    energy = replica.energy[samples].astype(float)
    log_ratio = log_factor(replica.level[p], replica.softness, energy)
    if p > 0:
        with np.errstate(invalid="ignore"):
            log_ratio = log_ratio - log_factor(replica.level[p - 1], replica.softness, energy)
    log_ratio = np.where((weight > 0) & np.isfinite(log_ratio), log_ratio, -np.inf)
    ratio = np.exp(log_ratio - log_ratio.max())
    return ratio / (weight @ ratio)


def _sum_by(family: Array, count: int, values: Array) -> Array:
    return (one_hot(family, count) @ values.reshape(len(values), -1)).reshape(count, *values.shape[1:])


def one_hot(row: Array, count: int, value: Array | None = None) -> csc_array:
    """The sparse matrix (count, n) with one entry in every column."""
    value = np.ones(len(row)) if value is None else value
    return csc_array((value, row, np.arange(len(row) + 1)), shape=(count, len(row)))


def _products(a: Array, b: Array) -> Array:
    ab = np.einsum("itf,itg->tfg", a, b)
    return np.einsum("itf,itg->tfg", b, b) + ab + ab.transpose(0, 2, 1)


def choose_lag(replica: Replica) -> int:
    """The longest stretch (a power of two) over which SURVIVING_FAMILIES families are left, or else the shortest."""
    assert replica.parent is not None
    lag, count = 1, replica.shape[0]
    while 2 * lag < count and _families_after(replica, 2 * lag) >= SURVIVING_FAMILIES:
        lag *= 2
    return lag


def _families_after(replica: Replica, lag: int, starts: int = 16) -> float:
    """1 / sum (family weight)^2 after `lag` levels, the median over several places of the ladder."""
    assert replica.parent is not None
    count, n = replica.shape
    left = []
    for end in np.unique(np.linspace(lag, count - 1, starts).astype(int)):
        ancestor = np.arange(n)
        for k in range(end, end - lag, -1):
            ancestor = replica.parent[k][ancestor]
        weight = np.nan_to_num(np.exp(replica.log_weight[end].astype(float)))
        left.append(1 / np.sum(np.bincount(ancestor, weight) ** 2))
    return float(np.median(left))
