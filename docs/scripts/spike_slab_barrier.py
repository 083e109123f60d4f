"""Figure of a barrier that grows with the system: P(E) of spike_slab(D) from one ladder, against its exact curve.

    python docs/scripts/spike_slab_barrier.py [folder]

Writes docs/figures/spike_slab_barrier.png.  The ladders (one replica each, seed 0) are kept in the folder (`out` unless
given) and used again if they are there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import observables
import quenchphys as qp
from observables.peaks import deepest_valley
from workflows.reproduction.exact import log_energy_density

ROOT = Path(__file__).resolve().parents[2]
DIMENSIONS = (50, 100, 200)


def ladder(dim: int, folder: Path) -> qp.Ladder:
    """The ladder kept in the folder, or a new one."""
    path = folder / f"spike_slab_{dim}.nc"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        qp.quench(qp.targets.spike_slab(dim), particles=400, replicas=1, seed=0).save(path)
    return qp.load(path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, nargs="?", default=ROOT / "out")
    folder = options.parse_args().folder
    plot = observables.plot
    with plot.style():
        _, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.2), width_ratios=(1.5, 1))
        measured = []
        for dim, colour in zip(DIMENSIONS, plot.COLOURS, strict=False):
            problem = qp.targets.spike_slab(dim)
            found = observables.energy_distribution(ladder(dim, folder), bins=120)
            fine = np.linspace(float(found.energy[0]), float(found.energy[-1]), 20_001)
            curve = log_energy_density(problem, fine)
            depth = deepest_valley(curve)[0]
            measured.append((dim, float(found.barrier), float(found.barrier_err), depth))
            print(f"D = {dim}: barrier {measured[-1][1]:.2f}({measured[-1][2]:.2f}), exact {depth:.2f}", flush=True)
            left.plot(fine / dim, curve, color="0.25", linewidth=0.8)
            left.errorbar(found.energy / dim, found.log_p, found.log_p_err, fmt=".", markersize=3, color=colour,
                          elinewidth=0.7, label=f"$D = {dim}$")  # fmt: skip
        left.plot([], [], color="0.25", linewidth=0.8, label="exact")
        left.set(xlabel="energy per dimension $E/D$", ylabel=r"$\log\,P(E)$")
        left.legend()
        dims, barrier, error, exact = np.array(measured).T
        right.plot(dims, exact, color="0.25", linewidth=0.8, label="exact")
        right.errorbar(dims, barrier, error, fmt="o", markersize=4, color=plot.COLOURS[1], label="one ladder")
        right.set(xlabel="dimension $D$", ylabel=r"barrier $\log(P_{\mathrm{peak}}/P_{\mathrm{valley}})$",
                  xlim=(0, 215), ylim=(0, None))  # fmt: skip
        right.legend(loc="upper left")
        path = ROOT / "docs/figures/spike_slab_barrier.png"
        left.figure.savefig(path)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
