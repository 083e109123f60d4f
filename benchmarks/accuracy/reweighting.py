"""Ordered share of phi^6 at other mu2: reweighted from one ladder, and from ladders run there.

    python -m benchmarks.accuracy.reweighting [particles] [replicas]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import lattices
import observables
import quenchphys as qp
from benchmarks import harness

HERE, THERE = 2.2957, (2.28, 2.31)


def share(pool: observables.Pool, mu2: float) -> tuple[float, float, float]:
    """Ordered share at a coupling, its error and the effective sample size."""
    found = observables.phase_weights(pool, mu2=mu2)
    return float(found.ordered_share), float(found.ordered_share_err), float(found.ess)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("particles", type=int, nargs="?", default=400)
    parser.add_argument("replicas", type=int, nargs="?", default=8)
    chosen = parser.parse_args(arguments)
    particles, replicas = chosen.particles, chosen.replicas

    def run(mu2: float, seed: int) -> observables.Pool:
        return observables.Pool(
            qp.quench(lattices.phi6(L=8, mu2=mu2), particles=particles, replicas=replicas, seed=seed)
        )

    centre = run(HERE, 0)
    print(f"phi^6 L=8, {replicas} replicas of {particles} particles; ordered share (q >= 1.25)")
    value, error, ess = share(centre, HERE)
    print(f"mu2 = {HERE}: {value:.4f}({error:.4f}), ess {ess:.0f}; reference 0.4866(10)")
    columns = {"mu2": "6.3f", "reweighted": ".4f", "error": "7.4f", "ess": "7.0f", "run there": ".4f"}
    table = harness.Table(columns | {"error there": ".4f", "z": "6.2f"})
    for seed, mu2 in enumerate(THERE, start=1):
        (a, da, ess), (b, db, _) = share(centre, mu2), share(run(mu2, seed), mu2)
        z = (a - b) / np.hypot(da, db)
        table.add(mu2, a, da, ess, b, db, z)
    for mu2 in (1.0, 1.8):
        try:
            print(f"mu2 = {mu2}: {share(centre, mu2)}")
        except ValueError as refusal:
            print(f"mu2 = {mu2}: {refusal}")


if __name__ == "__main__":
    main()
