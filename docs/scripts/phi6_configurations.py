"""Pictures of the phases of phi^6: disordered, barrier and ordered configurations at coexistence.

    python docs/scripts/phi6_configurations.py [--L 40] [--out docs/figures/phi6_configurations.png]

One quenched ladder passes through both phases and the barrier between them.  Of the configurations it kept, the figure shows
one that is typical of each phase at beta = 1 and one at the cut q = 1.25, all on the same scale.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import lattices
import quenchphys as qp

MU2 = 2.2838  # coexistence at L = 40


def kept(ladder: qp.Ladder) -> tuple[np.ndarray, np.ndarray]:
    """Fields (n, L, L) that were kept, with the q of each."""
    fields = ladder.configurations["field"].values
    fields = fields.reshape(-1, *fields.shape[2:])
    fields = fields[np.isfinite(fields).all(axis=(1, 2))]
    return fields, (fields**2).mean(axis=(1, 2))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--L", type=int, default=40)
    options.add_argument("--particles", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("docs/figures/phi6_configurations.png"))
    given = options.parse_args()

    model = lattices.phi6(L=given.L, mu2=MU2)
    kernel = qp.HMC(trajectories=3, leapfrogs=6)
    ladder = qp.quench(model, particles=given.particles, replicas=1, seed=given.seed, kernel=kernel)
    print(f"{ladder.levels.sizes['level']} levels, {ladder.outcome.value}")
    fields, q = kept(ladder)

    cut = model.mean_field.q_cut
    wanted = {"disordered": 0.184, "barrier": cut, "ordered": 1.89}  # typical q of each phase at beta = 1
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), layout="constrained")
    for axis, (name, target) in zip(axes, wanted.items(), strict=True):
        chosen = int(np.argmin(np.abs(q - target)))
        field = fields[chosen]
        field = field * np.sign(field.mean())  # phi -> -phi is a symmetry
        image = axis.imshow(field, cmap="RdBu_r", vmin=-2.2, vmax=2.2, interpolation="nearest")
        axis.set_title(f"{name}: $q$ = {q[chosen]:.2f}, $|m|$ = {abs(field.mean()):.2f}", fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
        print(f"{name}: q {q[chosen]:.3f}, |m| {abs(field.mean()):.3f}, field {field.min():.2f} to {field.max():.2f}")
    figure.colorbar(image, ax=axes, label=r"$\phi_x$", shrink=0.85)
    figure.suptitle(rf"$\phi^6$ at coexistence, $L={given.L}$, $\mu^2={MU2}$, $\lambda=-1$, $\eta=0.2$", fontsize=11)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(given.out, dpi=150)


if __name__ == "__main__":
    main()
