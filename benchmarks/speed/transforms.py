"""What does it cost to reach the modes of a field and come back?  By matrix products, with axes moved or left to turn round.

    python -m benchmarks.speed.transforms

Nanoseconds per site of `from_modes` and `to_modes` together, on one core: as `lattices.torus` does it, each product giving
its new axis last so that after all of them the axes are in order again, and with every axis put back in its place at once.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np

from lattices.torus import Torus, _cas_matrix

SHAPES = {(8, 8): 128, (16, 16): 128, (24, 24): 100, (40, 40): 50, (8, 8, 8): 64}  # and configurations in a tile
REPEAT, ROUNDS = 40, 10


def put_back(x: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    letters = "abcd"[: x.ndim]
    for axis, length in enumerate(shape, start=1):
        here = letters[axis]
        contraction = f"{letters},{here}z->{letters.replace(here, 'z')}"
        x = jnp.einsum(contraction, x, _cas_matrix(length), precision=jax.lax.Precision.HIGHEST)
    return x


def nanoseconds(function, y: jax.Array) -> float:
    many = jax.jit(lambda y: jax.lax.fori_loop(0, REPEAT, lambda _, y: jax.lax.optimization_barrier(function(y)), y))
    many(y).block_until_ready()
    best = np.inf
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        many(y).block_until_ready()
        best = min(best, time.perf_counter() - begin)
    return 1e9 * best / (REPEAT * y.size)


def main() -> None:
    rows = []
    print("lattice         in use   axes put back")
    for shape, tile in SHAPES.items():
        lattice = Torus(shape, "matrix")
        y = jax.random.normal(jax.random.key(0), (tile, lattice.sites))

        def turning(y, lattice=lattice):
            return lattice.to_modes(0.999 * lattice.from_modes(y))

        def moving(y, shape=shape):
            return put_back(0.999 * put_back(y.reshape(-1, *shape), shape), shape).reshape(y.shape)

        rows.append({"shape": shape, "in use": nanoseconds(turning, y), "axes put back": nanoseconds(moving, y)})
        print(f"{' x '.join(map(str, shape)):12s} {rows[-1]['in use']:8.2f} {rows[-1]['axes put back']:15.2f}", flush=True)
    harness.save("transforms", rows)


if __name__ == "__main__":
    main()
