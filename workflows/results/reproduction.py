"""Table and figure of a reproduction of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import xarray as xr

from workflows.reproduction import experiments
from workflows.results.result import Result, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIGNIFICANT_DIGITS = 4  # of numbers without an error


def table(result: xr.Dataset) -> list[str]:
    """One line for each number: the paper's, ours, the exact one, and the deviations in combined errors."""
    experiment = experiments()[result.attrs["experiment"]]
    lines = [
        f"{experiment.name} ({experiment.label} of the paper) at effort {result.attrs['effort']}",
        experiment.shows,
    ]
    head = ("paper", "ours", "z", "exact", "z exact", "gradients")
    texts = [
        [str(result[name].values[row]) for name in ("case", "method", "quantity")] for row in range(result.sizes["row"])
    ]
    widths = [max(len(line[column]) for line in [*texts, ["case", "method", "quantity"]]) for column in range(3)]
    sizes = (14, 16, 7, 10, 9, 11)
    names = "  ".join(word.ljust(width) for word, width in zip(("case", "method", "quantity"), widths, strict=True))
    lines += ["", f"  {names}" + "".join(f"{word:>{size}}" for word, size in zip(head, sizes, strict=True))]
    for row, text in enumerate(texts):
        at = {
            name: float(result[name].values[row])
            for name in result.data_vars
            if result[name].dims == ("row",) and name not in ("case", "method", "quantity")
        }
        cells = (
            _shown(at["paper"], at["paper_err"]),
            _shown(at["ours"], at["ours_err"]),
            _deviation(at["deviation"]),
            _shown(at["exact"], math.nan),
            _deviation(at["deviation_exact"]),
            f"{at['gradients']:.1e}" if math.isfinite(at["gradients"]) else "",
        )
        names = "  ".join(word.ljust(width) for word, width in zip(text, widths, strict=True))
        lines.append(f"  {names}" + "".join(f"{cell:>{size}}" for cell, size in zip(cells, sizes, strict=True)))
    lines += ["", "z: deviation from the printed value in combined errors; z exact: from the exact one"]
    if note := result.attrs.get("note"):
        lines.append(str(note))
    return [*lines, ""]


def figure(result: xr.Dataset) -> Figure:
    """The figure of the experiment."""
    return experiments()[result.attrs["experiment"]].figure(result)


def _shown(value: float, error: float) -> str:
    if not math.isfinite(value):
        return ""
    return number(value, error) if math.isfinite(error) else f"{value:.{SIGNIFICANT_DIGITS}g}"


def _deviation(z: float) -> str:
    return f"{z:+.1f}" if math.isfinite(z) else ""


RESULT = Result("reproduce", table, figure)
