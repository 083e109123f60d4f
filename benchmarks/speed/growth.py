"""Growth of the cost of a coexistence point with the size of the lattice.

    python -m benchmarks.speed.growth --sizes 8 16 24 40          about 20 minutes on two cores
    python -m benchmarks.speed.growth --sizes 64                  half an hour more; the table has all sizes so far

Each size is one call of `workflows.coexistence` with default settings, compilation included: pilot and
multicanonical chains.  Rows are kept in out/growth.json, and exponents in V = L^2 are fitted to all of them: of the
site-gradients and the processor time that were spent, and of the site-gradients that would give the log odds of the phases
to 0.1.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import quenchphys as qp
import workflows
from benchmarks import harness

BRACKET = {8: (2.25, 2.33)}  # larger lattices lie in the other
USUAL_BRACKET = (2.27, 2.30)
KEPT = harness.OUT / "growth.json"
WANTED = 0.1  # error of the log odds
COSTS = {"site_gradients": "site-gradients", "cpu_seconds": "processor time", "to_error": f"site-gradients to {WANTED}"}


def measure(L: int, seed: int = 0, progress: bool | None = None, **settings: Any) -> dict[str, Any]:
    """One coexistence point with what it cost."""
    timer = harness.Timer()
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "point.nc"
        found = workflows.coexistence(
            method="crossing",
            L=L, bracket=BRACKET.get(L, USUAL_BRACKET), seed=seed, out=out, progress=progress, **settings
        )
        costs = timer.costs()
        spent: dict[str, float] = {}  # gradients
        for path in sorted(Path(place).glob("*/*.nc")):
            kind = path.name.split("_")[0].rstrip("0123456789")
            spent[kind] = spent.get(kind, 0.0) + xr.open_dataset(path, engine="h5netcdf").attrs["gradients"]
        pilot = qp.load(sorted(Path(place).glob("*/pilot*.nc"))[-1])
        return {
            "L": L,
            "seed": seed,
            **settings,
            "mu2": float(found.mu2),
            "mu2_err": float(found.mu2_err),
            "log_odds_err": abs(float(found.log_odds_slope)) * float(found.mu2_err),
            "log_z": [float(v) for v in found.log_z],
            "log_z_err": [float(v) for v in found.log_z_err],
            "barrier": float(found.barrier),
            "trusted": bool(found.trusted),
            "softness": pilot.softness,
            "levels": int(pilot.levels.level_count.max()),
            "crossings": int(found.crossings.sum()),
            "site_gradients": L**2 * sum(spent.values()),
            "share": {kind: number / sum(spent.values()) for kind, number in spent.items()},
            **costs,
        }


def exponents(rows: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """{cost: (exponent in V, its standard error from the scatter)}, by least squares in log log."""
    x = np.log([row["L"] ** 2 for row in rows])
    found = {}
    for name in COSTS:
        y = np.log([_cost(row, name) for row in rows])
        design = np.stack([x, np.ones_like(x)], axis=1)
        solution, *_ = np.linalg.lstsq(design, y, rcond=None)
        scatter = np.sum((y - design @ solution) ** 2) / max(len(x) - 2, 1)
        found[name] = float(solution[0]), float(np.sqrt(scatter * np.linalg.inv(design.T @ design)[0, 0]))
    return found


def _cost(row: dict[str, Any], name: str) -> float:
    return row["site_gradients"] * (row["log_odds_err"] / WANTED) ** 2 if name == "to_error" else row[name]


def table(rows: list[dict[str, Any]]) -> None:
    print("   L  softness  levels  crossings   site-gradients  wall s   cpu s   error of log odds   mu2*")
    for row in rows:
        print(
            f"{row['L']:4d} {row['softness']:9.3g} {row['levels']:7d} {row['crossings']:10d} {row['site_gradients']:16.3g} "
            f"{row['seconds']:7.0f} {row['cpu_seconds']:7.0f} {row['log_odds_err']:19.3f}   {row['mu2']:.5f} +- "
            f"{row['mu2_err']:.5f}"
        )
    if len({row["L"] for row in rows}) > 2:
        for name, (power, error) in exponents(rows).items():
            print(f"{COSTS[name]} grows as V^{power:.2f}({round(100 * error)})")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 16, 24, 40])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replicas", type=int, help="other than the default")
    chosen = parser.parse_args(arguments)
    settings = {} if chosen.replicas is None else {"replicas": chosen.replicas}
    rows = json.loads(KEPT.read_text()) if KEPT.exists() else []
    for L in chosen.sizes:
        rows = [row for row in rows if row["L"] != L]
        rows = sorted([*rows, measure(L, chosen.seed, **settings)], key=lambda row: row["L"])
        harness.save(KEPT.stem, rows)
    table(rows)


if __name__ == "__main__":
    main()
