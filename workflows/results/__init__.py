"""Tables and figures of results: one module for each workflow, which registers itself by defining `RESULT`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

from workflows.registry import defined_in
from workflows.results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS: dict[str, Result] = {result.workflow: result for result in defined_in(__name__, __path__, "RESULT")}


def summary(result: xr.Dataset) -> str:
    """The table of a result, and whether it can be trusted."""
    lines = _kind(result).table(result)
    if not result.attrs["trusted"]:
        lines.append(f"NOT TO BE TRUSTED: {result.attrs['why']}")
    elif result.attrs.get("method") == "phases":
        lines.append("each phase was sampled from its own side, and no chain left it")
    elif "phase" in result.dims:
        lines.append("both phases were sampled by every group of chains")
    else:
        lines.append("can be trusted")
    return "\n".join(lines)


def draw(result: xr.Dataset, style: str | None = None) -> Figure:
    """The figure of a result, marked if the result is not to be trusted."""
    from observables import figure_style  # matplotlib takes a second to import

    with figure_style.style(style):
        figure = _kind(result).figure(result)
        figure_style.mark_doubt(figure, bool(result.attrs["trusted"]))
    return figure


def save_figure(result: xr.Dataset, path: str | os.PathLike[str], style: str | None = None) -> Path:
    """Draw the figure of a result into a file."""
    import matplotlib.pyplot as plt

    from observables import figure_style

    with figure_style.style(style):
        figure = draw(result)
        figure.savefig(path, edgecolor=figure.get_edgecolor())
    plt.close(figure)
    return Path(path)


def _kind(result: xr.Dataset) -> Result:
    workflow = str(result.attrs["workflow"])
    if workflow not in RESULTS:
        raise ValueError(f"The result is of the workflow {workflow!r}; only {', '.join(sorted(RESULTS))} can be shown.")
    return RESULTS[workflow]
