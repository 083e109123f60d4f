"""Table and figure of a phase diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from observables.numbers import number
from workflows.results.result import Result, heading, measured, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POWER = 4  # of a jump, which vanishes linearly


def table(result: xr.Dataset) -> list[str]:
    """Coexistence points, what canonical chains found, and the tricritical point on both ways."""
    lines = [f"phase diagram of {heading(result)}", "", *_first_order(result), "", *_canonical(result), ""]
    for name, words in (
        ("lam_jumps", "lam, jumps vanish"),
        ("lam_sizes", "lam, sizes agree"),
    ):
        quality = f"chi^2 = {float(result[f'{name}_chi2']):.2f} for {int(result[f'{name}_dof'])} degrees of freedom"
        lines.append(f"  {words:<34}{measured(result, name):<18}{quality}")
    lines.append(f"  {'distance (errors)':<34}{float(result['distance']):.1f}")
    for name, words in (
        ("lam_tricritical", "lam, tricritical"),
        ("mu2_tricritical", "mu2, tricritical"),
        ("gamma_over_nu_tricritical", "gamma/nu there (37/20)"),
        ("inverse_nu_tricritical", "1/nu there (9/5)"),
    ):
        lines.append(f"  {words:<34}{measured(result, name)}")
    return [*lines, ""]


def _first_order(result: xr.Dataset) -> list[str]:
    names = ("mu2_coexistence", "jump_q", "jump_energy")
    heads = ("mu2, coexistence", "jump of q", "latent heat/V")
    return _rows(result, "first_order", names, heads)


def _canonical(result: xr.Dataset) -> list[str]:
    small, large = result["size"].values[-2:]
    largest = result.isel(size=-1)
    names = ("mu2_crossing", "binder", "gamma_over_nu", "inverse_nu")
    heads = (f"mu2, L = {small} and {large}", f"Binder, L = {large}", "gamma/nu", "1/nu")
    return _rows(largest, "lam", names, heads)


def _rows(result: xr.Dataset, over: str, names: tuple[str, ...], heads: tuple[str, ...]) -> list[str]:
    lines = [f"  {'lam':>8}" + "".join(f"{head:>20}" for head in heads)]
    for i, lam in enumerate(result[over].values):
        here = result.isel({over: i})
        cells = [measured(here, name) if np.isfinite(here[f"{name}_err"]) else "-" for name in names]
        lines.append(f"  {lam:>8.4g}" + "".join(f"{cell:>20}" for cell in cells))
    return lines


def figure(result: xr.Dataset) -> Figure:
    """The lines in the plane of both couplings, the jumps that vanish, and the cumulants that agree."""
    from observables.figure_style import panels

    drawing, axes = panels(3)
    _plane(axes[0], result)
    _jumps(axes[1], result)
    _cumulants(axes[2], result)
    drawing.suptitle(f"{title(result)}: tricritical at $\\lambda = ${measured(result, 'lam_tricritical')}")
    return drawing


def _plane(ax: Axes, result: xr.Dataset) -> None:
    """mu2 over lam: coexistence points below the tricritical coupling, critical points above it."""
    from observables.figure_style import COLOURS

    lam_t, mu2_t = float(result["lam_tricritical"]), float(result["mu2_tricritical"])
    look: Any = {"markersize": 4, "linewidth": 1}
    first, second = result["first_order"].values, result["lam"].values
    above = (second > lam_t) & np.isfinite(result["mu2_crossing"].values)
    bridged = result["bridged"].values.astype(bool)
    mu2 = result["mu2_coexistence"].values
    ax.plot([*first, lam_t], [*mu2, mu2_t], "-", color=COLOURS[0], linewidth=1, label="first order")
    ax.plot(first[bridged], mu2[bridged], "o", color=COLOURS[0], label="by bridges", **look)
    ax.plot(first[~bridged], mu2[~bridged], "o", color=COLOURS[0], markerfacecolor="white", label="by chains", **look)
    line = [lam_t, *second[above]], [mu2_t, *result["mu2_crossing"].values[above]]
    ax.plot(*line, "s--", color=COLOURS[1], markerfacecolor="white", label="critical", **look)
    ax.plot([lam_t], [mu2_t], "*", color="black", markersize=10, label="tricritical")
    ax.text(0.08, 0.12, "ordered", transform=ax.transAxes)
    ax.text(0.62, 0.42, "disordered", transform=ax.transAxes)
    ax.set(xlabel=r"$\lambda$", ylabel=r"$\mu^2$")
    ax.legend(loc="upper right")


def _jumps(ax: Axes, result: xr.Dataset) -> None:
    """Fourth powers of both jumps, each over its largest value."""
    from observables.figure_style import COLOURS

    lam = result["first_order"].values
    for name, label, colour in (("jump_q", "jump of $q$", COLOURS[0]), ("jump_energy", "latent heat", COLOURS[1])):
        value, error = result[name].values, result[f"{name}_err"].values
        y = (value / value.max()) ** POWER
        ax.errorbar(lam, y, POWER * y * error / value, fmt="o-", linewidth=0.8, markersize=4, color=colour, label=label)
    _answer(ax, result, "lam_jumps")
    ax.axhline(0.0, color="grey", linewidth=0.8)
    ax.set(xlabel=r"$\lambda$", ylabel="(jump / largest)$^4$")
    ax.legend(loc="upper right")


def _cumulants(ax: Axes, result: xr.Dataset) -> None:
    """Binder cumulants where xi/L = 1."""
    lam = result["lam"].values
    for size in result["size"].values:
        row = result.sel(size=size)
        ax.errorbar(lam, row["binder"].values, row["binder_err"].values, fmt=".-", linewidth=0.8, label=f"$L = {size}$")
    _answer(ax, result, "lam_sizes")
    ax.set(xlabel=r"$\lambda$", ylabel=r"Binder cumulant where $\xi/L = 1$")
    ax.legend(loc="lower right")


def _answer(ax: Axes, result: xr.Dataset, name: str) -> None:
    """The tricritical coupling of one way, as a band of one error on either side."""
    value, error = float(result[name]), float(result[f"{name}_err"])
    ax.axvspan(value - error, value + error, color="grey", alpha=0.3, label=rf"$\lambda_t = ${number(value, error)}")


RESULT = Result("phase_diagram", table, figure)
