"""`result.quenchphys`: a result shows itself, though it is a plain dataset of xarray."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from observables.headings import heading_of
from observables.presentation import card, sparkline
from quenchphys.storage.atomic_files import write_whole
from workflows.results import draw, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@xr.register_dataset_accessor("quenchphys")
class Shown:
    """What a result of a workflow can show: a card in a notebook, its table, its figure, its page.

    Parameters
    ----------
    result
        A result of a workflow, as it was returned or read by `load_result`.

    Examples
    --------
    >>> point = workflows.coexistence(L=8, bracket=(2.25, 2.33))
    >>> point.quenchphys                    # a card, in a notebook
    >>> print(point.quenchphys.report())
    >>> point.quenchphys.plot(style="one-column").savefig("point.pdf")
    >>> point.quenchphys.save_report("point.html")
    """

    def __init__(self, result: xr.Dataset):
        self._result = result

    def report(self) -> str:
        """The table, and whether to trust it."""
        return summary(self._result)

    def plot(self, style: str | None = None) -> Figure:
        """The figure; style as in `observables.plot.style`."""
        return draw(self._result, style)

    def save_report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the report as one HTML page."""
        from workflows.report.contents import page_of

        text = page_of(self._result)
        return write_whole(path, lambda part: part.write_text(text, encoding="utf-8"), overwrite=overwrite)

    def __repr__(self) -> str:
        return self.report()

    def _repr_html_(self) -> str:
        result = self._result
        trusted = bool(result.attrs["trusted"])
        rows = [("outcome", "can be trusted" if trusted else f"NOT TO BE TRUSTED: {result.attrs['why']}")]
        rows += [_row(line) for line in summary(result).splitlines()[1:-1] if line.strip()]
        title = f"{str(result.attrs['workflow']).replace('_', ' ').capitalize()} of {heading_of(result.attrs)}"
        return card(title, rows, trusted, _curve(result))


def _row(line: str) -> tuple[str, str]:
    """A line of a table as a name and the rest."""
    name, _, rest = line.strip().partition("  ")
    return name, rest


def _curve(result: xr.Dataset) -> str:
    """log P(E) of a coexistence point, C of a curve over temperature; else nothing."""
    if "log_p_energy" in result:
        log_p = result["log_p_energy"].values
        return sparkline(result["energy_axis"], np.where(log_p > np.nanmax(log_p) - 15, log_p, np.nan), "log P(E)")
    for name, axis in (("heat_capacity_curve", "beta_curve"), ("heat_capacity", "beta")):
        if name in result and axis in result.dims:
            return sparkline(result[axis], result[name], "heat capacity")
    return ""
