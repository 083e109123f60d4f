"""Normal random numbers: ours against `jax.random.normal`, nanoseconds per number and seconds to compile.

python -m benchmarks.speed.random_numbers
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp

from quenchphys.parallel.random_numbers import normal

SHAPE, ROUNDS = (8, 1000, 100), 15


def main() -> None:
    def repeated(draw):
        # A sum over several draws, so that numbers are drawn inside a loop and used, as a kernel does.
        return jax.jit(
            lambda key: jax.lax.scan(
                lambda total, k: (total + draw(k, SHAPE), None), jnp.zeros(SHAPE), jax.random.split(key, 4)
            )[0]
        )

    runs = {"ours": repeated(normal), "jax.random.normal": repeated(jax.random.normal)}
    best, compiled = dict.fromkeys(runs, float("inf")), {}
    for name, run in runs.items():
        begin = time.perf_counter()
        runs[name] = run.lower(jax.random.key(0)).compile()
        compiled[name] = time.perf_counter() - begin
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begin = time.perf_counter()
            jax.block_until_ready(run(jax.random.key(1)))
            best[name] = min(best[name], time.perf_counter() - begin)
    count = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]
    for name in runs:
        print(f"{name:20s} {1e9 * best[name] / count:6.2f} ns   compiled in {compiled[name]:.2f} s")
    print(f"ratio {best['jax.random.normal'] / best['ours']:.2f}")


if __name__ == "__main__":
    main()
