"""Gain of moving the free field exactly: gradients until U and q decorrelate, with it and with plain leapfrog steps.

    python -m benchmarks.speed.free_motion            about three minutes on two cores

The same ladders of phi^6 at L = 24, coarse and of few particles, in one process.  The correlation of a quantity before
and after the mutation of a level gives the gradients until it is 0.3, T log(0.3)/log(rho) times those of a trajectory.  The
last column is the structure factor at the smallest momentum, the shape of a droplet.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import jax.numpy as jnp
import numpy as np

import lattices
import quenchphys as qp
from benchmarks import harness
from quenchphys.smc.density import Density

L, MU2, SOFTNESS, QUANTITIES = 24, 2.2849, 104.0, ("energy", "q", "s_min")
LENGTHS = (6, 8, 12, 16)


def gradients_to_decorrelate(ladder: qp.Ladder, length: int) -> list[float]:
    """For each quantity, from its mean correlation over the middle half of the levels, where both phases meet."""
    count = int(ladder.levels.level_count.min())
    middle = slice(count // 4, 3 * count // 4)
    spent = length * ladder.levels.transitions.values[:, middle].mean()
    rho = ladder.levels.correlation.isel(level=middle).mean(("replica", "level"))
    return [float(spent * np.log(0.3) / np.log(np.clip(rho.sel(quantity=name), 1e-3, 0.999))) for name in QUANTITIES]


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)
    model = lattices.phi6(L=L, mu2=MU2)
    print("gradients until the correlation of a quantity is 0.3")
    columns = {"steps": "12s", "length": "d", "step size": ".3f", **dict.fromkeys(QUANTITIES, "6.0f")}
    table = harness.Table(columns)
    for length in LENGTHS:
        for name in ("leapfrog", "free field"):
            stiffness = Density.stiffness if name == "free field" else property(lambda density: jnp.zeros(()))
            with mock.patch.object(Density, "stiffness", stiffness):
                # The targets differ in the last digit so that the two kernels are compiled separately.
                kernel = qp.HMC(leapfrogs=length, target_acceptance=0.8 if name == "leapfrog" else 0.8 + 1e-9)
                ladder = qp.quench(
                    model, particles=128, replicas=2, softness=SOFTNESS, target_ess=0.5, kernel=kernel, progress=False
                )
            table.add(name, length, float(ladder.levels.step_size.mean()), *gradients_to_decorrelate(ladder, length))
    harness.save("free_motion", table.rows)


if __name__ == "__main__":
    main()
