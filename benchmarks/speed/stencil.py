"""What does a force on the sites cost?  Neighbours by rolls or by slices, the energy by a sum or by a product with ones.

    python -m benchmarks.speed.stencil [L]

Leapfrog steps of phi^6 in a weight that depends on U, on one tile of configurations and one core; nanoseconds of processor
per site and step, the best of several rounds in turn.
"""

from __future__ import annotations

import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np

import lattices
from lattices.field import sum_over_sites
from quenchphys.parallel.sharding import LARGEST

STEPS, ROUNDS, STEP_SIZE = 400, 6, 0.05


def by_rolls(x):
    return 4 * x - sum(jnp.roll(x, step, axis) for axis in (1, 2) for step in (1, -1))


def main() -> None:
    L = int(sys.argv[1]) if len(sys.argv) > 1 else 40
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
    best = dict.fromkeys(runs, np.inf)
    for number in range(ROUNDS + 1):
        for name, run in runs.items():
            begin = time.process_time()
            jax.block_until_ready(run(*start))
            if number:  # the first round compiles
                best[name] = min(best[name], time.process_time() - begin)
    print(f"phi^6, {start[0].shape[0]} configurations of {L} x {L} sites\nneighbours   energy    ns")
    for (a, b), seconds in best.items():
        print(f"{a:12s} {b:8s} {1e9 * seconds / STEPS / start[0].size:4.2f}")
    print(f"ratio {best['rolls', 'sum'] / best['slices', 'product']:.2f}")


if __name__ == "__main__":
    main()
