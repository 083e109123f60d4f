"""Standard errors: the jackknife over independent blocks, the genealogy of a ladder, or what both say together.

Either estimates a variance, and knows it no better than its degrees of freedom allow: B - 1 for the jackknife over B
blocks, the effective number of families for the genealogy.  Together they have

    s^2 = (n_j s_j^2 + n_g s_g^2) / (n_j + n_g)

with n_j + n_g degrees of freedom.  A z-score with such an s follows Student's t, so s is multiplied by the ratio of the
quantiles of t and of the normal distribution at one standard deviation: 68% of the answers are within one error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from observables.estimation.estimator import Estimate
from observables.estimation.genealogy import Genealogy, read_genealogy

Array = np.ndarray
Function = Callable[[Array, Array], Array]  # (log_z (T,), mean (T, m)) -> (T, ...)

# From this many blocks on the jackknife alone is as good as both together, and cheaper.
ENOUGH_BLOCKS = 16
# Families are cut after some levels and grouped by ancestors, so that their variance may be wrong by a fifth however many
# there are: as if it had this many degrees of freedom.
MOST_FREEDOM = 50.0
# Probability below which blocks scatter more than families explain: families miss something then, and blocks alone count.
DISAGREE = 0.01


class Answer(NamedTuple):
    """A value and its standard error."""

    value: Array
    error: Array


class Uncertain:
    """Functions of an estimate with their errors.

    errors: "replicas" (jackknife), "genealogy", or "auto": both together, corrected for the few degrees of freedom they
    have; the jackknife alone for walks, which have no genealogy, and where blocks are many.  families: the genealogy of this
    estimate, if it was read before.
    """

    def __init__(self, found: Estimate, errors: str = "auto", families: Genealogy | None = None):
        blocks = len(found.log_z)
        if errors not in ("auto", "replicas", "genealogy"):
            raise ValueError(f"errors must be 'auto', 'replicas' or 'genealogy', but {errors!r} was given.")
        if errors == "genealogy" and not found.pool.of_ladders:
            raise TypeError("Errors from the genealogy need ladders: chains have no ancestors; choose errors='replicas'.")
        needs_blocks = errors == "replicas" or not found.pool.of_ladders
        if needs_blocks and blocks < 2:
            what = "replicas" if found.pool.of_ladders else "chains"
            raise ValueError(f"Errors from {what} need at least 2 independent ones, but there is {blocks}.")
        self.found = found
        self._plain = errors != "auto"
        nested = any(replica.live is not None for replica in found.pool.replicas)
        if nested:  # shells instead of families, unless ladders of several couplings are mixed
            ancestors = all(len(block) == 1 for block in found.pool.blocks)
        else:
            ancestors = all(replica.parent is not None for replica in found.pool.replicas)
        from_families = errors == "genealogy" or (
            not needs_blocks and (blocks < 2 or (blocks < ENOUGH_BLOCKS and ancestors))
        )
        self._jackknifed = errors != "genealogy" and blocks > 1
        self.families = (families or read_genealogy(found)) if from_families else None
        within = "order statistics" if nested else "genealogy"
        self.method = " and ".join(["replicas"] * self._jackknifed + [within] * from_families)

    def of(self, function: Function) -> Answer:
        """A function of log Z (T,) and the means (T, m), with its error."""
        log_z, mean = self.found.pooled()
        with np.errstate(invalid="ignore", divide="ignore"):
            value = function(log_z, mean)
            estimates = []
            if self._jackknifed:
                estimates.append(self._jackknife(function))
            if self.families is not None:
                estimates.append(self._from_families(function, self.families))
            error = np.sqrt(estimates[0].value) if self._plain else _together(estimates)
        # The mean of an observable that is undefined for some samples is undefined, and so is its error.
        return Answer(value, np.where(np.isnan(value), np.nan, error))

    def _jackknife(self, function: Function) -> Variance:
        """(B - 1)/B sum (theta_(b) - mean theta_(.))^2, theta_(b) without block b."""
        blocks = range(len(self.found.log_z))
        without = np.array([function(*self.found.without(b)) for b in blocks])
        variance = (len(blocks) - 1) * without.var(axis=0)
        return Variance(variance, np.full_like(variance, len(blocks) - 1.0))

    def _from_families(self, function: Function, families: Genealogy) -> Variance:
        """To first order; in a single ladder with each family left out, where that is more."""
        first = self._delta(function, families.covariance, families.freedom)
        if families.left_out is None:
            return first
        left_out = self._delta(function, *families.left_out)
        more = left_out.value > first.value
        return Variance(*(np.where(more, one, other) for one, other in zip(left_out, first, strict=True)))

    def _delta(self, function: Function, covariance: Array, freedom: Array) -> Variance:
        """g C g with C the covariance of log Z and the means, g the gradient by central differences."""
        log_z, mean = self.found.pooled()
        mean = np.nan_to_num(mean)
        step = 1e-3 * np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0))
        gradient = []
        for i in range(step.shape[1]):
            h = np.where(step[:, i] > 0, step[:, i], 1e-12)
            sides = []
            for sign in (1, -1):
                moved_z, moved = log_z.copy(), mean.copy()
                (moved_z if i == 0 else moved[:, i - 1])[...] += sign * h
                sides.append(function(moved_z, moved))
            shape = (-1, *([1] * (np.ndim(sides[0]) - 1)))
            gradient.append((sides[0] - sides[1]) / (2 * h).reshape(shape))
        g = np.array(gradient)  # (1 + m, T, ...)
        variance = np.maximum(np.einsum("it...,tij,jt...->t...", g, covariance, g), 0)
        # Every moment has its own freedom; an answer has the mean of 1/freedom, by what each contributes to it.
        own = np.einsum("it...,tii->it...", g**2, covariance)
        uncertainty = np.einsum("it...,ti->t...", own, 1 / freedom)
        total = np.divide(own.sum(axis=0), uncertainty, out=np.ones_like(variance), where=uncertainty > 0)
        return Variance(variance, np.clip(total, 1.0, MOST_FREEDOM))

    def log_correction(self, error: Array) -> Array:
        """The correction of log Z, the logarithm of the mean Z of the blocks, for its bias, given its error.

        The Z of a ladder is unbiased, as that of every sequential Monte Carlo run with resampling, so the logarithm of a
        mean of them is low by error^2/2.  That holds for telescoped volumes, and within errors for self-consistent ones:
        over 80 ladders of spike_slab(10) with 8 x 200 particles log Z of a replica was low by 0.46(15) of its variance.
        What is left over 200 ladders, Z low by 0.022(6), comes from levels that the particles choose themselves.
        (On synthetic ladders, whose levels have no ancestors in common, it is a fifth.)
        The order-statistic volumes of nested sampling have unbiased logarithms, so the logarithm of the mean of B of them is
        high by (B - 1) error^2/2.  Chains share one scale c, or the volumes of a bridge, whose logarithms are
        nearly unbiased: there is nothing to correct.
        """
        if not self.found.pool.of_ladders or self.found.response is not None:
            return np.zeros_like(error)
        nested = all(replica.live is not None for replica in self.found.pool.replicas)
        if self.families is not None and len(self.found.log_z) == 1 and not nested:
            # A family that carries nearly all of Z makes the error large, but Z no more likely to be low: first order only.
            first = self._delta(lambda log_z, mean: log_z, self.families.covariance, self.families.freedom)
            error = np.sqrt(first.value) if self._plain else _together([first])
        return error**2 / 2 * (1 - len(self.found.log_z) if nested else 1)


class Variance(NamedTuple):
    """An estimate of a variance, and how many degrees of freedom it has."""

    value: Array
    freedom: Array


def _together(estimates: list[Variance]) -> Array:
    """The standard error from one or two estimates of the variance."""
    first = estimates[0]
    if len(estimates) == 1:
        return np.sqrt(first.value) * student_ratio(first.freedom)
    second = estimates[1]
    freedom = first.freedom + second.freedom
    variance = (first.freedom * first.value + second.freedom * second.value) / freedom
    # Where blocks scatter more than the families explain, and where there is no derivative, blocks alone count.
    excess = stats.f.sf(first.value / second.value, first.freedom, second.freedom)
    alone = ~(excess > DISAGREE)
    return np.where(
        alone, np.sqrt(first.value) * student_ratio(first.freedom), np.sqrt(variance) * student_ratio(freedom)
    )


def student_ratio(freedom: Array) -> Array:
    """The quantile of Student's t where the normal distribution has one standard deviation."""
    return stats.t.isf(stats.norm.sf(1.0), freedom)
