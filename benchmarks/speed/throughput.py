"""Site-gradients per second at L = 40, everything between levels included: the engine against a plain implementation.

    python -m benchmarks.speed.throughput [--rounds 2]

Engine and plain implementation (`benchmarks/rivals/plain.py`, the paper's settings, 8000
particles) take turns in one process.  The last line
has the engine on one device, with all threads in every operation, in a process of its own, because JAX fixes its devices
when it starts.  Compilation is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import jax
import numpy as np

import lattices
import quenchphys as qp
from benchmarks import harness
from benchmarks.rivals.plain import site_gradients_per_second

L, PARTICLES, REPLICAS = 40, 400, 8
SHORT, LONG = 16, 48


def ladder(levels: int, seed: int) -> tuple[float, float]:
    """Site-gradients and seconds of the first levels, with default settings."""
    found = qp.quench(
        lattices.phi6(L=L, mu2=2.2838),
        particles=PARTICLES,
        replicas=REPLICAS,
        stop=qp.LevelLimit(levels),
        seed=seed,
        progress=False,
    )
    return found.attrs["gradients"] * L**2, found.attrs["wall_time"]


def engine(seed: int) -> float:
    """Rate of the levels between two lengths of the same ladder: what comes before the first level drops out."""
    (less, begin), (more, end) = ladder(SHORT, seed), ladder(LONG, seed)
    return (more - less) / (end - begin)


def one_device() -> float:
    """Rate of the engine on one device, in a new process."""
    code = (
        "import jax; jax.config.update('jax_num_cpu_devices', 1)\n"
        "from benchmarks.speed import throughput; throughput.ladder(16, 0); print(throughput.engine(1))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=harness.environment())
    return float(done.stdout.split()[-1])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args(arguments).rounds
    model = lattices.phi6(L=L, mu2=2.2838)
    ladder(16, 0)
    particles, devices = f"{REPLICAS} x {PARTICLES} particles", f"{jax.device_count()} devices"
    print(f"million site-gradients per second, phi^6 L = {L}, {particles}, {devices}")
    table = harness.Table({"round": "d", "engine": "8.1f", "plain": "8.1f", "ratio": "6.2f"})
    for seed in range(1, rounds + 1):
        ours, plain = engine(seed) / 1e6, site_gradients_per_second(model, 1, seed) / 1e6
        table.add(seed, ours, plain, ours / plain)
    alone = one_device() / 1e6
    print(f"\nengine on one device: {alone:.1f}")
    ratio = float(np.median([row["ratio"] for row in table.rows]))
    cores = len(os.sched_getaffinity(0))
    harness.save("throughput", {"cores": cores, "rounds": table.rows, "engine on one device": alone, "ratio": ratio})


if __name__ == "__main__":
    main()
