"""How many groups of walkers are moved together?  Few: a device has the others, and small arrays stay in its cache.

    python -m benchmarks.speed.replica_sets

Million site-gradients per second of 16 groups of 8 walkers on all devices, and per second of processor, for every number of
groups moved in one operation.  The one in use is `spreading.abreast_of`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import jax
import numpy as np

import lattices
import quenchphys as qp
from quenchphys.parallel.sharding import abreast_of
from quenchphys.samplers import multicanonical_chains

GROUPS, WALKERS = 16, 8
SWEEPS = {8: 640, 16: 160, 40: 32}


def measure(L: int, abreast: int) -> dict[str, float]:
    """Rates of a walk in the disordered phase, compilation not counted."""
    multicanonical_chains.abreast_of = lambda *shape: abreast  # type: ignore[assignment]
    multicanonical_chains.programs.cache_clear()
    model = lattices.phi6(L=L, mu2=2.2866)
    start = 0.5 * np.asarray(model.sample_prior(jax.random.key(0), GROUPS * WALKERS)).reshape(GROUPS, WALKERS, L, L)
    energy = np.linspace(-L * L, 0.1 * L * L, 50)

    def walk(sweeps: int):
        return qp.multicanonical(model, start, energy, -energy, sweeps=sweeps, warm_up=0)

    walk(16)
    wall, cpu = time.perf_counter(), time.process_time()
    spent = walk(SWEEPS[L]).attrs["gradients"] * L * L / 1e6
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"L": L, "abreast": abreast, "rate": spent / wall, "rate_per_processor": spent / cpu}


def main() -> None:
    rows = []
    print("  L   groups together   M site-gradients/s   per s of processor")
    for L in SWEEPS:
        usual = abreast_of(GROUPS, WALKERS, L * L)
        for abreast in (16, 8, 4, 2, 1):
            rows.append(row := measure(L, abreast))
            mark = " in use" if abreast == usual else ""
            print(f"{L:3d} {abreast:17d} {row['rate']:20.0f} {row['rate_per_processor']:20.0f}{mark}", flush=True)
    harness.save("abreast", rows)


if __name__ == "__main__":
    main()
