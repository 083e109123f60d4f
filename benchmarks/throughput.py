"""Site-gradients per second of whole levels at L = 40: one device with threads against one device for each core.

python benchmarks/throughput.py

Each row is a process of its own, because JAX fixes its devices when it starts; rows are run twice, in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RUN = """
import sys, time
import jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import lattices, numpy as np, quenchphys as qp
from quenchphys import running
ends, take_in = [], running.take_in
def timed(*arguments):
    ends.append(time.perf_counter())
    return take_in(*arguments)
running.take_in = timed
replicas, particles, kernel = 4, 400, qp.HMC(trajectories=4, leapfrogs=6)
qp.quench(lattices.phi6(L=40, mu2=2.2838), particles=particles, replicas=replicas, softness=64.0, kernel=kernel,
          stop=qp.LevelLimit(96), seed=1, progress=False)
work = replicas * particles * 40**2 * 4 * 6 * running.BLOCK
print(work / float(np.median(np.diff(ends))))
"""


def measure(devices: int) -> float:
    done = subprocess.run([sys.executable, "-c", RUN, str(devices)], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    found: dict[int, list[float]] = {1: [], cores: []}
    for _ in range(2):
        for devices, rates in found.items():
            rates.append(measure(devices))
            print(f"{devices} devices: {rates[-1] / 1e6:.1f} million site-gradients per second", flush=True)
    ratio = max(found[cores]) / max(found[1])
    print(f"ratio {ratio:.2f}")
    Path("out").mkdir(exist_ok=True)
    Path("out/throughput.json").write_text(json.dumps({"rates": found, "ratio": ratio}, indent=2))


if __name__ == "__main__":
    main()
