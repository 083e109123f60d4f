"""Table and figure of Z(beta)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from workflows.results.result import Result, heading, measured, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(result: xr.Dataset) -> list[str]:
    """Thermodynamics at a few of the temperatures."""
    names = ["log_z", "energy", "heat_capacity", "free_energy"]
    lines = [f"partition function of {heading(result)}", ""]
    lines.append(f"  {'beta':>8}" + "".join(f"{name.replace('_', ' '):>20}" for name in names))
    betas = result["beta"].values
    for beta in betas[np.unique(np.linspace(0, len(betas) - 1, 13).round().astype(int))]:
        lines.append(f"  {beta:>8.4g}" + "".join(f"{measured(result, name, beta=beta):>20}" for name in names))
    return [*lines, ""]


def figure(result: xr.Dataset) -> Figure:
    """log Z, mean energy and heat capacity over beta; on the refined grid of temperatures where there is one."""
    from observables.figure_style import band, panels

    refined = "beta_curve" in result.dims
    end, axis = ("_curve", "beta_curve") if refined else ("", "beta")
    drawing, axes = panels(3)
    for ax, name, label in zip(
        axes, ("log_z", "energy", "heat_capacity"), (r"$\log\,Z$", r"$\langle U \rangle$", "heat capacity $C$"), strict=True
    ):
        band(ax, result[axis].values, result[f"{name}{end}"].values, result[f"{name}{end}_err"].values)
        ax.set(xlabel=r"inverse temperature $\beta$", ylabel=label)
    drawing.suptitle(title(result))
    return drawing


RESULT = Result("partition_function", table, figure)
