"""What is it worth to move the free field exactly?  Gradients until U and q are forgotten, with it and with leapfrog steps.

    python -m benchmarks.speed.free_motion            about three minutes on two cores

The same ladders of phi^6 at L = 24, coarse and of few particles, in one process.  The correlation of a quantity before
and after the mutation of a level gives the gradients until it is 0.3, T log(0.3)/log(rho) times those of a trajectory.  The
last column is the structure factor at the smallest momentum, the shape of a droplet.
"""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import jax.numpy as jnp
import numpy as np

import lattices
import quenchphys as qp
from quenchphys.smc.density import Density

L, MU2, SOFTNESS, QUANTITIES = 24, 2.2849, 104.0, ("energy", "q", "s_min")
LENGTHS = (6, 8, 12, 16)


def gradients_to_forget(ladder: qp.Ladder, length: int) -> list[float]:
    """Mean over the middle half of the levels, where both phases meet."""
    count = int(ladder.levels.level_count.min())
    middle = slice(count // 4, 3 * count // 4)
    spent = length * ladder.levels.transitions.values[:, middle].mean()
    rho = ladder.levels.correlation.isel(level=middle).mean(("replica", "level"))
    return [float(spent * np.log(0.3) / np.log(np.clip(rho.sel(quantity=name), 1e-3, 0.999))) for name in QUANTITIES]


def main() -> None:
    model, rows = lattices.phi6(L=L, mu2=MU2), []
    print(f"{'steps':14s} {'length':>6s} {'step size':>9s}   gradients until U, q, s_min are forgotten")
    for length in LENGTHS:
        for name in ("leapfrog", "free field"):
            stiffness = Density.stiffness if name == "free field" else property(lambda density: jnp.zeros(()))
            with mock.patch.object(Density, "stiffness", stiffness):
                # Kernels that differ in the last digit are compiled apart.
                kernel = qp.HMC(leapfrogs=length, target_acceptance=0.8 if name == "leapfrog" else 0.8 + 1e-9)
                ladder = qp.quench(
                    model, particles=128, replicas=2, softness=SOFTNESS, target_ess=0.5, kernel=kernel, progress=False
                )
            found = gradients_to_forget(ladder, length)
            rows.append({"steps": name, "length": length, "gradients": dict(zip(QUANTITIES, found, strict=True))})
            step = float(ladder.levels.step_size.mean())
            print(f"{name:14s} {length:6d} {step:9.3f}   " + " ".join(f"{value:6.0f}" for value in found), flush=True)
    harness.save("free_motion", rows)


if __name__ == "__main__":
    main()
