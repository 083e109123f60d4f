"""Six methods on three problems: what each sees of a first-order transition, what it costs, what it says about itself.

    python docs/scripts/which_method.py --out out                                # all that is not there yet
    python docs/scripts/which_method.py --problem spike_slab --method nested     # one of them

Every run is kept in `out` as JSON, with its row of the table and its histogram of energies, of which the figure is made.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import lattices
import observables
import quenchphys as qp

# Problem, the observable and range of its second phase, exact log Z and exact share of that phase (phi^6: by other methods).
SPIKE = qp.targets.spike_slab(10)
PROBLEMS: dict[str, tuple[Any, tuple[str, float, float] | None, float | None, float | None]] = {
    "gaussian": (qp.targets.gaussian(10), None, qp.targets.gaussian(10).log_z, None),
    "spike_slab": (SPIKE, ("spike", 0.5, 2.0), SPIKE.log_z, 0.9),
    "phi6": (lattices.phi6(L=8, mu2=2.2957), ("q", 1.25, np.inf), None, 0.4866),
}
METHODS = ("quench", "temper", "nested", "nuts", "mclmc", "laplace")
TITLES = {"gaussian": "Gaussian, D = 10", "spike_slab": "spike and slab, D = 10", "phi6": r"$\phi^6$, 8 x 8 sites"}
LADDERS = {
    "quench": {"particles": 200},
    "temper": {"particles": 200},
    "nested": {"particles": 400, "replicas": 2, "replaced": 0.5},
}
CHAINS = {
    "nuts": {"chains": 32, "draws": 500, "tune": 500},
    "mclmc": {"chains": 32, "draws": 500, "tune": 1000, "thin": 10},
}


def of_ladder(problem: Any, phase: Any, method: str, seed: int) -> dict[str, Any]:
    """log Z, the share of the second phase and P(E) of a ladder."""
    ladder = getattr(qp, method)(problem, seed=seed, **LADDERS[method])
    pool = observables.Pool(ladder)
    log_z = observables.partition_function(pool, beta=1.0)
    density = observables.energy_distribution(pool)
    row = {"log_z": float(log_z.log_z), "log_z_err": float(log_z.log_z_err), "says": ladder.outcome.value}
    if phase is not None:
        share = observables.phase_weights(pool, by=phase[0], cut=phase[1])
        row |= {"share": float(share.ordered_share), "share_err": float(share.ordered_share_err)}
    row |= {"energy": density.energy.values.tolist(), "log_p": density.log_p.values.tolist()}
    cost = ladder.attrs["gradients"] or ladder.attrs["evaluations"]
    return row | {
        "cost": cost,
        "unit": "gradients" if ladder.attrs["gradients"] else "energies",
        "ess": float(log_z.ess),
    }


def of_draws(data: Any, phase: Any, weight: np.ndarray | None = None) -> dict[str, Any]:
    """The share of the second phase and a histogram of energies, from equally weighted draws."""
    energy = data.energy.values.ravel()
    count, edges = np.histogram(energy, bins=40)
    with np.errstate(divide="ignore"):
        log_p = np.log(count / count.sum() / np.diff(edges))
    row: dict[str, Any] = {"energy": (0.5 * (edges[1:] + edges[:-1])).tolist(), "log_p": log_p.tolist()}
    if phase is not None:
        inside = (data[phase[0]] >= phase[1]) & (data[phase[0]] < phase[2])
        row["share"] = float(inside.mean())
        if "chain" in inside.dims:
            row["share_err"] = float(inside.mean("draw").std("chain", ddof=1) / np.sqrt(inside.sizes["chain"]))
    return row | {"cost": data.attrs["gradients"], "unit": "gradients", "says": data.attrs["why"]}


def run(name: str, method: str, seed: int) -> dict[str, Any]:
    """One row."""
    problem, phase, _, _ = PROBLEMS[name]
    begun = time.process_time()
    if method in LADDERS:
        row = of_ladder(problem, phase, method, seed)
    elif method in CHAINS:
        found = qp.chains(problem, kernel=method, seed=seed, fields=False, **CHAINS[method])
        row = of_draws(found, phase) | {"ess": float(found.ess_bulk.min())}
    else:
        found = qp.laplace(problem, curvature="hessian", steps=4000, learning_rate=0.01, seed=seed)
        row = of_draws(found, phase) | {"log_z": float(found.log_z), "log_z_err": float(found.log_z_err)}
        row["ess"] = float(found.ess)
    return row | {"problem": name, "method": method, "cpu_seconds": time.process_time() - begun}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in markdown."""
    lines = ["| problem | method | log Z | share of the second phase | cost | effective samples | what it says |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in rows:
        log_z = f"{row['log_z']:.3f}({row['log_z_err']:.3f})" if "log_z" in row else "none"
        share = f"{row['share']:.3f}" if "share" in row else ""
        share += f"({row['share_err']:.3f})" if "share_err" in row else ""
        cost = f"{row['cost']:.2g} {row['unit']}"
        lines.append(
            f"| {row['problem']} | {row['method']} | {log_z} | {share} | {cost} | {row['ess']:.0f} | {row['says']} |"
        )
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """P(E) of every method, one panel for each problem."""
    with observables.plot.style():
        figure, axes = plt.subplots(1, len(PROBLEMS), figsize=(10.5, 3.6))
        for ax, name in zip(axes, PROBLEMS, strict=True):
            own = [row for row in rows if row["problem"] == name]
            for number, method in enumerate(METHODS):
                for row in (row for row in own if row["method"] == method):
                    look = {"linewidth": 1.8, "alpha": 0.75} if method in LADDERS else {"linewidth": 0.9, "marker": "."}
                    ax.plot(row["energy"], row["log_p"], color=f"C{number}", label=method, **look)
            top = max((max(row["log_p"]) for row in own if row["method"] == "quench"), default=0.0)
            ax.set(title=TITLES[name], xlabel="energy $E$", ylim=(top - 9, top + 1.5))
            ax.set_ylabel(r"$\log P(E)$")
        axes[0].legend(fontsize=7)
        figure.savefig(path, dpi=160)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", choices=list(PROBLEMS), action="append")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in PROBLEMS:
        for method in METHODS:
            path = chosen.out / f"which_method_{name}_{method}.json"
            wanted = name in (chosen.problem or PROBLEMS) and method in (chosen.method or METHODS)
            if wanted and not path.exists():
                try:
                    row = run(name, method, chosen.seed)
                except ValueError as refusal:  # a method that does not apply says why
                    print(f"{name}, {method}: {refusal}", flush=True)
                    continue
                path.write_text(json.dumps(row))
            if path.exists():
                rows.append(json.loads(path.read_text()))
                print(table(rows[-1:]).splitlines()[-1], f"{rows[-1]['cpu_seconds']:.0f} s", flush=True)
    print("\n" + table(rows))
    draw(rows, chosen.out / "which_method.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
