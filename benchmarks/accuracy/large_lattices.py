"""Coexistence points of phi^6 from both phases apart, from small to large lattices: the finite-size law, errors, and cost.

    python -m benchmarks.accuracy.large_lattices 8 12 16 24 40 64       minutes
    python -m benchmarks.accuracy.large_lattices 64 --seeds 8           error bars, from the scatter of seeds
    python -m benchmarks.accuracy.large_lattices 128 256                forty minutes
    python -m benchmarks.accuracy.large_lattices --table --figure docs/figures/large_lattices.png     what is kept

Every run is `workflows.coexistence(L, method="phases", error=...)`, or "crossing" for L <= 12, where the phases are not
metastable; it is kept in out/large_lattices, so that a script that was stopped goes on where it was.  With one ordered phase
of either sign the points follow

    mu2*(L) = mu2_inf + 2 log 2 / (V dq)

up to corrections that fall exponentially with L; the table ends with a fit to L >= 24 and its p-value, with the scatter of
the seeds of every size, and with the cost in processor time of 0.1 nats in the log odds, as a power of V.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import workflows
from benchmarks import harness

FOLDER = harness.OUT / "large_lattices"
ERRORS = {16: 3e-4, 24: 1e-4, 40: 6e-5, 64: 3e-5, 128: 1e-5, 256: 5e-6}  # of mu2, that are asked for
SMALLEST = 24  # from which on the law is fitted
CROSSED = 12  # up to which chains cross between the phases
NATS = 0.1
BRACKET = (2.27, 2.30)


def measure(L: int, seed: int) -> dict[str, Any]:
    """One point, from its file if it is there."""
    return harness.kept(FOLDER / f"L{L}_seed{seed}.json", lambda: point(L, seed))


def point(L: int, seed: int) -> dict[str, Any]:
    method = "crossing" if L <= CROSSED else "phases"
    found = workflows.coexistence(L=L, bracket=BRACKET, method=method, error=ERRORS.get(L), seed=seed, progress=False)
    row: dict[str, Any] = {"L": L, "seed": seed, "method": method, "trusted": int(found.trusted), "why": found.why}
    row |= {name: float(found[name]) for name in ("mu2", "mu2_err", "log_odds_slope")}
    row["log_odds_err"] = row["mu2_err"] * abs(row["log_odds_slope"])
    row["site_gradients"] = float(found.attrs["gradients"]) * L**2
    for phase in found["phase"].values:
        for name in ("log_z", "log_z_err", "q", "q_err"):
            row[f"{name}_{phase}"] = float(found[name].sel(phase=phase))
    return row


def law(row: dict[str, Any]) -> float:
    """mu2*(L) - mu2_inf"""
    return 2 * np.log(2) / (row["L"] ** 2 * (row["q_ordered"] - row["q_disordered"]))


def show(row: dict[str, Any], table: harness.Table) -> None:
    infinite = row["mu2"] - law(row)
    table.add(
        row["L"],
        row["seed"],
        row["mu2"],
        row["mu2_err"],
        infinite,
        row["log_z_disordered"],
        row["log_z_err_disordered"],
        row["log_odds_err"],
        row["site_gradients"],
        row["cpu_seconds"],
        note="" if row["trusted"] else row["why"],
    )


COLUMNS = {
    "L": "3d",
    "seed": "d",
    "mu2": ".6f",
    "error": ".1e",
    "moved to L = inf": ".6f",
    "log Z at mu2": ".3f",
    "error of it": ".3f",
    "nats": ".3f",
    "site-gradients": ".1e",
    "processor s": ".0f",
}


class Infinite(NamedTuple):
    """The infinite lattice from the points of L >= SMALLEST."""

    mu2: float
    error: float
    chi2: float
    dof: int

    @staticmethod
    def of(rows: list[dict[str, Any]]) -> Infinite:
        fitted = [row for row in rows if row["L"] >= SMALLEST]
        moved = np.array([row["mu2"] - law(row) for row in fitted])
        error = np.array([row["mu2_err"] for row in fitted])
        mean, width = float(np.average(moved, weights=error**-2)), float(np.sum(error**-2.0) ** -0.5)
        return Infinite(mean, width, float((((moved - mean) / error) ** 2).sum()), len(fitted) - 1)


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """mu2* over L with the law, and what is left of it when the law is taken out."""
    from observables import plot
    from observables.figure_style import COLOURS, panels

    infinite = Infinite.of(rows)
    size, error = np.array([row["L"] for row in rows], float), np.array([row["mu2_err"] for row in rows])
    above = np.array([row["mu2"] for row in rows]) - infinite.mu2
    expected = np.array([law(row) for row in rows])
    beside = size * np.exp(0.03 * np.array([row["seed"] for row in rows]))  # seeds next to each other
    look: Any = {"fmt": "o", "markersize": 3, "linewidth": 1, "color": COLOURS[0]}
    with plot.style():
        drawing, (left, right) = panels(2)
        left.errorbar(size, above, error, **look)
        order = np.argsort(size)
        left.plot(size[order], expected[order], color=COLOURS[1], label=r"$2 \log 2 / (V \Delta q)$")
        left.set(xscale="log", yscale="log", xlabel="$L$", ylabel=r"$\mu^2_*(L) - \mu^2_\infty$")
        left.legend()
        right.errorbar(beside, (above - expected) / error, 1.0, **look)
        right.axhline(0.0, color=COLOURS[1])
        right.set(xscale="log", xlabel="$L$", ylabel="distance from the law (errors)")
        for ax in (left, right):
            ax.set_xticks(2.0 ** np.arange(3, 9), [f"{2**n}" for n in range(3, 9)])
            ax.minorticks_off()
        drawing.suptitle(rf"$\phi^6$, infinite lattice $\mu^2 = {infinite.mu2:.7f} \pm {infinite.error:.7f}$")
        drawing.savefig(path)


def summary(rows: list[dict[str, Any]]) -> None:
    """Scatter of seeds, the law, and the cost."""
    sizes = sorted({row["L"] for row in rows})
    for L in sizes:
        some = [row for row in rows if row["L"] == L]
        if len(some) > 1:
            value, error = (np.array([row[name] for row in some]) for name in ("mu2", "mu2_err"))
            mean = np.average(value, weights=error**-2)
            chi2 = float((((value - mean) / error) ** 2).sum())
            p = stats.chi2.sf(chi2, len(some) - 1)
            print(
                f"L = {L}, {len(some)} seeds: mean {mean:.6f} +- {np.sum(error**-2.0) ** -0.5:.1e}, sum of z^2 {chi2:.1f} "
                f"for {len(some) - 1} (p = {p:.2f})"
            )
    if len({row["L"] for row in rows if row["L"] >= SMALLEST}) > 1:
        mean, error, chi2, dof = Infinite.of(rows)
        print(
            f"law, L >= {SMALLEST}: mu2_inf = {mean:.7f} +- {error:.1e}, chi^2 {chi2:.1f} for {dof} "
            f"(p = {stats.chi2.sf(chi2, dof):.2f})"
        )
    rows = [row for row in rows if row["L"] > CROSSED]
    sizes = sorted({row["L"] for row in rows})
    if len(sizes) > 1:
        volume = np.array([row["L"] ** 2 for row in rows], float)
        to_nats = np.array([row["cpu_seconds"] * (row["log_odds_err"] / NATS) ** 2 for row in rows])
        to_mu2 = np.array([row["cpu_seconds"] * (row["mu2_err"] / 1e-5) ** 2 for row in rows])
        gradients = np.array([row["site_gradients"] * (row["log_odds_err"] / NATS) ** 2 for row in rows])
        for name, cost in (
            (f"processor time to {NATS} nats of log odds", to_nats),
            (f"site-gradients to {NATS} nats of log odds", gradients),
            ("processor time to 1e-5 of mu2", to_mu2),
        ):
            fit = stats.linregress(np.log(volume), np.log(cost))
            means = ", ".join(f"L = {L}: {np.exp(np.log(cost[volume == L**2]).mean()):.3g}" for L in sizes)
            print(f"{name} grows as V^{fit.slope:.2f}({100 * fit.stderr:.0f}); {means}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("L", type=int, nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="run nothing; show what is kept")
    parser.add_argument("--figure", metavar="FILE", help="draw the points and their distance from the law")
    chosen = parser.parse_args(arguments)
    table = harness.Table(COLUMNS)
    if chosen.table:
        rows = [json.loads(path.read_text()) for path in FOLDER.glob("L*.json")]
        rows.sort(key=lambda row: (row["L"], row["seed"]))
        for row in rows:
            show(row, table)
    else:
        rows = []
        for L in chosen.L:
            for seed in range(chosen.first, chosen.first + chosen.seeds):
                rows.append(measure(L, seed))
                show(rows[-1], table)
    summary(rows)
    if chosen.figure:
        draw(rows, chosen.figure)


if __name__ == "__main__":
    main()
