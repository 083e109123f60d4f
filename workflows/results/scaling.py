"""Table and figure of finite-size scaling, of first and second order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from workflows.results.result import Result, heading, measured, title
from workflows.scaling.first_order import multiplicity_term

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def table(result: xr.Dataset) -> list[str]:
    """What was measured at every size, and the fits."""
    coupling, first = result.attrs["coupling"], result.attrs["order"] == "first"
    columns = (
        [coupling, "barrier", "interface_tension", "latent_heat"]
        if first
        else ["crossing", "crossing_xi", "binder", "slope", "fluctuation", "tau_m2"]
    )
    columns = [name for name in columns if name in result]
    lines = [f"finite-size scaling, {result.attrs['order']} order: {heading(result)}", ""]
    elongated = f"L x {result.attrs['aspect']} L" if result.attrs.get("aspect", 1) != 1 else "L"
    lines.append(f"  {elongated:>4}" + "".join(f"{name.replace('_', ' '):>22}" for name in columns)[len(elongated) - 1 :])
    for size in result["size"].values:
        here = result.sel(size=size)
        cells = [measured(here, name) if np.isfinite(here[name]) else "-" for name in columns]
        lines.append(f"  {size:>4}" + "".join(f"{cell:>22}" for cell in cells))
    fits = (
        [f"{coupling}_infinite", "interface_tension_infinite"]
        if first
        else [f"{coupling}_critical", "binder_critical", "xi_over_L_critical", "nu", "gamma_over_nu"]
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
    """Coexistence points over the multiplicity term, and plateaus of P(q) over the area of the walls."""
    from observables.figure_style import COLOURS, band, panels, symbol

    coupling = result.attrs["coupling"]
    sizes = result["size"].values
    drawing, axes = panels(2 if "interface_tension" in result else 1)
    left, term = axes[0], multiplicity_term(result).values
    _points(left, term, result, coupling, sizes, f"{coupling}_infinite")
    infinite, error = float(result[f"{coupling}_infinite"]), float(result[f"{coupling}_infinite_err"])
    line = np.array([0.0, *np.sort(term)])
    bare = symbol(coupling).strip("$")
    band(left, line, infinite + line, np.full(len(line), error), color=COLOURS[1], label="$L = \\infty$ + multiplicity term")
    for x, y, size in zip(term, result[coupling].values, sizes, strict=True):
        # The outermost point has no room on its right.
        place: Any = {"xytext": (-6, -9), "ha": "right"} if x == term.max() else {"xytext": (6, -9)}
        left.annotate(f"$L = {size}$", (x, y), textcoords="offset points", fontsize="small", **place)
    left.locator_params(axis="x", nbins=5)  # numbers such as 0.0125 are wide
    left.set_xlabel(rf"$\log 2\,/\,|\partial_{{{bare}}} \log\,\mathrm{{odds}}|$")
    left.set_ylabel(f"{symbol(coupling)} of equal weight")
    left.legend(loc="upper left")
    if len(axes) > 1:
        _plateaus(axes[1], result, sizes)
    found = f"{symbol(coupling)}$\\, = ${measured(result, f'{coupling}_infinite')}"
    drawing.suptitle(f"{title(result)}: infinite lattice {found}")
    return drawing


def _plateaus(ax: Axes, result: xr.Dataset, sizes: np.ndarray) -> None:
    """The free energy of two phases side by side, and the line whose slope is the tension."""
    from observables.figure_style import COLOURS, symbol

    known = np.isfinite(result["interface_tension"].values)  # sizes with walls that stand apart
    result, sizes = result.isel(size=known), sizes[known]
    area, plateau = result["wall_area"].values, (result["plateau"] - result["wall_term"]).values
    _points(ax, area, result.assign(plateau=("size", plateau)), "plateau", sizes, "interface_tension_infinite")
    by = symbol(result.attrs.get("phase_by", "q")).strip("$")
    ax.set(xlabel="area of two walls (sites)", ylabel=f"reduced plateau of $-\\log P({by})$")
    if "interface_tension_infinite" in result:
        slope = float(result["interface_tension_infinite"])
        used = sizes >= int(result["interface_tension_infinite_smallest_size"])
        weights = 1 / result["plateau_err"].values[used] ** 2
        offset = float(np.average((plateau - slope * area)[used], weights=weights))
        label = rf"$\sigma = ${measured(result, 'interface_tension_infinite')}"
        ax.plot(area, offset + slope * area, color=COLOURS[1], linewidth=1, label=label)
        ax.legend(loc="upper left")


def _second_order(result: xr.Dataset) -> Figure:
    """Binder cumulants around the critical point, their collapse, and the power laws of the two exponents."""
    from matplotlib.ticker import LogLocator

    from observables.figure_style import COLOURS, band, label_line, panels, symbol

    coupling = result.attrs["coupling"]
    drawing, (left, collapse, *others) = panels(4)
    axis = result[f"{coupling}_axis"].values
    for size in result["size"].values:
        row = result.sel(size=size)
        band(left, axis, row["binder_curve"].values, row["binder_curve_err"].values, label=f"$L = {size}$")
    label_line(left, float(result[f"{coupling}_critical"]), "critical")
    left.set(xlabel=symbol(coupling), ylabel="Binder cumulant")
    left.legend()
    critical, nu = float(result[f"{coupling}_critical"]), float(result["nu"])
    for size in result["size"].values:
        row = result.sel(size=size)
        collapse.plot((axis - critical) * float(size) ** (1 / nu), row["binder_curve"].values, marker=".", linewidth=0.8)
    bare = symbol(coupling).strip("$")
    collapse.set(xlabel=rf"$({bare} - {bare}_c)\, L^{{1/\nu}}$", ylabel="Binder cumulant")
    laws = (
        ("slope", "nu", 1 / float(result["nu"]), r"\nu", "slope of the Binder cumulant"),
        ("fluctuation", "gamma_over_nu", float(result["gamma_over_nu"]), r"\gamma/\nu", r"$V \langle m^2 \rangle$"),
    )
    for ax, (name, exponent, power, letter, label) in zip(others, laws, strict=True):
        sizes, y = result["size"].values.astype(float), np.abs(result[name].values)
        used = sizes >= int(result[f"{exponent}_smallest_size"])
        _points(ax, sizes, result, name, result["size"].values, exponent)
        middle = np.exp(np.log(sizes[used]).mean())
        law = np.exp(np.log(y[used]).mean()) * (sizes / middle) ** power
        ax.plot(sizes, law, color=COLOURS[1], linewidth=1, label=f"${letter} = ${measured(result, exponent)}")
        ax.set(xscale="log", yscale="log", xlabel="$L$", ylabel=label)
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))  # powers of ten alone may leave a single tick
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.minorticks_off()
        ax.legend()
    found = f"{symbol(coupling)}$\\, = ${measured(result, f'{coupling}_critical')}"
    drawing.suptitle(f"{title(result)}: critical at {found}")
    return drawing


def _points(ax: Axes, x: np.ndarray, result: xr.Dataset, name: str, sizes: np.ndarray, fit: str) -> None:
    """Points with errors; hollow where a size took no part in the fit."""
    from observables.figure_style import COLOURS

    smallest = int(result[f"{fit}_smallest_size"]) if f"{fit}_smallest_size" in result else 0
    y, error = np.abs(result[name].values) if name == "slope" else result[name].values, result[f"{name}_err"].values
    look: Any = {"fmt": "o", "markersize": 4, "capsize": 2, "color": COLOURS[0]}
    for used, face, label in ((sizes >= smallest, COLOURS[0], None), (sizes < smallest, "white", "not in the fit")):
        if used.any():
            ax.errorbar(x[used], y[used], error[used], markerfacecolor=face, label=label, **look)


RESULT = Result("finite_size_scaling", table, figure)
