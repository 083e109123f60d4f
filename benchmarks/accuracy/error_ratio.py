"""Does a single ladder know its own error?  Genealogical errors against the scatter of 64 replicas.

    python benchmarks/accuracy/error_ratio.py [particles] [replicas] [part of a name]

For each quantity: the standard deviation over replicas, the root mean square of the errors each replica claims by
itself, and their ratio, which should lie between 0.6 and 1.6.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import lattices
import observables
import quenchphys as qp
from quenchphys.ladder import Ladder


def alone(ladder: Ladder, replica: int) -> Ladder:
    """One replica as a ladder by itself."""
    return Ladder(ladder.tree.isel(replica=[replica]))


def quantities(ladder: Ladder, phase: tuple[str, float] | None) -> dict[str, tuple[float, float]]:
    """{name: (value, error)}"""
    pool = observables.Pool(ladder)
    heat = observables.thermodynamics(pool, [0.3, 1.0])
    found = {}
    for b, beta in enumerate((0.3, 1.0)):
        for name in ("log_z", "energy", "heat_capacity"):
            found[f"{name}({beta})"] = float(heat[name][b]), float(heat[name + "_err"][b])
    if phase:
        share = observables.phase_weights(pool, *phase)
        found[f"share {phase[0]} >= {phase[1]}"] = float(share.ordered_share), float(share.ordered_share_err)
    return found


def table(name: str, ladder: Ladder, phase: tuple[str, float] | None) -> None:
    replicas = ladder.levels.sizes["replica"]
    rows: dict[str, list[tuple[float, float]]] = {}
    for r in range(replicas):
        for quantity, pair in quantities(alone(ladder, r), phase).items():
            rows.setdefault(quantity, []).append(pair)
    print(f"{name}: {replicas} replicas of {ladder.particles.sizes['particle']} particles, {ladder.outcome.value}")
    print(f"    {'quantity':<22} {'mean':>10} {'scatter':>9} {'claimed':>9} {'ratio':>6}")
    for quantity, pairs in rows.items():
        values, errors = np.array(pairs).T
        scatter, claimed = values.std(ddof=1), np.sqrt((errors**2).mean())
        print(
            f"    {quantity:<22} {values.mean():10.4f} {scatter:9.4f} {claimed:9.4f} {claimed / scatter:6.2f}",
            flush=True,
        )


def main(particles: int, replicas: int, wanted: str) -> None:
    for name, problem, phase in (
        ("gaussian(100)", qp.targets.gaussian(100), None),
        ("spike_slab(50)", qp.targets.spike_slab(50), ("spike", 0.5)),
        ("phi^6 L=8, mu2=2.2957", lattices.phi6(L=8, mu2=2.2957), ("q", 1.25)),
    ):
        if wanted in name:
            table(name, qp.quench(problem, particles=particles, replicas=replicas, seed=1), phase)


if __name__ == "__main__":
    given = sys.argv[1:4] + ["200", "64", ""][len(sys.argv) - 1 :]
    main(int(given[0]), int(given[1]), given[2])
