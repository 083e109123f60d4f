"""Table and figure of finite-size scaling, of first and second order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from workflows.results.result import Result, band, measured
from workflows.scaling.first_order import multiplicity_term

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(result: xr.Dataset) -> list[str]:
    """What was measured at every size, and the fits."""
    coupling, first = result.attrs["coupling"], result.attrs["order"] == "first"
    columns = (
        [coupling, "barrier", "interface_tension", "latent_heat"]
        if first
        else ["crossing", "binder", "slope", "fluctuation"]
    )
    columns = [name for name in columns if name in result]
    lines = [f"finite-size scaling, {result.attrs['order']} order", ""]
    lines.append(f"  {'L':>4}" + "".join(f"{name.replace('_', ' '):>22}" for name in columns))
    for size in result["size"].values:
        lines.append(f"  {size:>4}" + "".join(f"{measured(result, name, size=size):>22}" for name in columns))
    fits = (
        [f"{coupling}_infinite", "interface_tension_infinite"]
        if first
        else [f"{coupling}_critical", "binder_critical", "nu", "gamma_over_nu"]
    )
    lines.append("")
    for name in fits:
        if name in result:
            quality = f"chi^2 = {float(result[f'{name}_chi2']):.2f} for {int(result[f'{name}_dof'])} degrees of freedom"
            smallest = int(result[f"{name}_smallest_size"])
            lines.append(f"  {name.replace('_', ' '):<30}{measured(result, name):<18}{quality}, L >= {smallest}")
    return [*lines, ""]


def figure(result: xr.Dataset) -> Figure:
    """The measured sizes and the fitted laws."""
    return _first_order(result) if result.attrs["order"] == "first" else _second_order(result)


def _first_order(result: xr.Dataset) -> Figure:
    """Coexistence points over the multiplicity term, and barriers over the area of the walls."""
    import matplotlib.pyplot as plt  # takes a second to import

    coupling = result.attrs["coupling"]
    drawing, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4))
    term = multiplicity_term(result).values
    order = np.argsort(term)
    left.errorbar(term, result[coupling], result[f"{coupling}_err"], fmt="o", markersize=4, capsize=2, label="measured")
    infinite, error = float(result[f"{coupling}_infinite"]), float(result[f"{coupling}_infinite_err"])
    line = np.array([0.0, *term[order]])
    band(left, line, infinite + line, np.full(len(line), error), label="infinite lattice + multiplicity term")
    for x, y, size in zip(term, result[coupling].values, result["size"].values, strict=True):
        left.annotate(f"L = {size}", (x, y), xytext=(6, -10), textcoords="offset points", fontsize=8)
    left.set(xlabel=r"$\log 2\,/\,|d \log \mathrm{odds} / dc|$", ylabel=f"{coupling} of equal weight")
    left.set_title(f"infinite lattice: {measured(result, f'{coupling}_infinite')}")
    left.legend(loc="upper left")
    if "interface_tension" in result:
        area = (result["barrier"] / result["interface_tension"]).values
        right.errorbar(area, result["barrier"], result["barrier_err"], fmt="o", markersize=4, capsize=2)
        right.set(
            xlabel="area of the walls (sites)", ylabel=f"barrier in P({result.attrs.get('phase_by', 'q')}) (nats)"
        )
        if "interface_tension_infinite" in result:
            slope = float(result["interface_tension_infinite"])
            offset = float(np.average(result["barrier"] - slope * area, weights=1 / result["barrier_err"].values ** 2))
            right.plot(area, offset + slope * area, linewidth=1)
            right.set_title(f"interface tension {measured(result, 'interface_tension_infinite')}")
    return drawing


def _second_order(result: xr.Dataset) -> Figure:
    """Binder cumulants around the critical point, and the power laws of the two exponents."""
    import matplotlib.pyplot as plt  # takes a second to import

    coupling = result.attrs["coupling"]
    drawing, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.3))
    axis = result[f"{coupling}_axis"].values
    for size in result["size"].values:
        row = result.sel(size=size)
        band(left, axis, row["binder_curve"].values, row["binder_curve_err"].values, label=f"L = {size}")
    left.axvline(float(result[f"{coupling}_critical"]), color="grey", linewidth=0.8, linestyle=":")
    left.set(xlabel=coupling, ylabel="Binder cumulant", title=f"critical: {measured(result, f'{coupling}_critical')}")
    left.legend()
    labels = {"slope": "slope of the Binder cumulant", "fluctuation": r"$V \langle m^2 \rangle$"}
    for ax, name, exponent, label in (
        (middle, "slope", 1 / float(result["nu"]), rf"$\nu$ = {measured(result, 'nu')}"),
        (
            right,
            "fluctuation",
            float(result["gamma_over_nu"]),
            rf"$\gamma/\nu$ = {measured(result, 'gamma_over_nu')}",
        ),
    ):
        sizes, y = result["size"].values.astype(float), np.abs(result[name].values)
        ax.errorbar(sizes, y, result[f"{name}_err"].values, fmt="o", markersize=4, capsize=2)
        middle_size = np.exp(np.log(sizes).mean())
        ax.plot(sizes, np.exp(np.log(y).mean()) * (sizes / middle_size) ** exponent, linewidth=1)
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="L",
            ylabel=labels[name],
            title=label,
        )
    return drawing


RESULT = Result("finite_size_scaling", table, figure)
