"""Figure of the largest softness allowed: entropy with a kink and of a smooth transition, and levels that cross them.

    python docs/scripts/softness.py [--out docs/figures/softness.png]

Left: the spike and slab target, whose entropy is known exactly and has a kink.  Right: phi^6 at L = 8, its entropy
measured by one ladder.  Above: beta(U) = S'(U).  Below: the density of U in a level, g(U) (E - U)^nu, at the E where
both of its peaks, if it has two, are equally high.  Prints the depth of the valley between them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.interpolate import make_smoothing_spline

import lattices
import observables
import quenchphys as qp

DIM, L, MU2 = 20, 8, 2.2957
VISIBLE = 0.05  # nats


def spike_slab_entropy() -> tuple[np.ndarray, np.ndarray]:
    """U and S(U) = log g(U), g(U) = chi^2_D(s) / U'(s)."""
    target = qp.targets.spike_slab(DIM)
    s = np.geomspace(0.02, 120.0, 40_001)
    u = np.asarray(target.radial_energy(s, np))
    entropy = stats.chi2.logpdf(s, DIM) - np.log(np.gradient(u, s))
    grid = np.linspace(u[0], u[-1], 4001)
    return grid, np.interp(grid, u, entropy)


def phi6_entropy(particles: int) -> tuple[np.ndarray, np.ndarray]:
    """U and S(U), smoothed by a spline through the bins of one ladder."""
    ladder = qp.quench(lattices.phi6(L=L, mu2=MU2), particles=particles, replicas=4, seed=0)
    found = observables.density_of_states(ladder, bins=40)
    good = np.isfinite(found.log_g.values)
    weight = 1 / found.log_g_err.values[good] ** 2
    spline = make_smoothing_spline(found.energy.values[good], found.log_g.values[good], w=weight / weight.max())
    grid = np.linspace(found.energy.values[good][0], found.energy.values[good][-1], 4001)
    return grid, spline(grid)


def valley_depth(log_p: np.ndarray) -> float:
    """How deep the deepest point lies below the lower of the highest points to either side of it."""
    sides = np.maximum.accumulate(log_p), np.maximum.accumulate(log_p[::-1])[::-1]
    return float(np.nanmax(np.where(np.isfinite(log_p), np.minimum(*sides) - log_p, np.nan)))


def level_density(u: np.ndarray, entropy: np.ndarray, softness: float) -> tuple[float, np.ndarray, float]:
    """(depth of the valley, log density of U, E) of the level with the deepest valley, or of one half way down."""

    def density(level: float) -> np.ndarray:
        room = level - u
        log_p = np.where(room > 0, entropy + softness * np.log(np.where(room > 0, room, 1.0)), -np.inf)
        return log_p - log_p.max()

    levels = np.linspace(u[0] + 0.1, u[-1] + 4 * softness, 1500)
    depth, level = max((valley_depth(density(level)), level) for level in levels)
    if depth < VISIBLE:
        level = min(levels, key=lambda e: abs(u[np.argmax(density(e))] - np.mean(u)))
    return depth, density(level), level


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--particles", type=int, default=1000)
    options.add_argument("--out", type=Path, default=Path("docs/figures/softness.png"))
    chosen = options.parse_args()
    cases = {
        f"spike and slab, D = {DIM} (exact)": (spike_slab_entropy(), (2.0, 8.0, 32.0)),
        rf"$\phi^6$, L = {L}, $\mu^2$ = {MU2} (measured)": (phi6_entropy(chosen.particles), (2.0, 8.0, 32.0, 300.0)),
    }
    with observables.plot.style():
        figure, axes = plt.subplots(2, 2, figsize=(8.6, 5.8))
        for (title, ((u, entropy), softnesses)), (above, below) in zip(cases.items(), axes.T, strict=True):
            beta = np.gradient(entropy, u)
            above.plot(u, beta, color="0.2")
            above.set(title=title, ylabel=r"$\beta(U)=S'(U)$", xlabel="energy $U$", ylim=(0, 3))
            for softness in softnesses:
                depth, log_p, level = level_density(u, entropy, softness)
                shown = f", valley {depth:.1f}" if depth > VISIBLE else ", one peak"
                below.plot(u, log_p, label=rf"$\nu={softness:g}${shown}")
                print(f"{title}: nu = {softness:g}, deepest valley {depth:.2f} nats, at E = {level:.1f}")
            below.set(ylabel="log density of $U$ in the level", xlabel="energy $U$", ylim=(-12, 1))
            below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
            for ax in (above, below):
                ax.set_xlim(u[0] - 3, min(u[-1], 14.0) + 3)
        figure.savefig(chosen.out, dpi=160)


if __name__ == "__main__":
    main()
