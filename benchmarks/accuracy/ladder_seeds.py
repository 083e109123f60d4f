"""Ladders of phi^6 at coexistence over several seeds, and the same polished, against references by other methods.

    python -m benchmarks.accuracy.ladder_seeds 40 --seeds 8 --polish              two hours
    python -m benchmarks.accuracy.ladder_seeds 40 --seeds 8 --particles 1000 --replicas 4
    python -m benchmarks.accuracy.ladder_seeds 16 --seeds 8
    python -m benchmarks.accuracy.ladder_seeds 8 16 24 40 --table                 what is kept, and the rate of alarms

References of the log odds are the coexistence points of multicanonical HMC in q (2.2948(2), 2.28656(5), 2.28486(5),
2.28396(3) at L = 8, 16, 24, 40), with the slope of the log odds, V 1.709/2; that of log Z at L = 40 is thermodynamic
integration in the disordered phase.  Every seed is kept in a file of its own under out/ladder_seeds, so that a run that was
stopped goes on where it was; --again polishes anew a ladder that is kept.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import lattices
import observables
import quenchphys as qp
import workflows
from benchmarks import harness
from quenchphys.smc.lag import replica_scatter, slowest_quantity

FOLDER = harness.OUT / "ladder_seeds"
# Coupling of the run; coexistence point with its error; log Z there with its error, where it is known.
POINT: dict[int, tuple[float, tuple[float, float], tuple[float, float] | None]] = {
    8: (2.2948, (2.2948, 2e-4), None),
    16: (2.2866, (2.28656, 5e-5), None),
    24: (2.2849, (2.28486, 5e-5), None),
    40: (2.2839, (2.28396, 3e-5), (-53.86, 0.05)),
}
JUMP = 1.709  # of q from phase to phase
WRONG = 3.0  # errors from the reference


def reference(L: int) -> dict[str, tuple[float, float] | None]:
    """log odds and log Z at the coupling of the runs, each with its error."""
    at, (point, error), log_z = POINT[L]
    slope = 0.5 * L**2 * JUMP
    return {"log_odds": ((point - at) * slope, error * slope), "log_z": log_z}


def answers(run: qp.Ladder | qp.Walk) -> dict[str, float]:
    pool = observables.Pool(run)
    found = observables.partition_function(pool).assign(observables.phase_weights(pool).data_vars)
    return {name + end: float(found[name + end]) for name in ("log_z", "log_odds") for end in ("", "_err")}


def lag_of(ladder: qp.Ladder) -> dict[str, Any]:
    """What the outcome *lagged* rests on: the quantity that is slow at most levels, and the scatter of replicas."""
    levels = ladder.levels
    parameter, log_volume, correlation = (levels[name].values for name in ("energy", "log_volume", "correlation"))
    slowest = slowest_quantity(correlation, levels["quantity"].values)
    return slowest._asdict() | {"scatter": replica_scatter(parameter, log_volume, levels["level_count"].values)}


def ladder_of(model: Any, path: Path, particles: int, replicas: int, seed: int) -> tuple[qp.Ladder, dict[str, float]]:
    """The ladder in a file, or run and written to it, and what it cost."""
    if path.exists():
        return qp.load(path), {}  # type: ignore[return-value]
    timer = harness.Timer()
    ladder = qp.quench(model, particles=particles, replicas=replicas, seed=seed, progress=False)
    costs = timer.costs()
    ladder.save(path)
    return ladder, costs


def measure(L: int, particles: int, replicas: int, seed: int, polish: bool, again: bool = False) -> dict[str, Any]:
    """One seed: the ladder, and the same polished; from its file where that is there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"L{L}_{replicas}x{particles}_seed{seed}.json"
    row: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"L": L, "seed": seed}
    row |= {"particles": particles, "replicas": replicas}
    model = lattices.phi6(L=L, mu2=POINT[L][0])
    polish = polish and (again or "polished" not in row)
    if polish or "ladder" not in row:
        ladder, costs = ladder_of(model, path.with_suffix(".nc"), particles, replicas, seed)
        if "ladder" not in row:
            row["ladder"] = answers(ladder) | lag_of(ladder) | {"outcome": ladder.outcome.value} | costs
            path.write_text(json.dumps(row, indent=1))
        if polish:
            timer = harness.Timer()
            walk = workflows.polish(model, ladder, seed=seed, progress=False)
            costs = timer.costs() | {"sweeps": walk.energy.shape[1]}
            facts = {name: int(walk.attrs[name]) for name in ("trusted", "crossings")} | {"why": walk.attrs["why"]}
            row["polished"] = answers(walk) | facts | costs
            path.write_text(json.dumps(row, indent=1))
    return row


