"""Table and figure of a calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy import stats

from observables.numbers import number
from workflows.results.result import Result, heading, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(result: xr.Dataset) -> list[str]:
    """Mean and standard deviation of z of every quantity."""
    runs = result.sizes["run"]
    lines = [f"calibration of {heading(result)}: z-scores of {runs} runs, which should have mean 0 and sd 1", ""]
    head = ("mean of z", "sd of z", "KS p", "typical error", "reference")
    lines.append(f"  {'':<24}" + "".join(f"{word:>16}" for word in head))
    for name in result["quantity"].values:
        row = result.sel(quantity=name)
        known = bool(row["exactly_known"])
        mean = number(float(row["z_mean"]), float(row["z_mean_err"])) if known else "-"
        deviation = number(float(row["z_sd"]), float(row["z_sd_err"]))
        error = float(np.sqrt((row["error"] ** 2).mean()))
        reference = f"{float(row['reference']):.6g}" + ("" if known else " (mean)")
        cells = (mean, deviation, f"{float(row['p_value']):.3f}", f"{error:.3g}", reference)
        lines.append(f"  {name:<24}" + "".join(f"{cell:>16}" for cell in cells))
    return [*lines, ""]


def figure(result: xr.Dataset) -> Figure:
    """Sorted z over normal quantiles: on the diagonal if every error bar is right."""
    from observables.figure_style import panels

    names = result["quantity"].values
    drawing, axes = panels(len(names))
    count = result.sizes["run"]
    rank = np.arange(1, count + 1)
    expected = stats.norm.ppf((rank - 0.5) / count)
    # Of uniform ranks the k-th of n is a Beta variable: where 95% of right z would lie, one by one.
    low, high = (stats.norm.ppf(stats.beta.ppf(p, rank, count + 1 - rank)) for p in (0.025, 0.975))
    for ax, name in zip(axes, names, strict=True):
        ax.fill_between(expected, low, high, alpha=0.2, linewidth=0)
        ax.plot(expected, expected, linewidth=0.8)
        ax.plot(expected, np.sort(result["z"].sel(quantity=name).values), ".", markersize=3)
        ax.set(title=name, xlabel="normal quantile", ylabel="z")
    drawing.suptitle(f"{title(result)}: z-scores of {count} runs")
    return drawing


RESULT = Result("calibrate", table, figure)
