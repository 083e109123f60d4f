"""Figure of soft levels: one-dimensional densities pi(x) (E - U(x))_+^nu, their volumes, and the weight of a level.

    python docs/scripts/soft_levels.py [--out docs/figures/soft_levels.png]

Nothing is sampled: all integrals are sums over a fine grid.  Prints Z from the volumes against Z from the grid.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import trapezoid
from scipy.special import gammaln

import observables

X = np.linspace(-4.0, 4.0, 8001)
PRIOR = np.exp(-0.5 * X**2) / np.sqrt(2 * np.pi)
ENERGY = 3.0 * (X**2 - 1.6) ** 2 - 2.0 * X  # two wells, the right one deeper
LEVEL = 5.5
SOFTNESS = (0.0, 2.0, 8.0)


def factor(level: float, softness: float) -> np.ndarray:
    """(E - U)_+^nu on the grid."""
    return np.where(level > ENERGY, np.maximum(level - ENERGY, 1e-12) ** softness, 0.0)


def volume(level: float, softness: float) -> float:
    """G_nu(E) = E_pi[(E - U)_+^nu]"""
    return float(trapezoid(PRIOR * factor(level, softness), X))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path, default=Path("docs/figures/soft_levels.png"))
    chosen = options.parse_args()
    with observables.plot.style():
        figure, (wells, density, weight) = plt.subplots(1, 3, figsize=(9.6, 2.9))
        wells.plot(X, ENERGY, color="0.2")
        wells.axhline(LEVEL, color=observables.plot.COLOURS[1], linestyle="--", linewidth=1.0)
        wells.fill_between(X, ENERGY, LEVEL, where=ENERGY < LEVEL, color=observables.plot.COLOURS[0], alpha=0.15)
        wells.text(2.45, LEVEL + 0.3, "$E$", ha="right", color=observables.plot.COLOURS[1])
        wells.annotate("", (1.28, LEVEL), (1.28, ENERGY.min()), arrowprops={"arrowstyle": "<->", "color": "0.35"})
        wells.text(1.24, 3.4, "slack", fontsize=8, ha="right", color="0.35")
        wells.set(xlabel="$x$", ylabel="energy $U(x)$", xlim=(-2.5, 2.5), ylim=(-4, 14))

        grid = np.linspace(ENERGY.min() + 1e-3, 60.0, 4000)
        exact = float(trapezoid(PRIOR * np.exp(-ENERGY), X))
        for softness in SOFTNESS:
            rho = PRIOR * factor(LEVEL, softness) / volume(LEVEL, softness)
            label = rf"$\nu={softness:g}$" + (" (hard wall)" if softness == 0 else "")
            density.plot(X, rho, label=label)
            log_g = np.log([volume(e, softness) for e in grid])
            integrand = np.exp(log_g - grid - gammaln(softness + 1))
            weight.plot(grid, integrand / exact, label=label)
            print(f"nu = {softness:g}: Z from the volumes {trapezoid(integrand, grid):.5f}, from the grid {exact:.5f}")
        density.set(xlabel="$x$", ylabel=r"$\rho_E(x)$", xlim=(-2.5, 2.5), ylim=(0, None))
        density.legend()
        weight.set(xlabel="level $E$", ylabel=r"weight of a level at $\beta=1$", xlim=(-4, 25), ylim=(0, None))
        weight.legend()
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(chosen.out, dpi=160)


if __name__ == "__main__":
    main()
