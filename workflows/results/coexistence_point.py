"""Table and figure of a coexistence point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from workflows.results.result import Result, heading, measured, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def table(result: xr.Dataset) -> list[str]:
    """The coexistence point, the barrier, and averages in both phases."""
    coupling, by = result.attrs["coupling"], result.attrs["phase_by"]
    names = [str(phase) for phase in result["phase"].values]
    rows = [(f"{coupling}, equal weight", measured(result, coupling))]
    if f"{coupling}_distance" in result:
        distance = f"{abs(float(result[f'{coupling}_distance'])):.1f} errors apart"
        rows += [(f"  by {how}", measured(result, f"{coupling}_{how}")) for how in ("crossing", "phases")]
        rows[-1] = (rows[-1][0], f"{rows[-1][1]}, {distance}")
    if f"{coupling}_equal_height" in result:
        share = f"{result['phase'].values[1]} share at {float(result[f'{coupling}_run']):.6g}"
        rows += [
            (f"{coupling}, equal height", measured(result, f"{coupling}_equal_height")),
            (share, measured(result, "ordered_share")),
            (f"barrier in {by} (nats)", measured(result, "barrier")),
        ]
    else:
        rows.append((f"log odds at {float(result[f'{coupling}_run']):.6g}", measured(result, "log_odds")))
    if "interface_tension" in result:
        rows.append(("interface tension", measured(result, "interface_tension")))
    rows.append(("latent heat (nats)", measured(result, "latent_heat")))
    lines = [f"coexistence of {heading(result)}", ""]
    lines += [f"  {name:<34}{value}" for name, value in rows]
    lines += ["", f"  {'in each phase':<18}" + "".join(f"{name:>20}" for name in names)]
    rows_of_phases = {by: by, "abs_m": "|m|", "energy": "U", "log_z": "log Z"}
    for name, label in rows_of_phases.items():
        if name in result:
            lines.append(f"  {label:<18}" + "".join(f"{measured(result, name, phase=phase):>20}" for phase in names))
    return [*lines, ""]


def figure(result: xr.Dataset) -> Figure:
    """P of the order parameter, of the magnetisation and of the energy at coexistence, as far as they are known."""
    from observables.figure_style import band, label_line, panels, symbol

    coupling, by = result.attrs["coupling"], result.attrs["phase_by"]
    crossed = "log_p_energy" in result
    names = [by, *(["m"] if "p_m" in result and by != "m" else [])]
    drawing, axes = panels(len(names) + 1)
    for ax, name in zip(axes, names, strict=False):
        axis, p, error = (result[key].values for key in (f"{name}_axis", f"p_{name}", f"p_{name}_err"))
        cut = float(result.attrs["phase_cut"]) if not crossed else np.inf
        for side in (axis < cut, axis >= cut):  # two curves where nothing was sampled between the phases
            if side.any():
                # A band that reaches zero has no lower end on a logarithmic axis.
                band(ax, axis[side], p[side], np.minimum(error, 0.9 * p)[side])
        bare = symbol(name).strip("$")
        low = float(p[p > 0].min())
        ax.set(xlabel=symbol(name), ylabel=f"$P({bare})$", yscale="log", ylim=(low / 2, 2.5 * float(np.nanmax(p))))
    label_line(axes[0], float(result.attrs["phase_cut"]), "phase cut")
    if crossed:
        band(axes[-1], *(result[key].values for key in ("energy_axis", "log_p_energy", "log_p_energy_err")))
        axes[-1].set(xlabel="energy $U$", ylabel=r"$\log\,P(U)$")
    else:
        _draw_odds(axes[-1], result)
    drawing.suptitle(f"{title(result)}: coexistence at {symbol(coupling)} = {measured(result, coupling)}")
    return drawing


def _draw_odds(ax: Axes, result: xr.Dataset) -> None:
    """log(Z_o / Z_d) near the coexistence point, where it is a straight line."""
    from observables.figure_style import band, label_line, symbol

    coupling = result.attrs["coupling"]
    root, slope, error = (float(result[name]) for name in (coupling, "log_odds_slope", f"{coupling}_err"))
    near = root + np.linspace(-8, 8, 65) * error
    band(ax, near, slope * (near - root), np.full(len(near), abs(slope) * error))
    ax.ticklabel_format(axis="x", useOffset=False)
    ax.tick_params(axis="x", labelrotation=30)
    ax.set(xlabel=symbol(coupling), ylabel=r"$\log\,Z_{o}/Z_{d}$")
    ax.axhline(0, color="0.7", lw=0.8, zorder=0)
    label_line(ax, root, "coexistence")


RESULT = Result("coexistence", table, figure)
