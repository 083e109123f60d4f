"""Weighted populations: effective sample sizes, branching, resampling, and the bias of a chosen level.

Every operation here changes how the weighted measure sum_j w_j delta(x_j) is represented, not the measure: branching
exactly, resampling in expectation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from quenchphys.parallel.random_numbers import uniform

Array = jax.Array


def normalise(log_weight: Array) -> tuple[Array, Array]:
    """(log w - log sum w, log sum w)."""
    total = jax.scipy.special.logsumexp(log_weight)
    return log_weight - total, total


def effective_size(log_weight: Array) -> Array:
    """Kish's (sum w)^2 / sum w^2, zero for a population without weight."""
    top = jnp.max(log_weight)
    w = jnp.exp(log_weight - jnp.where(jnp.isfinite(top), top, 0.0))
    return jnp.sum(w) ** 2 / jnp.maximum(jnp.sum(w * w), 1e-30)


def kept_share(log_weight: Array, log_ratio: Array) -> Array:
    """Share of effective size that a step keeps: <r>^2/<r^2> over the weighted population, r the incremental weights.

    The quotient of Kish's sizes after and before the step is the same on average, but depends on the noise of the weights
    carried along: it allows a long step when heavy particles happen to have small ratios r, which is when the mean of r is
    low.  Levels chosen by it make every volume too small by an amount of order levels/particles
    (`benchmarks/accuracy/choice_of_levels.py`).  Zhou, Johansen and Aston (2016) call this the conditional effective size.
    """
    top = jnp.max(jnp.where(log_weight > -jnp.inf, log_ratio, -jnp.inf))
    r = jnp.exp(log_ratio - jnp.where(jnp.isfinite(top), top, 0.0))
    w = jnp.exp(log_weight - jnp.max(log_weight))
    # Products are rounded before they are added, so that sums do not depend on the rest of the program.
    w, first, second = jax.lax.optimization_barrier((w, w * r, w * r * r))
    return jnp.sum(first) ** 2 / jnp.maximum(jnp.sum(second) * jnp.sum(w), 1e-30)


def choice_bias(log_weight: Array, log_ratio: Array, slope: Array, lineage: Array) -> Array:
    """By how much log <r> is too large at a level that was chosen to keep a share c = <r>^2/<r^2> of the same particles.

    A population whose ratios spread more than usual gets a level p that is moved by e = -delta log c / (d log c/dp), and its
    mean ratio depends more on p than usual: to first order in 1/N the mean of log <r> is off by the covariance of e and
    d log<r>/dp,

        - sum_g [sum_i w_i (2 r_i/<r> - r_i^2/<r^2> - 1)] [sum_i w_i (r_i' - r_i <r'>/<r>)/<r>] / (d log c/dp),

    i over the particles of a lineage g, r' = dr/dp = r * slope.
    """
    alive = (log_weight > -jnp.inf) & (log_ratio > -jnp.inf)
    top = jnp.max(jnp.where(alive, log_ratio, -jnp.inf))
    r = jnp.where(alive, jnp.exp(jnp.where(alive, log_ratio - top, 0.0)), 0.0)
    change = jnp.where(alive, r * jnp.where(alive, slope, 0.0), 0.0)
    w = jnp.exp(log_weight - jax.scipy.special.logsumexp(log_weight))
    mean, square = (jnp.maximum(jnp.sum(w * a), 1e-30) for a in (r, r * r))
    mean_change, square_change = jnp.sum(w * change), 2 * jnp.sum(w * r * change)
    share = w * (2 * r / mean - r * r / square - 1)
    steeper = w * (change - r * mean_change / mean) / mean
    share, steeper = (jax.ops.segment_sum(a, lineage, num_segments=a.shape[0]) for a in (share, steeper))
    per_parameter = 2 * mean_change / mean - square_change / square
    return -jnp.sum(share * steeper) / jnp.where(jnp.abs(per_parameter) > 1e-30, per_parameter, jnp.inf)


def lineage_effective_size(log_weight: Array, lineage: Array) -> Array:
    """Kish's size after adding up the weights of each lineage: split copies of one particle count once."""
    w = jax.ops.segment_sum(jnp.exp(log_weight), lineage, num_segments=lineage.shape[0])
    return jnp.sum(w) ** 2 / jnp.maximum(jnp.sum(w * w), 1e-30)


def correlation(log_weight: Array, before: Array, after: Array) -> Array:
    """Correlation of the rows of two arrays (quantity, particle) over the weighted population; 0 for a constant."""
    w = jnp.exp(log_weight)

    def standard(a):  # minus the mean, over the standard deviation; zero if that is only rounding
        a = jnp.where(w > 0, a, 0.0)
        mean = (a @ w)[:, None]
        variance = (((a - mean) ** 2) @ w)[:, None]
        varies = variance > 1e-10 * mean**2
        return jnp.where(varies, (a - mean) * jax.lax.rsqrt(jnp.where(varies, variance, 1.0)), 0.0)

    return (standard(before) * standard(after)) @ w


def branch(key: Array, log_weight: Array) -> tuple[Array, Array]:
    """Replace each zero-weight particle by a copy of a survivor drawn by weight; the family shares its weight.

    A survivor of weight w that c dead particles chose becomes c + 1 copies of weight w/(c + 1):
    (c + 1) * w/(c + 1) delta_x = w delta_x, so the measure is unchanged.  Returns parents and new log weights.
    """
    n = log_weight.shape[0]
    itself = jnp.arange(n, dtype=jnp.int32)
    cumulative = jnp.cumsum(jnp.exp(log_weight))
    donor = jnp.searchsorted(cumulative, uniform(key, (n,)) * cumulative[-1], side="right").astype(jnp.int32)
    parent = jnp.where(log_weight > -jnp.inf, itself, donor)
    copies = jax.ops.segment_sum(jnp.ones(n, log_weight.dtype), parent, num_segments=n)
    return parent, log_weight[parent] - jnp.log(copies[parent])


def resample(key: Array, log_weight: Array, size: int) -> Array:
    """Systematic resampling: indices of `size` particles, copies of j expected size * w_j times.

    One random number places a comb of `size` teeth on the cumulative weights.
    """
    teeth = (jnp.arange(size, dtype=log_weight.dtype) + jax.random.uniform(key)) / size
    chosen = jnp.searchsorted(jnp.cumsum(jnp.exp(log_weight)), teeth)
    # Rounding may leave the last tooth beyond the sum.
    return jnp.minimum(chosen, log_weight.shape[0] - 1).astype(jnp.int32)
