"""A first-order transition with an exact answer: log Z and P(E) of the spike-and-slab target, quenched and tempered.

    python docs/scripts/spike_slab.py --dim 20 --out out

Prints log Z of both methods against the exact value and draws P(E) of the quenched ladder over the exact one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import observables
import quenchphys as qp


def exact_log_density(target, energy: np.ndarray) -> np.ndarray:
    """log P(E) at beta = 1: P(E) dE = chi^2_D(s) exp(-U(s)) ds / Z at U(s) = E."""
    s = np.geomspace(1e-6, 50.0 * target.dim, 400_001)
    u = np.asarray(target.radial_energy(s, np))
    log_p = stats.chi2.logpdf(s, target.dim) - u - np.log(np.gradient(u, s)) - target.log_z
    return np.interp(energy, u, log_p, left=np.nan, right=np.nan)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    chosen = parser.parse_args()
    target = qp.targets.spike_slab(chosen.dim)
    chosen.out.mkdir(parents=True, exist_ok=True)

    print(f"spike and slab in {chosen.dim} dimensions, exact log Z = {target.log_z:.4f}\n")
    ladders = {method: getattr(qp, method)(target, seed=chosen.seed) for method in ("quench", "temper")}
    for method, ladder in ladders.items():
        found = observables.partition_function(ladder, beta=[1.0])
        spike = observables.order_parameters(ladder)
        value, error = float(found.log_z.squeeze()), float(found.log_z_err.squeeze())
        print(f"{method:7s} log Z = {value:8.4f} +- {error:.4f}   difference from exact {value - target.log_z:+.4f}")
        print(
            f"{'':7s} share of the spike = {float(spike.spike.squeeze()):.3f} (exact 0.900)   {ladder.outcome.value}\n"
        )
    print(ladders["quench"].report())

    with observables.plot.style():
        figure, ax = plt.subplots(figsize=(6.4, 3.8))
        found = observables.energy_distribution(ladders["quench"])
        ax.plot(found.energy, found.log_p, linewidth=1.2, label="one quench, 4 replicas")
        band = (found.log_p - found.log_p_err, found.log_p + found.log_p_err)
        ax.fill_between(found.energy, *band, alpha=0.3, linewidth=0)
        grid = np.linspace(float(found.energy.min()), float(found.energy.max()), 2000)
        exact = exact_log_density(target, grid)
        ax.plot(grid, exact, color="black", linewidth=0.9, linestyle="--", label="exact")
        ax.set(xlabel="energy $E$", ylabel=r"$\log P(E)$", ylim=(np.nanmax(exact) - 12, np.nanmax(exact) + 1))
        ax.set_title(f"spike and slab, D = {chosen.dim}: two phases from one ladder")
        ax.legend()
        path = chosen.out / "spike_slab.png"
        figure.savefig(path, dpi=160)
    print(f"\nP(E) drawn in {path}")
    return 0 if ladders["quench"].outcome.trusted else 1


if __name__ == "__main__":
    raise SystemExit(main())
