"""What is Z in absolute terms?  Walkers know it up to a factor, which the exact draws from the prior they meet give them.

Walkers have the density pi(x) w(U)/c with an unknown c = int pi w, draws from the prior have pi(x).  Where both are found
their numbers must agree: with n samples of walkers and m draws, and r = (n/m) w/c, the best use of both is the c at which

    sum over draws of r/(1 + r) = sum over samples of 1/(1 + r)

(Bennett 1976).  Only log w at either enters.  Its variance is about one over the sum of r/(1 + r)^2 over all of them: the
number of samples that could as well be draws, or the other way round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from observables.estimation.estimator import Columns, Targets, estimate
from observables.samples.of_ladders import Samples
from observables.samples.pool import Pool

Array = np.ndarray

FAR = 40.0  # beyond all log w: there every sample could be a draw, or every draw a sample


class Scale(NamedTuple):
    """log c of a pool of walkers."""

    log_c: float
    without: Array
    """log c without one of the groups, (group,), to first order"""
    meetings: Array
    """samples and draws of each group that could be either, (group,)"""


def scale_of(pool: Pool) -> Scale:
    """From what the groups of `observables.walked` saw, and the draws that came with it."""
    groups = [(replica.log_w, replica.prior_log_w) for replica in pool.replicas]
    ratio = np.log(groups[0][0].size / groups[0][1].size)

    def sums(log_c: float) -> tuple[Array, Array]:
        """Draws minus samples and (minus) the derivative of that with respect to log c, (group,)."""
        found = []
        for samples, draws in groups:
            could = expit(ratio + draws - log_c), expit(log_c - ratio - samples)
            found.append([could[0].sum() - could[1].sum(), sum((p * (1 - p)).sum() for p in could)])
        surplus, slope = np.array(found).T
        return surplus, slope

    known = np.concatenate([part[np.isfinite(part)] for group in groups for part in group]) + ratio
    log_c = float(brentq(lambda log_c: sums(log_c)[0].sum(), known.min() - FAR, known.max() + FAR, xtol=1e-9))
    surplus, slope = sums(log_c)
    with np.errstate(divide="ignore", invalid="ignore"):  # walkers that meet no draw have no scale
        without = log_c + (surplus.sum() - surplus) / (slope.sum() - slope)
    return Scale(log_c, without, slope)


def scaled(pool: Pool, scale: Scale) -> Pool:
    """The same samples, of which Z is known absolutely."""
    base = [[b + scale.log_c - np.log(b.size) for b in block] for block in pool.log_base]
    return Pool.of_samples(pool.ladders, pool.blocks, base, pool.volumes)


def log_z_error(pool: Pool, scale: Scale, by: str, cut: float, **couplings: float) -> Array:
    """The error of log Z of both phases (`by` < `cut`, and not) of a scaled pool, by leaving out one group after the other.

    A group that was longer in the first phase met more draws too, so that both are to be left out together.
    """

    def phases(replica: Samples, u: Array) -> Columns:
        ordered = replica.observable(by) >= cut
        return Columns([(~ordered).astype(float), ordered.astype(float)])

    found = estimate(pool, Targets.grid(pool, 1.0, couplings), phases, check=False)
    blocks = range(len(pool.blocks))
    without = []
    with np.errstate(divide="ignore", invalid="ignore"):  # a phase nobody met has no error
        for left_out in blocks:
            log_z, mean = found.pooled([b for b in blocks if b != left_out])
            without.append(log_z[0] + np.log(mean[0]) + scale.without[left_out])
        return np.sqrt((len(blocks) - 1) * np.var(without, axis=0))
