"""Tables and figures of results: one module for each workflow, which registers itself by defining `RESULT`."""

from __future__ import annotations

import os
from pathlib import Path

import xarray as xr

from workflows.registry import defined_in
from workflows.results.result import Result

RESULTS: dict[str, Result] = {result.workflow: result for result in defined_in(__name__, __path__, "RESULT")}


def summary(result: xr.Dataset) -> str:
    """The table of a result, and whether it can be trusted."""
    lines = _kind(result).table(result)
    if not result.attrs["trusted"]:
        lines.append(f"NOT TO BE TRUSTED: {result.attrs['why']}")
    elif "phase" in result.dims:
        lines.append("both phases were sampled by every group of chains")
    else:
        lines.append("can be trusted")
    return "\n".join(lines)


def save_figure(result: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Draw the figure of a result into a file."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables import plot

    with plot.style():
        figure = _kind(result).figure(result)
    figure.savefig(path, dpi=160)
    plt.close(figure)
    return Path(path)


def _kind(result: xr.Dataset) -> Result:
    workflow = str(result.attrs["workflow"])
    if workflow not in RESULTS:
        raise ValueError(f"The result is of the workflow {workflow!r}; only {', '.join(sorted(RESULTS))} can be shown.")
    return RESULTS[workflow]
