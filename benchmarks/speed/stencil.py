"""Cost of a force on the sites: neighbours by rolls or by slices, the energy by a sum or by a product with ones.

    python -m benchmarks.speed.stencil [L]

Leapfrog steps of phi^6 in a weight that depends on U, on one tile of configurations and one core; nanoseconds of processor
per site and step, the best of several rounds in turn.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import lattices
from benchmarks import harness
from lattices.field import sum_over_sites
from quenchphys.parallel.sharding import LARGEST

STEPS, ROUNDS, STEP_SIZE = 400, 6, 0.05


def by_rolls(x):
    return 4 * x - sum(jnp.roll(x, step, axis) for axis in (1, 2) for step in (1, -1))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("L", type=int, nargs="?", default=40)
    L = parser.parse_args(arguments).L
    harness.use_one_core()
    model = lattices.phi6(L=L, mu2=2.2838)
    rng = np.random.default_rng(0)
    start = [jnp.asarray(rng.normal(size=(max(1, LARGEST // L**2), L, L)) * s, jnp.float32) for s in (0.3, 1.0)]

    def trajectory(laplacian, total):
        def force(x):
            p = x * x
            energy = total(p * (0.5 * (model.mu2 - model.m0_sq) + p * (-1.0 + 0.2 * p)))
            gradient = x * (model.mu2 - model.m0_sq + p * (-4.0 + 1.2 * p))
            slope = 1e-6 * energy - 1.0  # of a weight, different for every configuration
            return slope[:, None, None] * gradient - 2 * laplacian(x) - x

        def step(_, carry):
            x, momentum = carry
            x = x + STEP_SIZE * momentum
            return x, momentum + STEP_SIZE * force(x)

        return jax.jit(lambda x, momentum: jax.lax.fori_loop(0, STEPS, step, (x, momentum)))

    neighbours = {"rolls": by_rolls, "slices": model.lattice.laplacian}
    sums = {"sum": lambda x: x.sum(axis=(1, 2)), "product": sum_over_sites}
    runs = {(a, b): trajectory(laplacian, total) for a, laplacian in neighbours.items() for b, total in sums.items()}

    def finished(name: tuple[str, str]):
        return jax.block_until_ready(runs[name](*start))

    best = harness.fastest({name: partial(finished, name) for name in runs}, ROUNDS, time.process_time)
    print(f"phi^6, {start[0].shape[0]} configurations of {L} x {L} sites")
    table = harness.Table({"neighbours": "s", "energy": "8s", "ns": "5.2f"})
    for name, seconds in best.items():
        table.add(*name, 1e9 * seconds / STEPS / start[0].size)
    print(f"ratio {best['rolls', 'sum'] / best['slices', 'product']:.2f}")


if __name__ == "__main__":
    main()
