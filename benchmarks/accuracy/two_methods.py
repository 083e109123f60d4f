"""Coexistence points by two methods that share nothing: chains that cross between the phases, and bridges to each of them.

    python -m benchmarks.accuracy.two_methods L24 L40 --seeds 8         an hour
    python -m benchmarks.accuracy.two_methods weak strong eta triangular cube
    python -m benchmarks.accuracy.two_methods --table                   what is kept

Every run is `workflows.coexistence(method="both")`, kept with its chains in out/two_methods, so that a script that was
stopped goes on where it was.  *Apart* is phases minus crossing in standard errors.  Where several seeds were run, the last
lines give the sums of the squares of these distances, of the scatter of either method about its own mean, and the distance
of either mean from a reference by other methods, where there is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

import lattices
import workflows
from benchmarks import harness

FOLDER = harness.OUT / "two_methods"


class Case(NamedTuple):
    """A transition: what `coexistence` is called with, and what is known of it."""

    arguments: dict[str, Any]
    error: float
    reference: tuple[float, float] | None = None


def triangular(mu2: float) -> lattices.ScalarField:
    """phi^6 on a triangular lattice of 12 x 12 sites, six neighbours each."""
    side = 12
    sites = np.arange(side**2).reshape(side, side)
    shifts = ((-1, 0), (0, -1), (-1, -1))
    links = [pair for shift in shifts for pair in zip(sites.ravel(), np.roll(sites, shift, (0, 1)).ravel(), strict=True)]
    return lattices.scalar_field_on_graph(links, mu2=mu2, couplings={4: -1.0, 6: 0.2}, stiffness=2.0)


CASES = {
    "L24": Case({"L": 24, "bracket": (2.27, 2.30)}, 1e-4, (2.28486, 5e-5)),
    "L40": Case({"L": 40, "bracket": (2.27, 2.30)}, 6e-5, (2.28396, 3e-5)),
    "weak": Case({"L": 40, "lam": -0.9}, 1e-4),
    "strong": Case({"L": 10, "lam": -1.2}, 3e-4),
    "eta": Case({"L": 8, "eta": 0.15, "stiffness": 2.5}, 5e-4),
    "stiffness": Case({"L": 12, "stiffness": 2.5}, 4e-4),
    "triangular": Case({"model": triangular}, 4e-4),
    "cube": Case({"shape": (6, 6, 6)}, 2e-4),
}


def measure(name: str, seed: int) -> dict[str, Any]:
    """One point by both methods, from its file if it is there."""
    path = FOLDER / f"{name}_seed{seed}.json"

    def both() -> dict[str, Any]:
        case = CASES[name]
        found = workflows.coexistence(
            **case.arguments,
            method="both",
            error=case.error,
            seed=seed,
            out=path.with_suffix(".nc"),
            overwrite=True,
            progress=False,
        )
        return {"case": name, "seed": seed, "trusted": int(found.trusted), "why": found.why} | numbers(found)

    return harness.kept(path, both)


def numbers(found: xr.Dataset) -> dict[str, float]:
    """Both answers and how far they are apart."""
    names = [f"mu2_{method}{end}" for method in ("crossing", "phases") for end in ("", "_err")]
    crossings = {"crossings": float(found["crossings"].sum())}
    return crossings | {name: float(found[name]) for name in (*names, "mu2_distance", "mu2", "mu2_err", "barrier")}


COLUMNS = {
    "case": "10s",
    "seed": "d",
    "crossing": ".6f",
    "error": ".1e",
    "phases": ".6f",
    "error of it": ".1e",
    "apart": "+.2f",
    "crossings": ".0f",
    "processor s": ".0f",
}


def show(row: dict[str, Any], table: harness.Table) -> None:
    names = ("mu2_crossing", "mu2_crossing_err", "mu2_phases", "mu2_phases_err", "mu2_distance", "crossings", "cpu_seconds")
    table.add(row["case"], row["seed"], *(row[name] for name in names), note="" if row["trusted"] else row["why"])


def summary(rows: list[dict[str, Any]]) -> None:
    """Sums of squares over the seeds of every case."""
    for name in dict.fromkeys(row["case"] for row in rows):
        some = [row for row in rows if row["case"] == name]
        apart = np.array([row["mu2_distance"] for row in some])
        print(
            f"{name}, {len(some)} seeds: sum of squares of the distances {(apart**2).sum():.1f} for {len(some)} "
            f"(p = {stats.chi2.sf((apart**2).sum(), len(some)):.2f}), largest {np.abs(apart).max():.2f}"
        )
        for method in ("crossing", "phases") if len(some) > 1 else ():
            value, error = (np.array([row[f"mu2_{method}{end}"] for row in some]) for end in ("", "_err"))
            mean, width = np.average(value, weights=error**-2.0), np.sum(error**-2.0) ** -0.5
            chi2 = float((((value - mean) / error) ** 2).sum())
            line = f"    {method}: mean {mean:.6f} +- {width:.1e}, sum of z^2 {chi2:.1f} for {len(some) - 1}"
            if (reference := CASES[name].reference) is not None:
                line += f", {(mean - reference[0]) / np.hypot(width, reference[1]):+.1f} errors from the reference"
            print(line)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], metavar="case", help=", ".join(CASES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="run nothing; show what is kept")
    chosen = parser.parse_args(arguments)
    table = harness.Table(COLUMNS)
    if chosen.table:
        rows = [json.loads(path.read_text()) for path in FOLDER.glob("*.json")]
        rows.sort(key=lambda row: (list(CASES).index(row["case"]), row["seed"]))
        for row in rows:
            show(row, table)
    else:
        rows = []
        for name in chosen.cases:
            for seed in range(chosen.first, chosen.first + chosen.seeds):
                rows.append(measure(name, seed))
                show(rows[-1], table)
    summary(rows)


if __name__ == "__main__":
    main()
