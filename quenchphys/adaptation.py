"""How kernels are tuned: a diagonal scale read from scores, a step size read from acceptances.

Scale (paper, eq. metric): sigma_j^-1 = median_i |s_i| <s_j^2/|s|^2>^1/2 over the weighted ensemble.  Scores are local,
so the scale is that of one mode however many modes there are; the median is deaf to the few particles at the wall,
whose scores diverge.  Both are set from the population of the level above and fixed while a level is mutated.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

Array = jax.Array

# Of each level's reading of the anisotropy, this share enters: an average over about ten levels.
MEMORY = 0.2
# d log(step size) / d(acceptance - target) in one level.  Constant, because the best step drifts with the level.
GAIN = 0.5


def read_scale(score: Array, log_weight: Array) -> tuple[Array, Array]:
    """(anisotropy <s_j^2/|s|^2> (D,), median norm) of scores (particle, D)."""
    norm = jnp.sqrt(jnp.sum(score * score, axis=-1))
    usable = jnp.isfinite(norm) & (norm > 0)
    direction = jnp.where(usable[:, None], score / jnp.where(usable, norm, 1.0)[:, None], 0.0)
    weight = jnp.where(usable, jnp.exp(log_weight), 0.0)
    anisotropy = weight @ (direction * direction) / jnp.maximum(jnp.sum(weight), 1e-30)
    return anisotropy, jnp.nanmedian(jnp.where(usable, norm, jnp.nan))


def combine_scale(anisotropy: Array, norm: Array) -> Array:
    """sigma_j; a coordinate whose scores are all zero gets the largest scale among the others."""
    inverse = norm * jnp.sqrt(anisotropy)
    usable = jnp.isfinite(inverse) & (inverse > 0)
    smallest = jnp.min(jnp.where(usable, inverse, jnp.inf))
    return jnp.where(jnp.isfinite(smallest), 1.0 / jnp.where(usable, inverse, smallest), 1.0)


def track(step_size: Array, acceptance: Array, target: float) -> Array:
    """Constant-gain stochastic approximation: log eps += gain * (acceptance - target)."""
    return step_size * jnp.exp(GAIN * (acceptance - target))
