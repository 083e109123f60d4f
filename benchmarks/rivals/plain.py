"""Quenched ensemble sampling as one would first write it down: the paper's settings for the lattice, and nothing for speed.

nu = 2, 8000 particles, MALA on the sites with a diagonal metric and the gradient of the log density as JAX differentiates
it, phi -> -phi as a move, the whole population in every operation, random numbers from `jax.random`, levels chosen by the
host.  `benchmarks/speed/throughput.py` compares the engine with it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness

SOFTNESS, TARGET_ESS, STEPS, ACCEPTANCE, PARTICLES = 2.0, 0.95, 64, 0.574, 8000


@partial(jax.jit, static_argnames="steps")
def mutate(
    model: Any, key: jax.Array, x: jax.Array, level: Any, step: Any, scale: jax.Array, steps: int
) -> tuple[jax.Array, ...]:
    """`steps` of MALA at a level for every particle; positions, energies, the mean acceptance and the next scale."""

    def log_rho(x):
        return model.log_prior(x) + SOFTNESS * jnp.log(level - model.energy(x))

    value_and_grad = jax.vmap(jax.value_and_grad(log_rho))
    axes = tuple(range(1, x.ndim))

    def one(carry, key):
        x, value, gradient, accepted = carry
        noise_key, accept_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, x.shape)
        width = step * scale
        y = x + 0.5 * width**2 * gradient + width * noise
        there, slope = value_and_grad(y)
        back = (x - y - 0.5 * width**2 * slope) / width
        ratio = there - value + 0.5 * ((noise**2).sum(axes) - (back**2).sum(axes))
        accept = jnp.log(jax.random.uniform(accept_key, ratio.shape)) < ratio
        wide = accept.reshape(-1, *(1,) * len(axes))
        moved = jnp.where(wide, y, x), jnp.where(accept, there, value), jnp.where(wide, slope, gradient)
        return (*moved, accepted + accept.mean()), None

    carry = (x, *value_and_grad(x), jnp.float32(0))
    (x, _, gradient, accepted), _ = jax.lax.scan(one, carry, jax.random.split(key, steps))
    sign = jnp.where(jax.random.bernoulli(key, shape=(x.shape[0], *(1,) * len(axes))), 1.0, -1.0)
    # 1/scale_j = median |s| <s_j^2/|s|^2>^1/2
    squares = gradient**2
    norm = squares.sum(axes, keepdims=True)
    scale = 1 / (jnp.sqrt(jnp.median(norm)) * jnp.sqrt((squares / norm).mean(0)))
    return sign * x, jax.vmap(model.energy)(x), accepted / steps, scale


def next_level(level: float, energy: np.ndarray) -> tuple[float, np.ndarray]:
    """The level at which the weights have the wanted effective size, by bisection; and the weights."""

    def weights(trial: float) -> np.ndarray:
        return (np.maximum(trial - energy, 0) / (level - energy)) ** SOFTNESS

    low, high = float(energy.min()), level
    for _ in range(50):
        middle = 0.5 * (low + high)
        w = weights(middle)
        low, high = (middle, high) if w.sum() ** 2 < TARGET_ESS * len(w) * (w**2).sum() else (low, middle)
    w = weights(high)
    return high, w / w.sum()


def site_gradients_per_second(model: Any, levels: int, seed: int = 0, particles: int = PARTICLES) -> float:
    """Rate from the first to the last of so many levels, the choice of levels and resampling included."""
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    x = model.sample_prior(key, particles)
    energy = np.asarray(jax.vmap(model.energy)(x), float)
    level, step, scale = energy.max() + energy.std(), 0.1, jnp.ones(x.shape[1:])
    for k in range(levels + 1):
        if k == 1:  # everything is compiled
            timer = harness.Timer()
        level, weight = next_level(level, energy)
        x = x[rng.choice(particles, particles, p=weight)]
        numbers = np.float32(level), np.float32(step), scale
        x, energy, accepted, scale = mutate(model, jax.random.fold_in(key, k), x, *numbers, steps=STEPS)
        energy, accepted = np.asarray(energy, float), float(accepted)
        step *= np.exp(accepted - ACCEPTANCE)
    return levels * STEPS * x.size / timer.wall
