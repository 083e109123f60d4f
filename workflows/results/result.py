"""What a kind of result consists of, and what tables and figures share: numbers with errors, curves with bands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

if TYPE_CHECKING:  # matplotlib takes a second to import, and a table needs none of it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Result(NamedTuple):
    """How the result of one workflow is shown."""

    workflow: str
    """As in the attribute `workflow` of the result."""
    table: Callable[[xr.Dataset], list[str]]
    """The lines that the command prints."""
    figure: Callable[[xr.Dataset], Figure]
    """The figure, drawn from the result alone."""


def number(value: float, error: float) -> str:
    """A value with its error in the last digits: 2.29493(95)."""
    if not (np.isfinite(value) and np.isfinite(error)) or error <= 0:
        return f"{value:.6g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    shown = f"{error * 10**digits:.0f}" if digits else f"{error:.0f}"
    return f"{value:.{digits}f}({shown})"


def measured(result: xr.Dataset, name: str, **where: object) -> str:
    """A variable of a result with its error."""
    value, error = result[name], result[f"{name}_err"]
    return number(float(value.sel(where)), float(error.sel(where)))


def band(ax: Axes, x: np.ndarray, y: np.ndarray, error: np.ndarray, **style: object) -> None:
    """A curve with a band of one standard error on both sides."""
    (line,) = ax.plot(x, y, linewidth=1.2, **style)  # type: ignore[arg-type]
    ax.fill_between(x, y - error, y + error, color=line.get_color(), alpha=0.25, linewidth=0)
