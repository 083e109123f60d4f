"""A population distributed over devices: each holds a slice of the particles, and all hold the weights of all of them.

Choosing a level, branching and resampling need one number of each particle, so every device has the whole vectors and
does the same arithmetic; configurations, which are large, are sent only when a particle is copied to another slice.
Particles are moved, and sums over them taken, tile by tile (see `quenchphys.smc.mutation`), and a tile has the same shape
for any number of devices: the same operations on the same numbers, so results do not depend on the devices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Array = jax.Array

AXIS = "particle"
# Numbers in one array of a tile: few enough for the cache of a core, and enough to outweigh the cost of an operation.
LARGEST, SMALLEST = 1 << 17, 1 << 12
SMALL = 1 << 15  # most numbers in an array of replicas that are moved together
SETS = 4  # minimum number of replica sets, so that every device has work


def tile_size(particles: int, dimension: int) -> int:
    """Particles of one tile: a divisor of the population that fits the cache, and if possible leaves eight tiles."""
    fitting = _fitting(particles, dimension)
    large = [c for c in fitting if c * dimension >= SMALLEST] or fitting[-1:]
    return max(large, key=lambda c: (math.gcd(particles // c, 8), c))


def largest_tile(particles: int, dimension: int) -> int:
    """Particles of one tile where a population stays on one device."""
    return _fitting(particles, dimension)[-1]


def _fitting(particles: int, dimension: int) -> list[int]:
    return [c for c in range(1, particles + 1) if particles % c == 0 and c * dimension <= LARGEST] or [1]


def set_size(replicas: int, particles: int, dimension: int) -> int:
    """Replicas moved together: more than one only if a population is too small to be worth an operation of its own."""
    sizes = range(1, max(replicas // SETS, 1) + 1)
    return max(r for r in sizes if replicas % r == 0 and (r == 1 or r * particles * dimension <= SMALL))


@dataclass(frozen=True)
class ParticleSharding:
    """How the particles of one replica lie on devices; its methods are called inside a program that runs on all of them."""

    slices: int = 1
    tiles: int = 1  # on all devices together

    def first(self, rows: int) -> Any:
        """The number of the first of the `rows` particles on this device."""
        return 0 if self.slices == 1 else jax.lax.axis_index(AXIS) * rows

    def whole(self, here: Array) -> Array:
        """Values of the particles on this device -> values of all particles, on every device."""
        return here if self.slices == 1 else jax.lax.all_gather(here, AXIS, tiled=True)

    def here(self, whole: Array) -> Array:
        """Values of all particles -> values of the particles on this device."""
        if self.slices == 1:
            return whole
        rows = whole.shape[0] // self.slices
        return jax.lax.dynamic_slice_in_dim(whole, self.first(rows), rows)

    def copy(self, tree: Any, source: Array) -> Any:
        """Replace particle i by a copy of particle source[i]; `source` is of all particles, the result of those here."""
        if self.slices == 1:
            return jax.tree.map(lambda a: a[source], tree)
        return jax.tree.map(lambda a: jax.lax.psum_scatter(self._owned(a, source), AXIS, tiled=True), tree)

    def pick(self, here: Array, source: Array) -> Array:
        """The rows `source` of all particles, on every device."""
        return here[source] if self.slices == 1 else jax.lax.psum(self._owned(here, source), AXIS)

    def _owned(self, here: Array, source: Array) -> Array:
        """The rows `source`, zero where another device holds them, so that the sum over devices is exact."""
        place = source - self.first(here.shape[0])
        mine = (place >= 0) & (place < here.shape[0])
        rows = here[jnp.clip(place, 0, here.shape[0] - 1)]
        return jnp.where(mine.reshape(mine.shape + (1,) * (rows.ndim - 1)), rows, jnp.zeros_like(rows))
