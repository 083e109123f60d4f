"""Six methods on three problems: what each sees of a first-order transition, what it costs, what it says about itself.

    python docs/scripts/which_method.py --figure which_method.png               # all that is not there yet
    python docs/scripts/which_method.py --problem spike_slab --method nested     # one of them

Every run is kept in the folder `out` as JSON, with its row of the table and its histogram of energies, of which the figure
is made.  The table is printed in markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
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
from observables.numbers import number

# Problem, the observable and range of its second phase, exact log Z and exact share of that phase (phi^6: by other methods).
SPIKE = qp.targets.spike_slab(10)
PROBLEMS: dict[str, tuple[Any, tuple[str, float, float] | None, float | None, float | None]] = {
    "gaussian": (qp.targets.gaussian(10), None, qp.targets.gaussian(10).log_z, None),
    "spike_slab": (SPIKE, ("spike", 0.5, 2.0), SPIKE.log_z, 0.9),
    "phi6": (lattices.phi6(L=8, mu2=2.2957), ("q", 1.25, np.inf), None, 0.4866),
    "phi6_40": (lattices.phi6(L=40, mu2=2.28347), ("q", 1.25, np.inf), -53.45, 0.66),
}
ONLY = {"phi6_40": ("nuts", "mclmc")}  # ladders of 40 x 40 sites have a tutorial of their own
METHODS = ("quench", "temper", "nested", "nuts", "mclmc", "laplace")
TITLES = {"gaussian": "Gaussian, D = 10", "spike_slab": "spike and slab, D = 10", "phi6": r"$\phi^6$, 8 x 8 sites"}
SHOWN = {"gaussian": "Gaussian", "spike_slab": "spike and slab", "phi6": "$\\phi^6$, 8 x 8", "phi6_40": "$\\phi^6$, 40 x 40"}
LADDERS = {
    "quench": {"particles": 200},
    "temper": {"particles": 200},
    "nested": {"particles": 1000, "replicas": 2, "replaced": 0.25},
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
    """The rows in markdown, below what is exact."""
    lines = ["| problem | method | log Z | share of the second phase | cost | what it says |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(row["problem"] for row in rows):
        _, _, log_z, share = PROBLEMS[name]
        lines.append(f"| {SHOWN[name]} | *exact* | {_cell(log_z)} | {_cell(share)} | | |")
        for row in (row for row in rows if row["problem"] == name):
            cost = f"{row['cost']:.2g} {row['unit']}" if "cost" in row else ""
            columns = [_cell(row.get(key), row.get(f"{key}_err", np.nan)) for key in ("log_z", "share")]
            lines.append(f"| | {row['method']} | {columns[0]} | {columns[1]} | {cost} | {row['says']} |")
    return "\n".join(lines)


def _cell(value: float | None, error: float = np.nan) -> str:
    if value is None:
        return ""
    return number(value, error) if np.isfinite(error) and error > 0 else f"{value:.4g}"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """P(E) of every method, one panel for each problem."""
    with observables.plot.style():
        figure, axes = plt.subplots(1, len(TITLES), figsize=(10.5, 3.6))
        for ax, name in zip(axes, TITLES, strict=True):
            own = [row for row in rows if row["problem"] == name]
            for number, method in enumerate(METHODS):
                for row in (row for row in own if row["method"] == method and "energy" in row):
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
    parser.add_argument("--out", type=Path, default=Path("out/which_method"))
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in PROBLEMS:
        for method in ONLY.get(name, METHODS):
            path = chosen.out / f"{name}_{method}.json"
            wanted = name in (chosen.problem or PROBLEMS) and method in (chosen.method or METHODS)
            if wanted and not path.exists():
                try:
                    row = run(name, method, chosen.seed)
                except ValueError as refusal:  # a method that does not apply says why
                    row = {"problem": name, "method": method, "says": f"refused: {refusal}", "cpu_seconds": 0.0}
                path.write_text(json.dumps(row))
            if path.exists():
                rows.append(json.loads(path.read_text()))
                print(f"{name}, {method}: {rows[-1]['cpu_seconds']:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    if chosen.figure is not None:
        draw(rows, chosen.figure)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
