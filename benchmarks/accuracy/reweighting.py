"""Does one ladder speak for its neighbours?  The ordered share of phi^6 at other mu2, reweighted and run there.

python benchmarks/accuracy/reweighting.py [particles] [replicas]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import lattices
import observables
import quenchphys as qp

HERE, THERE = 2.2957, (2.28, 2.31)


def share(ladder, mu2: float) -> tuple[float, float, float]:
    found = observables.phase_weights(ladder, mu2=mu2)
    return float(found.ordered_share), float(found.ordered_share_err), float(found.ess)


def main(particles: int, replicas: int) -> None:
    def run(mu2: float, seed: int):
        return observables.Pool(
            qp.quench(lattices.phi6(L=8, mu2=mu2), particles=particles, replicas=replicas, seed=seed)
        )

    centre = run(HERE, 0)
    print(f"phi^6 L=8, {replicas} replicas of {particles} particles; ordered share (q >= 1.25)")
    value, error, ess = share(centre, HERE)
    print(f"mu2 = {HERE}: {value:.4f}({error:.4f}), ess {ess:.0f}; reference 0.4866(10)")
    print(f"{'mu2':>6} {'reweighted':>10} {'error':>7} {'ess':>8} {'run there':>10} {'error':>7} {'z':>6}", flush=True)
    for seed, mu2 in enumerate(THERE, start=1):
        (a, da, ess), (b, db, _) = share(centre, mu2), share(run(mu2, seed), mu2)
        z = (a - b) / np.hypot(da, db)
        print(f"{mu2:6.3f} {a:10.4f} {da:7.4f} {ess:8.0f} {b:10.4f} {db:7.4f} {z:6.2f}", flush=True)
    for mu2 in (1.0, 1.8):
        try:
            print(f"mu2 = {mu2}: {share(centre, mu2)}")
        except ValueError as refusal:
            print(f"mu2 = {mu2}: {refusal}")


if __name__ == "__main__":
    given = [int(a) for a in sys.argv[1:3]]
    main(*(given + [400, 8][len(given) :]))
