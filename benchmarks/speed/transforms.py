"""Cost of the transform to the modes of a field and back, by matrix products with two treatments of the axes.

    python -m benchmarks.speed.transforms

Nanoseconds per site of `from_modes` and `to_modes` together, on one core: as `lattices.torus` does it, where each product
gives its new axis last and after all of them the axes are in order again, and with every axis moved back after its product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from benchmarks import harness
from lattices.torus import Torus, _cas_matrix

SHAPES = {(8, 8): 128, (16, 16): 128, (24, 24): 100, (40, 40): 50, (8, 8, 8): 64}  # and configurations in a tile
REPEAT, ROUNDS = 40, 10


def put_back(x: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """The transform with every axis moved back to its place at once."""
    letters = "abcd"[: x.ndim]
    for axis, length in enumerate(shape, start=1):
        here = letters[axis]
        contraction = f"{letters},{here}z->{letters.replace(here, 'z')}"
        x = jnp.einsum(contraction, x, _cas_matrix(length), precision=jax.lax.Precision.HIGHEST)
    return x


def repeated(function: Callable[[jax.Array], jax.Array], y: jax.Array) -> Callable[[], jax.Array]:
    """Many calls in one compiled loop that the compiler cannot shorten."""
    many = jax.jit(lambda y: jax.lax.fori_loop(0, REPEAT, lambda _, y: jax.lax.optimization_barrier(function(y)), y))
    return lambda: many(y).block_until_ready()


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)
    harness.use_one_core()
    table = harness.Table({"lattice": "12s", "in use": "8.2f", "axes put back": ".2f"})
    for shape, tile in SHAPES.items():
        lattice = Torus(shape, "matrix")
        y = jax.random.normal(jax.random.key(0), (tile, lattice.sites))

        def turning(y, lattice=lattice):
            return lattice.to_modes(0.999 * lattice.from_modes(y))

        def moving(y, shape=shape):
            return put_back(0.999 * put_back(y.reshape(-1, *shape), shape), shape).reshape(y.shape)

        best = harness.fastest({"in use": repeated(turning, y), "axes put back": repeated(moving, y)}, ROUNDS)
        table.add(" x ".join(map(str, shape)), *(1e9 * seconds / (REPEAT * y.size) for seconds in best.values()))
    harness.save("transforms", table.rows)


if __name__ == "__main__":
    main()
