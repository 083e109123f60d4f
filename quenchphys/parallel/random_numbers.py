"""Random numbers for the inner loops, faster on a CPU to draw and to compile than those of JAX.

Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw 2011), the counter-based generator JAX itself uses, but with
its rounds written out, so that counter, rounds and the map to a normal number are one fused loop.
`benchmarks/speed/random_numbers.py` measures the gain.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array

GENERATOR = "threefry2x32"  # as JAX calls it
ROUNDS = 20
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


@jax.jit  # traced once for a shape, wherever it is used
def threefry(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two 32-bit words for each pair of 32-bit counters."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(PARITY))
    a, b = counter[0] + schedule[0], counter[1] + schedule[1]
    for r in range(ROUNDS):
        turn = ROTATIONS[(r // 4) % 2][r % 4]
        a = a + b
        b = a ^ ((b << turn) | (b >> (32 - turn)))
        if r % 4 == 3:
            injection = r // 4 + 1
            a = a + schedule[injection % 3]
            b = b + schedule[(injection + 1) % 3] + np.uint32(injection)
    return a, b


def key_of(seed: int) -> Array:
    """The key of a seed 0 <= seed < 2^64: two different seeds have different keys.

    Below 2^32 it is the key that `jax.random.key` gives; that function takes larger seeds modulo 2^32 in single precision.
    """
    words = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl=GENERATOR)


def normal(key: Array, shape: tuple[int, ...], first: Any = 0) -> Array:
    """Independent standard normal numbers: sqrt 2 erf^-1(2 u - 1)."""
    # u is a cell's centre, so 2 u - 1 is exact and never reaches +-1.
    return np.float32(math.sqrt(2)) * jax.lax.erf_inv(2 * uniform(key, shape, first) - 1)


def uniform(key: Array, shape: tuple[int, ...], first: Any = 0) -> Array:
    """Independent numbers, each the centre of one of 2^23 equal cells of (0, 1), float32.

    The counter is (row, place in the row), with rows numbered from `first`: the numbers of a row do not depend on which
    rows are drawn with it.
    """
    rows, columns = shape[0], math.prod(shape[1:])
    half = (rows, (columns + 1) // 2)
    if max(half) >= 2**32:
        raise ValueError(f"one call draws fewer than 2^32 rows of 2^33 numbers; the shape {shape} was given")
    words = jax.random.key_data(key)
    row = jax.lax.broadcasted_iota(jnp.uint32, half, 0) + jnp.asarray(first, jnp.uint32)
    pair = threefry((words[0], words[1]), (row, jax.lax.broadcasted_iota(jnp.uint32, half, 1)))
    word = jnp.concatenate(pair, axis=-1)[:, :columns].reshape(shape)
    # The high 23 bits as the mantissa of a number in [1, 2), then the middle of its cell.
    mantissa = jax.lax.bitcast_convert_type((word >> 9) | np.uint32(0x3F800000), jnp.float32)
    return (mantissa - 1) + np.float32(2.0**-24)


def fold(key: Array, number: Any) -> Array:
    """The key with a given number among those derived from `key`."""
    words = jax.random.key_data(key)
    number = jnp.asarray(number, jnp.uint32)
    pair = threefry((words[0], words[1]), (number, jnp.zeros_like(number)))
    return jax.random.wrap_key_data(jnp.stack(pair, axis=-1), impl=GENERATOR)


def split(key: Array, count: int = 2) -> Array:
    """Split a key into `count` keys, in one operation: it compiles several times faster than `jax.random.split`."""
    return fold(key, np.arange(count, dtype=np.uint32))


@partial(jax.jit, static_argnames="replicas")  # one program: a process starts sooner than with a dozen smaller ones
def keys_of(key: Array, replicas: int) -> tuple[Array, Array]:
    """One key for what replicas share, and one for each of them, (replica,), which does not depend on their number."""
    common, own = jax.random.split(key)
    return common, jax.vmap(lambda r: jax.random.fold_in(own, r))(jnp.arange(replicas))


@jax.jit
def split_each(keys: Array) -> tuple[Array, Array]:
    """Split each key in two."""
    first, second = jax.vmap(jax.random.split, out_axes=1)(keys)
    return first, second


class Stream(NamedTuple):
    """Random numbers for the particles `first`, `first + 1`, ... of a population.

    Each particle has its own, so the numbers are the same however a population is cut into tiles or put on devices.
    """

    key: Array
    first: Any = 0

    def split(self, count: int = 2) -> list[Stream]:
        """Independent streams for the same particles."""
        return [Stream(key, self.first) for key in split(self.key, count)]

    def normal(self, shape: tuple[int, ...]) -> Array:
        """Standard normal numbers (particle, ...)."""
        return normal(self.key, shape, self.first)

    def uniform(self, shape: tuple[int, ...]) -> Array:
        """Numbers between 0 and 1, (particle, ...)."""
        return uniform(self.key, shape, self.first)
