"""Errors that single ladders claim from their genealogy, against the scatter of 64 replicas.

    python -m benchmarks.accuracy.error_ratio [particles] [replicas] [part of a name] [--seed S]

For each quantity: the standard deviation over replicas, the root mean square of the errors each replica claims by
itself, and their ratio; then the standard deviation of z, the distance from the mean of all replicas in errors of the
replica, and how often that is below 1 and 2.  A few replicas in which one lineage carries most of Z, and whose errors are
large for it, decide the ratio, but not the standard deviation of z.

The last line says how many replicas the report would doubt if they were single ladders, because they descend from few
families or from very unequal ones, and the standard deviation of z of log Z of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import lattices
import observables
import quenchphys as qp
from benchmarks import harness
from observables.checks import few_lineages
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
    found = []
    for r in range(replicas):
        one = alone(ladder, r)
        for quantity, pair in quantities(one, phase).items():
            rows.setdefault(quantity, []).append(pair)
        found.append(observables.diagnostics(one))
    print(f"{name}: {replicas} replicas of {ladder.particles.sizes['particle']} particles, {ladder.outcome.value}")
    numbers = {"mean": "10.4f", "scatter": "9.4f", "claimed": "9.4f", "ratio": "6.2f"}
    shown = harness.Table({"quantity": "22s"} | numbers | {"sd of z": "5.2f", "|z| < 1": "5.2f", "|z| < 2": "5.2f"})
    for quantity, pairs in rows.items():
        values, errors = np.array(pairs).T
        scatter, claimed = values.std(ddof=1), np.sqrt((errors**2).mean())
        z = np.abs(values - values.mean()) / errors
        within = [np.mean(z < limit) for limit in (1, 2)]
        shown.add(quantity, values.mean(), scatter, claimed, claimed / scatter, np.sqrt(np.mean(z**2)), *within)
    doubted = np.array([few_lineages(one) is not None for one in found])
    values, errors = np.array(rows["log_z(1.0)"]).T
    z = ((values - values.mean()) / errors)[~doubted]
    families, tail = (np.quantile([one[name] for one in found], (0.1, 0.5, 0.9)) for name in ("families", "family_tail"))
    print(f"  effective families {_listed(families)}, tail {_listed(tail)} (quantiles 0.1, 0.5, 0.9)")
    rest = f"; z of log Z of the other {len(z)}: sd {np.sqrt(np.mean(z**2)):.2f}" if len(z) else ""
    print(f"  doubted if alone: {doubted.mean():.0%}{rest}", flush=True)


def _listed(values: np.ndarray) -> str:
    return " ".join(f"{value:.3g}" for value in values)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("particles", type=int, nargs="?", default=200)
    parser.add_argument("replicas", type=int, nargs="?", default=64)
    parser.add_argument("wanted", nargs="?", default="", help="part of the name of a problem; default: all of them")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    for name, problem, phase in (
        ("gaussian(10)", qp.targets.gaussian(10), None),
        ("gaussian(100)", qp.targets.gaussian(100), None),
        ("spike_slab(10)", qp.targets.spike_slab(10), ("spike", 0.5)),
        ("spike_slab(50)", qp.targets.spike_slab(50), ("spike", 0.5)),
        ("bimodal(10)", qp.targets.bimodal(10), ("mode", 0.5)),
        ("phi^6 L=8, mu2=2.2957", lattices.phi6(L=8, mu2=2.2957), ("q", 1.25)),
    ):
        if chosen.wanted in name:
            ladder = qp.quench(problem, particles=chosen.particles, replicas=chosen.replicas, seed=chosen.seed)
            table(name, ladder, phase)


if __name__ == "__main__":
    main()
