"""Figures of one ladder: phi^6 at L = 8 through its transition, and its reweighting to other mu2.

    python docs/scripts/phi6_ladder.py [--out docs/figures]

One run draws two figures: `phi6_ladder.png`, the populations level by level, and `phi6_reweighted.png`, P(q) and the
ordered share at couplings at which nothing was run.  Prints the ordered share, and the mu2 at which it is one half.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import lattices
import observables
import quenchphys as qp

MU2, L = 2.2957, 8
OTHERS = (2.27, 2.2957, 2.32)


def populations(ladder: qp.Ladder, out: Path) -> None:
    """Particle energies under their levels, coloured by q, and the share of either phase in the population."""
    one = ladder.particles.isel(replica=0)
    levels = ladder.levels.isel(replica=0)
    count = int(levels["level_count"])
    with observables.plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2))
        some = slice(0, one.sizes["particle"], 4)
        number = np.broadcast_to(np.arange(count)[:, None], one["energy"][:count, some].shape)
        dots = left.scatter(number, one["energy"][:count, some], c=one["q"][:count, some], s=1.0, cmap="viridis",
                            vmin=0, vmax=2.2, linewidths=0, rasterized=True)  # fmt: skip
        left.plot(levels["energy"][:count], color=observables.plot.COLOURS[1], label="level $E_k$")
        figure.colorbar(dots, ax=left, label="$q$")
        left.set(xlabel="level $k$", ylabel="energy $U$ of the particles", ylim=(None, 15))
        left.legend(loc="upper right")
        weight = np.exp(one["log_weight"][:count])
        cut = ladder.phases["ordered"][1]
        share = (weight * (one["q"][:count] >= cut)).sum("particle")
        target = observables.diagnostics(ladder)["level_share"].isel(replica=0)[:count]
        right.plot(share, label="ordered share of the population")
        right.plot(target / target.max(), label=r"weight of the level at $\beta=1$ (scaled)")
        right.set(xlabel="level $k$", ylim=(0, 1.35))
        right.legend(loc="upper left")
        figure.savefig(out / "phi6_ladder.png", dpi=160)


def reweighted(ladder: qp.Ladder, out: Path) -> None:
    """P(q) at three couplings, and the ordered share against mu2."""
    pool = observables.Pool(ladder)
    grid = np.linspace(2.25, 2.34, 37)
    share = observables.phase_weights(pool, mu2=grid)
    cross = float(np.interp(0.0, share["log_odds"].values[::-1], grid[::-1]))
    error = float(np.interp(cross, grid, share["log_odds_err"]) / abs(np.gradient(share["log_odds"], grid)).mean())
    here = observables.phase_weights(pool)
    print(f"ordered share at mu2 = {MU2}: {float(here.ordered_share):.4f} +- {float(here.ordered_share_err):.4f}")
    print(f"ordered share 1/2 at mu2 = {cross:.4f} +- {error:.4f}")
    with observables.plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.0))
        for mu2 in OTHERS:
            found = observables.distribution(pool, of="q", mu2=mu2, bins=np.linspace(0, 2.8, 85))
            (line,) = left.plot(found["q"], found["p"], label=rf"$\mu^2={mu2}$" + (" (run)" if mu2 == MU2 else ""))
            band = found["p"] - found["p_err"], found["p"] + found["p_err"]
            left.fill_between(found["q"], *band, color=line.get_color(), alpha=0.25, linewidth=0)
        left.set(xlabel="$q$", ylabel="$P(q)$", ylim=(0, None))
        left.legend()
        right.plot(grid, share["ordered_share"])
        low, high = (share["ordered_share"] + sign * share["ordered_share_err"] for sign in (-1, 1))
        right.fill_between(grid, low, high, alpha=0.25, linewidth=0)
        right.axhline(0.5, color="0.6", linewidth=0.7, linestyle=":")
        right.axvline(cross, color="0.6", linewidth=0.7, linestyle=":")
        right.plot(MU2, float(here.ordered_share), "o", markersize=4, color=observables.plot.COLOURS[1], label="run here")
        right.set(xlabel=r"$\mu^2$", ylabel="ordered share", ylim=(0, 1))
        right.legend()
        figure.savefig(out / "phi6_reweighted.png", dpi=160)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--particles", type=int, default=400)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("docs/figures"))
    chosen = options.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    ladder = qp.quench(lattices.phi6(L=L, mu2=MU2), particles=chosen.particles, replicas=4, seed=chosen.seed)
    print(ladder.report())
    populations(ladder, chosen.out)
    reweighted(ladder, chosen.out)


if __name__ == "__main__":
    main()
