"""The Metropolis-adjusted Langevin algorithm, preconditioned by a diagonal scale.

    y' = y + eps^2/2 sigma^2 score(y) + eps sigma eta,   eta ~ N(0, 1)

(Roberts and Tweedie 1996; acceptance 0.574 is optimal in high dimension, Roberts and Rosenthal 1998.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from quenchphys.density import Density, Point
from quenchphys.kernels.kernel import Move, metropolis
from quenchphys.noise import normal

Array = jax.Array


@dataclass(frozen=True)
class MALA:
    """`steps` per level; by default max(16, sqrt(D) rounded up to a power of two)."""

    steps: int | None = None
    step_size: float | None = None
    target_acceptance: float = 0.574

    def transitions(self, dimension: int) -> int:
        return self.steps or langevin_steps(dimension)

    def gradients(self) -> float:
        return 1.0

    def first_step_size(self, dimension: int) -> float:
        return dimension ** (-1 / 6)

    def transition(
        self, key: Array, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        noise_key, accept_key = jax.random.split(key)
        width = step_size * scale
        noise = normal(noise_key, point.position.shape)
        proposal = density.evaluate(point.position + width * (0.5 * width * density.score(point) + noise))
        # The noise that would lead back: y = y' + width^2/2 score(y') + width * back.
        back = (point.position - proposal.position) / width - 0.5 * width * density.score(proposal)
        log_accept = density.log_change(point, proposal) + 0.5 * jnp.sum((noise - back) * (noise + back), axis=-1)
        return metropolis(accept_key, log_accept, proposal, point)


def langevin_steps(dimension: int) -> int:
    """max(16, 2^ceil(log2 sqrt D)): a random walk crosses a D-dimensional shell in about sqrt(D) steps."""
    return max(16, 2 ** math.ceil(math.log2(math.sqrt(dimension))))
