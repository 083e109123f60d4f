"""What does a result say in words?  One table for each workflow, as the command line prints it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr


def number(value: float, error: float) -> str:
    """A value with its error in the last digits: 2.29493(95)."""
    if not (np.isfinite(value) and np.isfinite(error)) or error <= 0:
        return f"{value:.6g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    shown = f"{error * 10**digits:.0f}" if digits else f"{error:.0f}"
    return f"{value:.{digits}f}({shown})"


def measured(result: xr.Dataset, name: str, **where: object) -> str:
    """A variable of a result with its error."""
    value, error = result[name], result[f"{name}_err"]
    return number(float(value.sel(where)), float(error.sel(where)))


def summary(result: xr.Dataset) -> str:
    """The table of a result, ending with whether it can be trusted."""
    lines = TABLES[str(result.attrs["workflow"])](result)
    if result.attrs["trusted"]:
        lines.append(
            "both phases were sampled by every group of walkers" if "phase" in result.dims else "can be trusted"
        )
    else:
        lines.append(f"NOT TO BE TRUSTED: {result.attrs['why']}")
    return "\n".join(lines)


def _coexistence(result: xr.Dataset) -> list[str]:
    coupling, by = result.attrs["coupling"], result.attrs["phase_by"]
    rows = [
        (f"{coupling}, equal weight", measured(result, coupling)),
        (f"{coupling}, equal height", measured(result, f"{coupling}_equal_height")),
        (f"ordered share at {float(result[f'{coupling}_run']):.6g}", measured(result, "ordered_share")),
        (f"barrier in {by} (nats)", measured(result, "barrier")),
    ]
    if "interface_tension" in result:
        rows.append(("interface tension", measured(result, "interface_tension")))
    rows.append(("latent heat (nats)", measured(result, "latent_heat")))
    lines = [f"coexistence of {result.attrs['problem']}", ""]
    lines += [f"  {name:<34}{value}" for name, value in rows]
    lines += ["", f"  {'in each phase':<18}{'disordered':>20}{'ordered':>20}"]
    names = {by: by, "abs_m": "|m|", "energy": "U", "log_z": "log Z"}
    for name, label in names.items():
        if name in result:
            values = [measured(result, name, phase=phase) for phase in ("disordered", "ordered")]
            lines.append(f"  {label:<18}{values[0]:>20}{values[1]:>20}")
    return [*lines, ""]


def _scaling(result: xr.Dataset) -> list[str]:
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


def _partition_function(result: xr.Dataset) -> list[str]:
    names = ["log_z", "energy", "heat_capacity", "free_energy"]
    lines = [f"partition function of {result.attrs['problem']}", ""]
    lines.append(f"  {'beta':>8}" + "".join(f"{name.replace('_', ' '):>20}" for name in names))
    betas = result["beta"].values
    for beta in betas[np.unique(np.linspace(0, len(betas) - 1, 13).round().astype(int))]:
        lines.append(f"  {beta:>8.4g}" + "".join(f"{measured(result, name, beta=beta):>20}" for name in names))
    return [*lines, ""]


TABLES: dict[str, Callable[[xr.Dataset], list[str]]] = {
    "coexistence": _coexistence,
    "finite_size_scaling": _scaling,
    "partition_function": _partition_function,
}
