"""How does a result look?  One figure for each workflow, drawn from its dataset alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from observables import plot
from workflows.results.tables import measured
from workflows.scaling.finite_size import multiplicity_term


def draw(result: xr.Dataset) -> Figure:
    """The figure of a result."""
    with plot.style():
        return FIGURES[str(result.attrs["workflow"])](result)


def save_figure(result: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    figure = draw(result)
    figure.savefig(path, dpi=160)
    plt.close(figure)
    return Path(path)


def _band(ax: plt.Axes, x: np.ndarray, y: np.ndarray, error: np.ndarray, **style: object) -> None:
    (line,) = ax.plot(x, y, linewidth=1.2, **style)  # type: ignore[arg-type]
    ax.fill_between(x, y - error, y + error, color=line.get_color(), alpha=0.25, linewidth=0)


def _coexistence(result: xr.Dataset) -> Figure:
    coupling, by = result.attrs["coupling"], result.attrs["phase_by"]
    names = [by, *(["m"] if "p_m" in result and by != "m" else [])]
    figure, axes = plt.subplots(1, len(names) + 1, figsize=(3.6 * (len(names) + 1), 3.1))
    for ax, name in zip(axes, names, strict=False):
        axis, p, error = result[f"{name}_axis"], result[f"p_{name}"], result[f"p_{name}_err"]
        _band(ax, axis.values, p.values, error.values)
        ax.set(xlabel=f"${name}$", ylabel=f"$P({name})$", yscale="log", ylim=(float(p.where(p > 0).min()) / 2, None))
    axes[0].axvline(float(result.attrs["phase_cut"]), color="grey", linewidth=0.8, linestyle=":")
    _band(axes[-1], result["energy_axis"].values, result["log_p_energy"].values, result["log_p_energy_err"].values)
    axes[-1].set(xlabel="energy $U$", ylabel=r"$\log P(U)$")
    figure.suptitle(f"{result.attrs['problem']}: coexistence at {coupling} = {measured(result, coupling)}")
    return figure


def _scaling(result: xr.Dataset) -> Figure:
    return _first_order(result) if result.attrs["order"] == "first" else _second_order(result)


def _first_order(result: xr.Dataset) -> Figure:
    coupling = result.attrs["coupling"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4))
    term = multiplicity_term(result).values
    order = np.argsort(term)
    left.errorbar(term, result[coupling], result[f"{coupling}_err"], fmt="o", markersize=4, capsize=2, label="measured")
    infinite, error = float(result[f"{coupling}_infinite"]), float(result[f"{coupling}_infinite_err"])
    line = np.array([0.0, *term[order]])
    _band(left, line, infinite + line, np.full(len(line), error), label="infinite lattice + multiplicity term")
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
    return figure


def _second_order(result: xr.Dataset) -> Figure:
    coupling = result.attrs["coupling"]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.4, 3.3))
    axis = result[f"{coupling}_axis"].values
    for size in result["size"].values:
        row = result.sel(size=size)
        _band(left, axis, row["binder_curve"].values, row["binder_curve_err"].values, label=f"L = {size}")
    left.axvline(float(result[f"{coupling}_critical"]), color="grey", linewidth=0.8, linestyle=":")
    left.set(xlabel=coupling, ylabel="Binder cumulant", title=f"critical: {measured(result, f'{coupling}_critical')}")
    left.legend()
    words = {"slope": "slope of the Binder cumulant", "fluctuation": r"$V \langle m^2 \rangle$"}
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
            ylabel=words[name],
            title=label,
        )
    return figure


def _partition_function(result: xr.Dataset) -> Figure:
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.1))
    for ax, name, label in zip(
        axes, ("log_z", "energy", "heat_capacity"), (r"$\log Z$", r"$\langle U \rangle$", "$C$"), strict=True
    ):
        _band(ax, result["beta"].values, result[name].values, result[f"{name}_err"].values)
        ax.set(xlabel=r"$\beta$", ylabel=label)
    figure.suptitle(f"{result.attrs['problem']}: from one ladder")
    return figure


FIGURES: dict[str, Callable[[xr.Dataset], Figure]] = {
    "coexistence": _coexistence,
    "finite_size_scaling": _scaling,
    "partition_function": _partition_function,
}
