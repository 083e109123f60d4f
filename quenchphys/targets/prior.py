"""The standard normal prior that all targets share."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from quenchphys.parallel.random_numbers import normal
from quenchphys.problem import SiteBasis

Array = jax.Array


class StandardNormal:
    """pi = N(0, 1_D), for problems whose configuration is a vector of `dim` numbers."""

    dim: int

    def sample_prior(self, key: Array, n: int) -> Array:
        """n exact draws, (n, D)."""
        return normal(key, (n, self.dim))

    def log_prior(self, x: Array) -> Array:
        """log pi of one configuration."""
        return -0.5 * jnp.sum(x * x) - 0.5 * self.dim * math.log(2 * math.pi)

    @property
    def basis(self) -> SiteBasis:
        """The coordinates themselves, each of unit precision."""
        return SiteBasis((self.dim,), jnp.ones(self.dim))
