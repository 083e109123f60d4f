"""The error of a single ladder: families of particles, read from the genealogy, as independent groups.

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
beginning of the stretch before, and contribute (A + B)^2 - A^2.  The prior draws count as the level before the first.

First order is not enough where one family carries nearly all of Z: it moves log Z by 1, however rare it is, and the means,
which are its own, not at all.  Without a family that carries the share s of Z, log Z would be different by log(1 - s), and
the mean of O by -s_O/(1 - s), with s_O the family's sum of psi for that mean.  A single ladder uses these changes instead
of s and s_O: the jackknife over families.  Their squares s^2 + s^3 + ... include the skewness of Z.  Several replicas show
by their scatter what such families do, and use first order.

A family that was not found is in no sum over families.  But it leaves a trace: lineages that find a rare phase early grow
for longer, so that their shares of Z have a heavy tail, as the sizes of clones of mutants have (Luria and Delbrueck 1943).
Families that merely drift have exponentially distributed shares, with sum s^3/(sum s^2)^2 = 3/2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csc_array, csr_array

from observables.estimation.estimator import Estimate
from observables.estimation.shells import shell_variance
from observables.estimation.terms import NUMBERS_AT_ONCE, Terms, one_hot
from observables.samples.mixture import log_factor
from observables.samples.of_ladders import Replica
from observables.samples.wham import Likelihood

Array = np.ndarray

SURVIVING_FAMILIES = 20  # the lag is shortened until this many families are left on average


class Genealogy(NamedTuple):
    """What the families of all replicas say about the error of an estimate."""

    covariance: Array
    """(T, 1 + m, 1 + m): the covariance of log Z and the means of the moments, target by target"""
    freedom: Array
    """(T, 1 + m): degrees of freedom of each variance, as far as the families themselves show them

    A sum of squares sum s^2 of normal family sums has the relative variance 2 sum s^4 / (3 (sum s^2)^2), which is 2/freedom.
    """
    largest: Array
    """(T,): the largest share of Z that one family carries; 0 where no family is left out"""
    families: Array
    """(T,): effective number of families that carry Z, 1/sum s^2 in the stretch with the fewest; infinite for replicas"""
    tail: Array
    """(T,): how unequal their shares are, sum s^3/(sum s^2)^2: 1 for equal ones, 3/2 for exponential ones"""
    left_out: tuple[Array, Array] | None = None
    """covariance and freedom with each family left out in turn instead of first order, for a single ladder"""


class Squares(NamedTuple):
    """Sums over families, which replicas, stretches and couplings add up."""

    second: Array  # (T, F, F)
    fourth: Array  # (T, F) squares of what each family adds to the variance
    left_second: Array  # the same with each family left out
    left_fourth: Array
    largest: Array  # (T,) a maximum, not a sum
    squares: Array  # (T,) sum of the squared shares of Z, in the stretch where it is largest
    cubes: Array  # (T,) of the cubed ones there

    @classmethod
    def of(cls, second: Array, fourth: Array) -> Squares:
        """Those of first order, where no family is left out."""
        return cls(second, fourth, second, fourth, *np.zeros((3, len(second))))

    def add(self, other: Squares, some: Array | slice = slice(None)) -> None:
        """Add those of some of the targets, in place."""
        for mine, its in zip(self[:4], other[:4], strict=True):
            mine[some] += its
        self.largest[some] = np.maximum(self.largest[some], other.largest)
        fewer = other.squares > self.squares[some]
        self.squares[some] = np.where(fewer, other.squares, self.squares[some])
        self.cubes[some] = np.where(fewer, other.cubes, self.cubes[some])


def _none(targets: int, size: int) -> Squares:
    """Sums to begin with."""
    second, fourth = (targets, size, size), (targets, size)
    sums = np.zeros(second), np.zeros(fourth), np.zeros(second), np.zeros(fourth)
    return Squares(*sums, *np.zeros((3, targets)))


def read_genealogy(found: Estimate, lag: int | None = None) -> Genealogy:
    """The covariance of log Z and the means of the moments, from families of particles or the shells of nested ladders."""
    log_z, mean = found.pooled()
    mean = np.nan_to_num(mean)
    log_total = log_z + np.log(len(found.log_z))
    size = 1 + mean.shape[1]
    result, single = _none(len(log_z), size), len(found.log_z) == 1
    for samples, log_bases in zip(found.pool.blocks, found.pool.log_base, strict=True):
        block = [replica for replica in samples if isinstance(replica, Replica)]
        for group in zip(*(found.targets.along(replica) for replica in block), strict=True):
            some = group[0][0]
            beta = np.array([found.targets.points[t]["beta"] for t in some])
            parts = [
                Terms(
                    targets=found.targets,
                    replica=replica,
                    log_base=base,
                    energy=energy,
                    values=found.moments(replica, energy),
                    beta=beta,
                    log_total=log_total[some],
                    mean=mean[some],
                )
                for replica, base, (_, energy) in zip(block, log_bases, group, strict=True)
            ]
            for part in parts:
                if part.replica.live is None:
                    length = lag if lag is not None else choose_lag(part.replica)
                    squares = _families(part, Volumes(part, parts), length, single)
                elif len(parts) == 1:
                    squares = Squares.of(*shell_variance(part))
                else:
                    raise ValueError(
                        "One nested ladder at each of several couplings has no error estimate; give at least 2 replicas of "
                        "each, and errors='replicas'."
                    )
                result.add(squares, some)
    left_out = (result.left_second, _freedom(result.left_second, result.left_fourth)) if single else None
    freedom = _freedom(result.second, result.fourth)
    with np.errstate(divide="ignore", invalid="ignore"):
        families, tail = 1 / result.squares, result.cubes / result.squares**2
    return Genealogy(result.second, freedom, result.largest, families, tail, left_out)


def _freedom(covariance: Array, fourth: Array) -> Array:
    """3 V^2 / sum of squares of what each family adds to V; 3 where there is nothing."""
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    return 3 * np.divide(variance**2, fourth, out=np.ones_like(fourth), where=fourth > 0)


class Volumes:
    """How the samples of a replica move an estimate through its level volumes.

    a_l = dF/dlog G_l = sum_i V_i p_l(U_i).  Telescoped volumes: c_k = sum_{l > k} a_l times w r_k/mean(r_k).
    Self-consistent ones: n w sum_l b_l p_l(U) with H b = a, H the Hessian of the WHAM likelihood.
    """

    def __init__(self, part: Terms, parts: list[Terms]):
        self.replica = part.replica
        slopes = self._slopes(part, parts)  # a: (K, T * F)
        if self.replica.self_consistent:
            at_levels = response_to_slopes(self.replica, slopes)
            self.response = np.zeros((len(self.replica.grid.energy), slopes.shape[1]))
            for rows, near, share in self.replica.mixture.shares(self.replica.grid.energy):
                self.response[rows] = share @ at_levels[near]
        else:
            # c of the prior draws is the sum of all slopes, c of level k that of the levels after it
            self.later = slopes[::-1].cumsum(axis=0)[::-1]

    def _slopes(self, part: Terms, parts: list[Terms]) -> Array:
        replica, grid = self.replica, self.replica.grid
        histogram = np.zeros((len(grid.energy), part.shape[0] * part.shape[1]))
        for other in parts:
            index = grid.of_sample
            if len(parts) > 1:  # V p_l = (V D_r/D) (p_l D/D_r), with D_r of this replica and D of the block
                energy = other.replica.energy_at({name: value for name, (value, _, _) in replica.couplings.items()})
                index = grid.bin(energy)
                with np.errstate(invalid="ignore"):
                    log_ratio = replica.mixture.log_density(energy) + other.log_base - other.replica.log_share
                log_base = other.log_base + np.nan_to_num(log_ratio, nan=-np.inf)
                other = dataclasses.replace(other, log_base=log_base)
            for samples in other.chunks():
                weight = other.weights(samples)
                if weight is not None:
                    histogram += other.sums(samples, weight, index[samples], len(histogram))
        slopes = np.zeros((len(replica.level), histogram.shape[1]))
        for rows, near, share in replica.mixture.shares(grid.energy):
            slopes[near] += share.T @ histogram[rows]
        return slopes

    def sums(self, p: int, samples: slice, weight: Array, groups: Sequence[csc_array]) -> list[Array]:
        """The second term of psi, summed over groups of samples, each (group, T * F), as one-hot matrices give them.

        The samples are those of the levels from p - 1 on (p = 0 is the prior draws); weight is (levels, N).
        """
        if self.replica.self_consistent:
            value = (weight.shape[1] * weight).ravel()
            at = (value, self.replica.grid.of_sample[samples], np.arange(len(value) + 1))
            in_bins = csr_array(at, shape=(len(value), len(self.response)))
            return [(group @ in_bins) @ self.response for group in groups]
        terms = self._telescoped(p, samples, weight)
        return [group @ terms for group in groups]

    def _telescoped(self, p: int, samples: slice, weight: Array) -> Array:
        """The second term of psi with telescoped volumes, (n, T * F)."""
        found = []
        for i, w in enumerate(weight):
            here = slice(samples.start + i * len(w), samples.start + (i + 1) * len(w))
            if p + i < len(self.later):
                found.append((w * _next_ratio(self.replica, p + i, here, w))[:, None] * self.later[p + i])
            else:
                found.append(np.zeros((len(w), self.later.shape[1])))
        return np.concatenate(found)


_responses: WeakKeyDictionary[Replica, tuple[Array, csr_array]] = WeakKeyDictionary()


def response_to_slopes(replica: Replica, slopes: Array) -> Array:
    """b at the levels, with H b = a; the inverse of H is kept for the next call."""
    if replica not in _responses:
        likelihood = Likelihood(replica)
        hessian = likelihood.derivatives(np.zeros(likelihood.hats.shape[1]))[1]
        _responses[replica] = np.linalg.pinv(hessian, rcond=1e-12, hermitian=True), likelihood.hats
    inverse, hats = _responses[replica]
    return hats @ (inverse @ (hats.T @ slopes))


def _families(part: Terms, volumes: Volumes, lag: int, single: bool) -> Squares:
    """Sums over stretches and families of (A + B)^2 - A^2; in a single ladder each family is left out in turn."""
    replica = part.replica
    if replica.parent is None:
        raise ValueError("This ladder has no genealogy (variable `parent`), so one replica has no error estimate.")
    levels, n = replica.shape
    size = part.shape[0] * part.shape[1]
    result = _none(*part.shape)
    # What all other families carry is an average over n particles, and known to 1/sqrt(n) at best.
    most = 1 - 1 / np.sqrt(n) if single else None
    # Sums by the ancestor at the beginning of a stretch; `before` is that ancestor's own, a stretch earlier.
    before = np.arange(replica.draws)
    a = np.zeros((replica.draws, size))
    b = _family_sums(part, volumes, 0, before[None], slice(0, replica.draws), replica.draws)
    ancestor = before
    at_once = max(1, NUMBERS_AT_ONCE // (n * size))
    p = 1
    while p <= levels:
        ancestor = ancestor[replica.parent[p - 1]]
        if p % lag == 0:
            result.add(_products(part.about_means(a), part.about_means(one_hot(before, len(a)) @ b), most))
            a, before, ancestor = b, ancestor, np.arange(n)
            b = np.zeros((n, size))
        family = [ancestor]
        end = min(p + at_once, levels + 1, (p // lag + 1) * lag)
        for q in range(p + 1, end):
            ancestor = ancestor[replica.parent[q - 1]]
            family.append(ancestor)
        samples = slice(replica.draws + (p - 1) * n, replica.draws + (end - 1) * n)
        b += _family_sums(part, volumes, p, np.array(family), samples, len(b))
        p = end
    result.add(_products(part.about_means(a), part.about_means(one_hot(before, len(a)) @ b), most))
    return result


def _family_sums(part: Terms, volumes: Volumes, p: int, family: Array, samples: slice, count: int) -> Array:
    """sum of psi by family, (count, T * F), over some levels beginning with p - 1; family is (levels, N)."""
    levels, n = family.shape
    weight = np.exp(part.replica.log_share[samples] - np.log(n)).reshape(levels, n)
    level = np.repeat(np.arange(levels), n)
    sums, of_level = volumes.sums(p, samples, weight, [one_hot(family.ravel(), count), one_hot(level, levels)])
    own = part.weights(samples)
    if own is not None:
        sums += part.sums(samples, own, family.ravel(), count)
        of_level += part.sums(samples, own, level, levels)
    # minus the average in the level: every family loses its share of the level's sum
    share = csc_array((weight.ravel(), family.ravel(), np.arange(0, family.size + 1, n)), shape=(count, levels))
    return sums - share @ of_level


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


def _products(a: Array, b: Array, most: float | None) -> Squares:
    """(A + B)^2 - A^2 summed over families; with `most`, the largest share of Z, of the changes without each family."""
    ab = np.einsum("itf,itg->tfg", a, b)
    each = b * (b + 2 * a)
    found = Squares.of(np.einsum("itf,itg->tfg", b, b) + ab + ab.transpose(0, 2, 1), (each**2).sum(axis=0))
    if most is None:
        return found
    factor = left_out_factors((a + b)[:, :, :1], a.shape[2], most)
    # One factor for A and A + B: with one of its own, A could take away more than A + B brings.
    before, both = factor * a, factor * (a + b)
    second = np.einsum("itf,itg->tfg", both, both) - np.einsum("itf,itg->tfg", before, before)
    fourth = ((factor**2 * each) ** 2).sum(axis=0)
    share = (a + b)[:, :, 0]
    return found._replace(
        left_second=second,
        left_fourth=fourth,
        largest=np.minimum(share, most).max(axis=0),
        squares=(share**2).sum(axis=0),
        cubes=(share**3).sum(axis=0),
    )


def left_out_factors(share: Array, size: int, most: float) -> Array:
    """How much more than to first order log Z and the means change without each family, (families, T, size).

    -log(1 - s)/s and 1/(1 - s), s the share (families, T, 1) of Z: Z (1 - s) and Z <O> - Z (s_O + s <O>) are what the other
    families leave.
    """
    s = np.minimum(share, most)
    log = np.divide(-np.log1p(-s), s, out=np.ones_like(s), where=s != 0)
    return np.concatenate([log, np.repeat(1 / (1 - s), size - 1, axis=2)], axis=2)


_lags: WeakKeyDictionary[Replica, int] = WeakKeyDictionary()


def choose_lag(replica: Replica) -> int:
    """The longest stretch (a power of two) over which SURVIVING_FAMILIES families are left, or else the shortest."""
    if replica not in _lags:
        lag = 1
        while 2 * lag < replica.shape[0] and _families_after(replica, 2 * lag) >= SURVIVING_FAMILIES:
            lag *= 2
        _lags[replica] = lag
    return _lags[replica]


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
