"""Normal random numbers: ours against `jax.random.normal`, nanoseconds per number and seconds to compile.

    python -m benchmarks.speed.random_numbers
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp

from benchmarks import harness
from quenchphys.parallel.random_numbers import normal

SHAPE, ROUNDS = (8, 1000, 100), 15


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)

    def repeated(draw):
        # A sum over several draws, so that numbers are drawn inside a loop and used, as a kernel does.
        return jax.jit(
            lambda key: jax.lax.scan(
                lambda total, k: (total + draw(k, SHAPE), None), jnp.zeros(SHAPE), jax.random.split(key, 4)
            )[0]
        )

    runs = {"ours": repeated(normal), "jax.random.normal": repeated(jax.random.normal)}
    compiled = {}
    for name, run in runs.items():
        timer = harness.Timer()
        runs[name] = run.lower(jax.random.key(0)).compile()
        compiled[name] = timer.wall

    def drawn(name: str):
        return jax.block_until_ready(runs[name](jax.random.key(1)))

    best = harness.fastest({name: partial(drawn, name) for name in runs}, ROUNDS)
    count = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]
    table = harness.Table({"normal numbers by": "20s", "ns": "6.2f", "compiled in s": ".2f"})
    for name in runs:
        table.add(name, 1e9 * best[name] / count, compiled[name])
    print(f"ratio {best['jax.random.normal'] / best['ours']:.2f}")


if __name__ == "__main__":
    main()
