"""Figure of the barrier: P(E) of the spike and slab target, two peaks whose barrier grows with D, and of networks, one each.

Left the posterior energy distribution of spike_slab(D) from one ladder each, over the exact curve.  Right, if data sets are
given, the same of Bayesian networks deep below their posterior.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from observables.peaks import deepest_valley
from workflows.reproduction.classification import FILES, TASKS
from workflows.reproduction.exact import log_energy_density
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import QES, sample
from workflows.reproduction.network_profiles import draw as draw_networks
from workflows.reproduction.network_profiles import profiles
from workflows.reproduction.table import Row, collect

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WITHOUT_NETWORKS = "Networks were left out: give the folder of their data sets by data= (--data) to see P(E) of them."
BINS = 120
FINE = 20_001  # energies of an exact curve


def measure(target: Any, settings: dict[str, Any], seed: int, checkpoint: Path | None) -> xr.Dataset:
    """log P(E) of one ladder in bins, and its barrier."""
    ladder = sample(QES, target, settings, seed, checkpoint)
    found = observables.energy_distribution(ladder, bins=BINS)
    kept = {name: ("bin", found[name].values) for name in ("energy", "log_p", "log_p_err")}
    numbers = {name: float(found[name]) for name in ("barrier", "barrier_err")}
    return xr.Dataset(kept | numbers | {"gradients": float(ladder.attrs["gradients"])})


def exact_barrier(target: Any, energy: np.ndarray) -> float:
    """Depth of the valley of the exact log P(E) between two energies."""
    fine = np.linspace(np.nanmin(energy), np.nanmax(energy), FINE)
    return float(deepest_valley(log_energy_density(target, fine))[0])


def spike_slab(bench: Bench) -> tuple[list[Row], xr.Dataset]:
    """Rows and curves of the left panel."""
    rows, curves = [], []
    settings = {name: bench.settings[name] for name in ("particles", "replicas")}
    for dim in bench.settings["dims"]:
        target = qp.targets.spike_slab(dim)

        def make(seed: int, checkpoint: Path | None, t=target) -> xr.Dataset:
            return measure(t, settings, seed, checkpoint)

        found = bench.part(f"spike_slab_{dim}", make, target)
        exact = exact_barrier(target, found["energy"].values)
        rows.append(Row(f"spike_slab {dim}", QES, "barrier (nats)", float(found["barrier"]), float(found["barrier_err"]),
                        exact=exact, gradients=float(found["gradients"])))  # fmt: skip
        curves.append(found[["energy", "log_p", "log_p_err"]])
    both = xr.concat(curves, dim="dim").assign_coords(dim=bench.settings["dims"])
    return rows, both.rename(energy="spike_energy", log_p="spike_log_p", log_p_err="spike_log_p_err")


def run(bench: Bench) -> xr.Dataset:
    """The spike and slab target, and networks if there are data sets."""
    rows, curves = spike_slab(bench)
    if bench.data is None:
        return collect(rows).assign(curves).assign_attrs(note=WITHOUT_NETWORKS)
    network_rows, network_curves = profiles(bench)
    found = collect(rows + network_rows).assign(curves).assign(network_curves)
    return found.assign_attrs(doubt=network_curves.attrs["doubt"])


def figure(result: xr.Dataset) -> Figure:
    """log P(E) per dimension with the exact curves; beside it that of networks, or the barrier over D."""
    import matplotlib.pyplot as plt  # takes a second to import

    drawing, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.3), width_ratios=(1.5, 1))
    draw_spike_slab(left, result)
    if "network_energy" in result:
        draw_networks(right, result)
    else:
        draw_barrier(right, result)
    return drawing


def draw_barrier(right: Axes, result: xr.Dataset) -> None:
    """The barrier over D, measured and exact."""
    from observables.plot import COLOURS

    rows = result.isel(row=[str(case).startswith("spike_slab") for case in result["case"].values])
    dims = result["dim"].values
    right.plot(dims, rows["exact"], color="0.25", linewidth=0.8, label="exact")
    right.errorbar(dims, rows["ours"], rows["ours_err"], fmt="o", markersize=4, color=COLOURS[1], label="QES")
    right.set(xlabel="dimension $D$", ylabel=r"barrier $\Delta F$ (nats)", ylim=(0, None), xlim=(0, None))
    right.legend(loc="upper left")


def draw_spike_slab(ax: Axes, result: xr.Dataset) -> None:
    """The left panel: two peaks, and a valley that deepens with D."""
    from observables.plot import COLOURS

    for number, dim in enumerate(result["dim"].values):
        target, own = qp.targets.spike_slab(int(dim)), result.sel(dim=dim)
        energy = own["spike_energy"].values
        fine = np.linspace(np.nanmin(energy), np.nanmax(energy), FINE)
        ax.plot(fine / dim, log_energy_density(target, fine), color="0.25", linewidth=0.8)
        ax.errorbar(energy / dim, own["spike_log_p"], own["spike_log_p_err"], fmt=".", markersize=3, elinewidth=0.7,
                    color=COLOURS[number], label=f"$D = {dim}$")  # fmt: skip
    ax.plot([], [], color="0.25", linewidth=0.8, label="exact")
    ax.set(xlabel="energy per dimension $E/D$", ylabel=r"$\log\,P(E)$")
    ax.legend()


def _networks(tasks: list[str], particles: int, dlogz: float, steps: int = 96) -> dict[str, Any]:
    """Ladders of the networks, down to `dlogz` nats below their evidence."""
    return {"tasks": tasks, "particles": particles, "replicas": 2, "target_ess": 0.9, "steps": steps, "dlogz": dlogz}


EXPERIMENT = Experiment(
    "barrier",
    "fig:barrier",
    "P(E) of the spike and slab target: two phases, and a barrier that grows with dimension; of networks: one phase",
    {
        Effort.QUICK: {"dims": [20, 50], "particles": 250, "replicas": 4, "networks": _networks(["heart"], 64, -60.0)},
        Effort.STANDARD: {
            "dims": [50, 100, 200],
            "particles": 300,
            "replicas": 4,
            "networks": _networks(list(TASKS), 48, -120.0, steps=32),
        },
        Effort.PAPER: {
            "dims": [50, 100, 200, 500],
            "particles": 1000,
            "replicas": 3,
            "networks": _networks(list(TASKS), 1000, -1000.0),
        },
    },
    {Effort.QUICK: 1.5, Effort.STANDARD: 30, Effort.PAPER: 1440},
    run,
    figure,
    needs="five CSV files (--data) for the networks, else nothing",
    data=tuple(FILES),
)
