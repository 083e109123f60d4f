"""Interface tension of phi^6 from two geometries, lattices twice and four times as long as wide.

    python -m benchmarks.accuracy.interface_tension --figure docs/figures/interface_tension.png       twenty minutes

Two runs of `workflows.finite_size_scaling(aspect=...)`, kept in out/interface_tension.  The plateau of -log P(q) without its
known terms (`observables.mixed_states`) is a straight line over the area of the walls, with the same slope and the same
constant for both geometries, as long as the two walls stand apart and there are not more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

import workflows
from benchmarks import harness
from workflows.scaling.fits import Fit, least_squares

FOLDER = harness.OUT / "interface_tension"
SIZES = {2: [12, 16, 20, 24, 28], 4: [8, 12, 16, 20]}
BRACKET = (2.27, 2.32)


class Plateaus(NamedTuple):
    """The points of one geometry, and which of them its fit used."""

    area: np.ndarray
    value: np.ndarray
    error: np.ndarray
    used: np.ndarray

    @staticmethod
    def of(found: xr.Dataset) -> Plateaus:
        used = found["size"].values >= int(found["interface_tension_infinite_smallest_size"])
        value = (found["plateau"] - found["wall_term"]).values
        flat = np.isfinite(found["interface_tension"].values)
        return Plateaus(found["wall_area"].values, value, found["plateau_err"].values, used & flat)


def line(points: Sequence[Plateaus]) -> Fit:
    """One line through all points that are used."""
    area, value, error = (
        np.concatenate([getattr(one, name)[one.used] for one in points]) for name in ("area", "value", "error")
    )
    return least_squares(np.stack([area, np.ones(len(area))], axis=1), value, error)


def draw(points: dict[int, Plateaus], fit: Fit, path: str) -> None:
    """All points, and what is left of them without the line."""
    from observables import plot
    from observables.figure_style import COLOURS, panels

    with plot.style():
        drawing, (left, right) = panels(2)
        for number, (aspect, some) in enumerate(points.items()):
            for used, face in ((some.used, None), (~some.used, "white")):
                look = {"fmt": "os"[number], "markersize": 4, "color": COLOURS[2 * number], "markerfacecolor": face}
                label = rf"$L \times {aspect}L$" if face is None else None
                left.errorbar(some.area[used], some.value[used], some.error[used], label=label, **look)
                rest = some.value - fit.value[0] * some.area - fit.value[1]
                right.errorbar(some.area[used] + 0.4 * number, rest[used], some.error[used], **look)
        ends = np.array([15.0, 60.0])
        label = rf"$\sigma = {fit.value[0]:.4f} \pm {fit.error[0]:.4f}$"
        left.plot(ends, fit.value[0] * ends + fit.value[1], color=COLOURS[1], label=label)
        right.axhline(0.0, color=COLOURS[1])
        left.set(xlabel="area of two walls (sites)", ylabel=r"reduced plateau of $-\log P(q)$")
        right.set(xlabel="area of two walls (sites)", ylabel="distance from the line (nats)")
        left.legend()
        drawing.savefig(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--figure", metavar="FILE", help="draw the plateaus and their distance from the line")
    chosen = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    points = {}
    table = harness.Table(
        {"lattices": "8s", "L": "3d", "plateau": ".3f", "error": ".3f", "bend": "+.3f", "error of it": ".3f"}
    )
    for aspect, sizes in SIZES.items():
        out = FOLDER / f"aspect{aspect}.nc"
        found = workflows.finite_size_scaling(sizes, BRACKET, aspect=aspect, out=out, overwrite=True, progress=False)
        points[aspect] = some = Plateaus.of(found)
        for row, L in enumerate(sizes):
            bend = (float(found[f"plateau_bend{end}"][row]) for end in ("", "_err"))
            note = "" if some.used[row] else "not in the fit"
            table.add(f"L x {aspect} L", L, some.value[row], some.error[row], *bend, note=note)
    for words, some in (*((f"L x {aspect} L", [one]) for aspect, one in points.items()), ("both", list(points.values()))):
        fit = line(some)
        print(
            f"{words}: sigma = {fit.value[0]:.4f} +- {fit.error[0]:.4f}, constant {fit.value[1]:.2f} +- {fit.error[1]:.2f}, "
            f"chi^2 {fit.chi2:.1f} for {fit.dof} (p = {fit.p_value:.2f})"
        )
    if chosen.figure:
        draw(points, fit, chosen.figure)


if __name__ == "__main__":
    main()