def z_scores(L: int, found: dict[str, Any]) -> dict[str, float]:
    """Distance from each reference, in errors of both."""
    known = {name: value for name, value in reference(L).items() if value is not None}
    return {name: (found[name] - value) / np.hypot(found[f"{name}_err"], error) for name, (value, error) in known.items()}


def show(row: dict[str, Any]) -> None:
    for kind in ("ladder", "polished"):
        if (found := row.get(kind)) is None:
            continue
        z = "  ".join(f"z {name} {value:+.2f}" for name, value in z_scores(row["L"], found).items())
        words = found["outcome"] if kind == "ladder" else f"trusted {found['trusted']}, {found['crossings']} crossings"
        time = f"{found['seconds']:.0f} s, {found['cpu_seconds']:.0f} s of processor" if "seconds" in found else ""
        values = ", ".join(
            f"{name} {found[name]:.3f} +- {found[name + '_err']:.3f}" for name in ("log_z", "log_odds")
        )
        size = f"L = {row['L']}, {row['replicas']} x {row['particles']}, seed {row['seed']}"
        print(f"{size}, {kind:8}: {values}  {z}  {words}  {time}", flush=True)


def summary(rows: list[dict[str, Any]]) -> None:
    """z-scores of ladders and of polished ladders, and how often a wrong one says so."""
    for kind in ("ladder", "polished"):
        some = [row for row in rows if kind in row]
        scores = [z_scores(row["L"], row[kind]) for row in some]
        for name in scores[0] if scores else ():
            z = np.array([score[name] for score in scores])
            spread = f", sd {z.std(ddof=1):.2f}" if len(z) > 1 else ""
            print(f"{kind}, {name}: mean z {z.mean():+.2f}{spread}, largest {np.abs(z).max():.2f}, {len(z)} seeds")
    counts = np.zeros((2, 2), int)
    for row in rows:
        wrong = max(map(abs, z_scores(row["L"], row["ladder"]).values())) > WRONG
        counts[int(wrong), int(row["ladder"]["outcome"] == qp.Outcome.LAGGED.value)] += 1
    right, wrong = (f"{trusted} trusted, {lagged} lagged" for trusted, lagged in counts)
    print(f"ladders within {WRONG:g} errors: {right}; beyond: {wrong}")


def kept(sizes: Sequence[int]) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("L*.json"))]
    return [row for row in found if row["L"] in sizes and "ladder" in row]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("L", type=int, nargs="+", choices=sorted(POINT))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--particles", type=int, default=400)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--polish", action="store_true", help="run the chains of `workflows.polish` as well")
    parser.add_argument("--again", action="store_true", help="polish ladders that have been polished")
    parser.add_argument("--table", action="store_true", help="run nothing; show what is kept")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # each ladder that lags says so; here that is a column
    if chosen.table:
        for L in chosen.L:
            groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
            for row in kept([L]):
                groups.setdefault((row["replicas"], row["particles"]), []).append(row)
            for rows in groups.values():
                for row in rows:
                    show(row)
                summary(rows)
        return
    for L in chosen.L:
        rows = []
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            rows.append(measure(L, chosen.particles, chosen.replicas, seed, chosen.polish, chosen.again))
            show(rows[-1])
        summary(rows)


if __name__ == "__main__":
    main()
