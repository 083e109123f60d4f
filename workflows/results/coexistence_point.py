"""Table and figure of a coexistence point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from workflows.results.result import Result, band, measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table(result: xr.Dataset) -> list[str]:
    """The coexistence point, the barrier, and averages in both phases."""
    coupling, by = result.attrs["coupling"], result.attrs["phase_by"]
    rows = [
        (f"{coupling}, equal weight", measured(result, coupling)),
        (f"{coupling}, equal height", measured(result, f"{coupling}_equal_height")),
        (f"{result['phase'].values[1]} share at {float(result[f'{coupling}_run']):.6g}", measured(result, "ordered_share")),
        (f"barrier in {by} (nats)", measured(result, "barrier")),
    ]
    if "interface_tension" in result:
        rows.append(("interface tension", measured(result, "interface_tension")))
    rows.append(("latent heat (nats)", measured(result, "latent_heat")))
    lines = [f"coexistence of {result.attrs['problem']}", ""]
    lines += [f"  {name:<34}{value}" for name, value in rows]
    phases = [str(phase) for phase in result["phase"].values]
    lines += ["", f"  {'in each phase':<18}{phases[0]:>20}{phases[1]:>20}"]
    names = {by: by, "abs_m": "|m|", "energy": "U", "log_z": "log Z"}
    for name, label in names.items():
        if name in result:
            values = [measured(result, name, phase=phase) for phase in phases]
            lines.append(f"  {label:<18}{values[0]:>20}{values[1]:>20}")
    return [*lines, ""]


def figure(result: xr.Dataset) -> Figure:
    """P of the order parameter, of the magnetisation and of the energy at coexistence."""
    import matplotlib.pyplot as plt  # takes a second to import

    coupling, by = result.attrs["coupling"], result.attrs["phase_by"]
    names = [by, *(["m"] if "p_m" in result and by != "m" else [])]
    drawing, axes = plt.subplots(1, len(names) + 1, figsize=(3.6 * (len(names) + 1), 3.1))
    for ax, name in zip(axes, names, strict=False):
        axis, p, error = result[f"{name}_axis"], result[f"p_{name}"], result[f"p_{name}_err"]
        band(ax, axis.values, p.values, error.values)
        ax.set(xlabel=f"${name}$", ylabel=f"$P({name})$", yscale="log", ylim=(float(p.where(p > 0).min()) / 2, None))
    axes[0].axvline(float(result.attrs["phase_cut"]), color="grey", linewidth=0.8, linestyle=":")
    band(axes[-1], result["energy_axis"].values, result["log_p_energy"].values, result["log_p_energy_err"].values)
    axes[-1].set(xlabel="energy $U$", ylabel=r"$\log P(U)$")
    drawing.suptitle(f"{result.attrs['problem']}: coexistence at {coupling} = {measured(result, coupling)}")
    return drawing


RESULT = Result("coexistence", table, figure)
