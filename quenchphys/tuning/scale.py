"""The diagonal scale of a kernel, read from scores, and the step size, which follows the acceptance rate.

Scale (paper, eq. metric): sigma_j^-1 = median_i |s_i| <s_j^2/|s|^2>^1/2 over the weighted ensemble.  Scores are local,
so the scale is that of one mode however many modes there are; the median is robust against the few particles at the wall,
whose scores diverge.  Both are set from the population of the level above and fixed while a level is mutated.

A scale of D numbers read from N particles fits their noise, and a kernel that knows the very particles it moves does not
leave their density invariant: the volumes come out low by an amount that grows like levels * D/N (spike_slab(200) at
N = 1000: half a nat).  So the reading is shrunk towards what theory expects.  For a potential that treats all sites alike
integration by parts gives <s_k^2> = precision_k + const in the basis that makes the prior diagonal, a line of two
numbers; a departure of less than a third from it is hardly worth a metric and is mostly noise, a larger one is trusted.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array

# Weight of the newest level in the running average of the anisotropy, which is one over about ten levels.
MEMORY = 0.2
# d log(step size) / d(acceptance - target) in one level.  Constant, because the best step drifts with the level.
GAIN = 0.5
# Relative departure of the anisotropy from its expected form at which half of it is trusted.
HALF_TRUSTED = 0.3


class ScoreStatistics(NamedTuple):
    """What the scale is read from: scores s of some particles of weights w."""

    norm: Array  # |s| of each particle, NaN where it is zero or infinite
    direction: Array  # (..., D): sum of w s_j^2/|s|^2
    weight: Array  # sum of w, over the particles whose score can be used


def score_statistics(score: Array, weight: Array) -> ScoreStatistics:
    """Statistics of the scores (particle, D) of particles with weights (particle,)."""
    norm = jnp.sqrt(jnp.sum(score * score, axis=-1))
    usable = jnp.isfinite(norm) & (norm > 0)
    direction = jnp.where(usable[:, None], score / jnp.where(usable, norm, 1.0)[:, None], 0.0)
    weight = jnp.where(usable, weight, 0.0)
    return ScoreStatistics(jnp.where(usable, norm, jnp.nan), weight @ (direction * direction), jnp.sum(weight))


def expected_form(anisotropy: Array, precision: Array) -> Array:
    """The line a precision + b nearest to the anisotropy in relative terms, nowhere less than a tenth of a flat one."""
    # Least squares of anisotropy/precision = a + b/precision.
    ratio, inverse = anisotropy / precision, 1.0 / precision
    spread = inverse - jnp.mean(inverse)
    slope = jnp.sum(spread * ratio) / jnp.maximum(jnp.sum(spread * spread), 1e-30)
    line = (jnp.mean(ratio) + slope * spread) * precision
    return jnp.maximum(line, 0.1 * jnp.mean(anisotropy) * precision / jnp.max(precision))


def shrink(anisotropy: Array, precision: Array) -> Array:
    """Draw a reading towards its expected form by as much as its noise could explain."""
    form = expected_form(anisotropy, precision)
    departure = jnp.mean((anisotropy / form - 1) ** 2)
    share = departure**2 / (departure**2 + HALF_TRUSTED**4)
    return form + share * (anisotropy - form)


def combine_scale(anisotropy: Array, norm: Array, precision: Array) -> Array:
    """sigma_j; a coordinate whose scores are all zero gets the largest scale among the others."""
    inverse = norm * jnp.sqrt(shrink(anisotropy, precision))
    usable = jnp.isfinite(inverse) & (inverse > 0)
    smallest = jnp.min(jnp.where(usable, inverse, jnp.inf))
    return jnp.where(jnp.isfinite(smallest), 1.0 / jnp.where(usable, inverse, smallest), 1.0)


def track(step_size: Array, acceptance: Array, target: float) -> Array:
    """Constant-gain stochastic approximation: log eps += gain * (acceptance - target)."""
    return step_size * jnp.exp(GAIN * (acceptance - target))
