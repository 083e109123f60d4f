"""Chains side by side on the last axis against chains in the modes of the free field: site-gradients per second.

    python -m benchmarks.speed.lanes [--L N] [--rounds N]

Both are whole chains of phi^6 as they are run, with momenta, acceptance tests and observables, in one process and in turns:
those of `quenchphys.bridge` hold eight configurations side by side, so that neighbours are whole SIMD registers, and those
of `quenchphys.multicanonical` have the modes of the free field as coordinates, with a transform for every gradient.
A gradient in the modes also moves the field further, so this is the cost of a gradient and not that of an error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import jax
import numpy as np

import lattices
import quenchphys as qp
from benchmarks import harness

MU2 = 2.2839
LEVELS = 16
GROUPS, CHAINS = 16, 8


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--L", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    model = lattices.phi6(L=chosen.L, mu2=MU2)
    phase = lattices.phase_fields(model)["ordered"]
    draws = model.sample_prior(jax.random.key(0), GROUPS * CHAINS)
    start = np.asarray(draws).reshape(GROUPS, CHAINS, *model.shape)
    energies = np.array([-10.0, -5.0, 5.0, 10.0])  # the canonical weight, log w = -U
    betas = np.linspace(0, 1, LEVELS + 1)[1:]

    def bridge() -> float:
        return float(qp.bridge(phase, betas=betas, sweeps=256, groups=GROUPS, progress=False).attrs["gradients"])

    def walk() -> float:
        return float(qp.multicanonical(model, start, energies, -energies, sweeps=64, progress=False).attrs["gradients"])

    runs = {"side by side": bridge, "in the modes": walk}
    gradients = {name: run() for name, run in runs.items()}
    wall = harness.fastest(runs, chosen.rounds)
    processor = harness.fastest(runs, chosen.rounds, clock=time.process_time)
    table = harness.Table({"chains": "14s", "G/s": ".2f", "G/s of one core": ".2f", "ns": ".2f"})
    rate = {}
    for name in runs:
        site_gradients = gradients[name] * chosen.L**2
        rate[name] = site_gradients / processor[name] / 1e9
        table.add(name, site_gradients / wall[name] / 1e9, rate[name], 1 / rate[name])
    first, second = rate.values()
    print(f"ratio, by processor time: {first / second:.1f}")


if __name__ == "__main__":
    main()
