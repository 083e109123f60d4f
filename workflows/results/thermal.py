"""Table and figure of Z(beta)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from workflows.results.result import Result, band, measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(result: xr.Dataset) -> list[str]:
    """Thermodynamics at a few of the temperatures."""
    names = ["log_z", "energy", "heat_capacity", "free_energy"]
    lines = [f"partition function of {result.attrs['problem']}", ""]
    lines.append(f"  {'beta':>8}" + "".join(f"{name.replace('_', ' '):>20}" for name in names))
    betas = result["beta"].values
    for beta in betas[np.unique(np.linspace(0, len(betas) - 1, 13).round().astype(int))]:
        lines.append(f"  {beta:>8.4g}" + "".join(f"{measured(result, name, beta=beta):>20}" for name in names))
    return [*lines, ""]


def figure(result: xr.Dataset) -> Figure:
    """log Z, mean energy and heat capacity over beta."""
    import matplotlib.pyplot as plt  # takes a second to import

    drawing, axes = plt.subplots(1, 3, figsize=(11.0, 3.1))
    for ax, name, label in zip(
        axes, ("log_z", "energy", "heat_capacity"), (r"$\log Z$", r"$\langle U \rangle$", "$C$"), strict=True
    ):
        band(ax, result["beta"].values, result[name].values, result[f"{name}_err"].values)
        ax.set(xlabel=r"$\beta$", ylabel=label)
    drawing.suptitle(f"{result.attrs['problem']}: from one ladder")
    return drawing


RESULT = Result("partition_function", table, figure)
