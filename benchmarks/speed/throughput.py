"""Site-gradients per second at L = 40, everything between levels included: the engine against a plain implementation.

    python -m benchmarks.speed.throughput [--rounds 2]

Engine and plain implementation (`plain.py`, the paper's settings, 8000 particles) take turns in one process.  The last line
has the engine on one device, with all threads in every operation, in a process of its own, because JAX fixes its devices
when it starts.  Compilation is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
from plain import site_gradients_per_second

import lattices
import quenchphys as qp

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
    code = (
        "import jax; jax.config.update('jax_num_cpu_devices', 1)\n"
        "import throughput; throughput.ladder(16, 0); print(throughput.engine(1))"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here)
    return float(done.stdout.split()[-1])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args(arguments).rounds
    model = lattices.phi6(L=L, mu2=2.2838)
    ladder(16, 0)
    rates: dict[str, list[float]] = {"engine": [], "plain": []}
    print(
        f"million site-gradients per second, phi^6 L = {L}, {REPLICAS} x {PARTICLES} particles, {jax.device_count()} devices"
    )
    print("round   engine    plain   ratio")
    for seed in range(1, rounds + 1):
        rates["engine"].append(engine(seed))
        rates["plain"].append(site_gradients_per_second(model, 1, seed))
        a, b = rates["engine"][-1], rates["plain"][-1]
        print(f"{seed:5d} {a / 1e6:8.1f} {b / 1e6:8.1f} {a / b:7.2f}", flush=True)
    rates["engine, one device"] = [one_device()]
    print(f"\nengine on one device: {rates['engine, one device'][0] / 1e6:.1f}")
    found = {"cores": len(os.sched_getaffinity(0)), "rates": rates}
    found["ratio"] = float(np.median(np.divide(rates["engine"], rates["plain"])))
    harness.save("throughput", found)


if __name__ == "__main__":
    main()
