"""Table of the Bayesian networks: predictions and effective samples per gradient on five classification tasks.

Effective samples are not the same thing for all methods: pooled Kish numbers of ladders, rank-normalised bulk numbers of
chains (here of the energy).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from workflows.reproduction.classification import FILES, MCLMC, NUTS, TANH, TASKS, measured, over_splits
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import AUTO, QES, SMC
from workflows.reproduction.table import Row, Stated, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# tab:clf, test NLL and ESS per 10^6 gradients, each with its deviation over three seeds
PAPER = {
    "sonar": {
        QES: ("0.458", "0.002", "3184", "81"),
        SMC: ("0.456", "0.001", "2195", "152"),
        NUTS: ("0.457", "0.003", "8996", "42"),
        MCLMC: ("0.472", "0.002", "64", "1"),
    },
    "glass": {
        QES: ("0.990", "0.002", "2367", "19"),
        SMC: ("0.991", "0.002", "1362", "84"),
        NUTS: ("0.991", "0.002", "11631", "38"),
        MCLMC: ("1.002", "0.001", "1837", "500"),
    },
    "heart": {
        QES: ("0.464", "0.000", "3017", "23"),
        SMC: ("0.465", "0.001", "1836", "45"),
        NUTS: ("0.463", "0.000", "10556", "68"),
        MCLMC: ("0.463", "0.001", "442", "23"),
    },
    "australian": {
        QES: ("0.319", "0.000", "2270", "8"),
        SMC: ("0.319", "0.001", "1422", "34"),
        NUTS: ("0.319", "0.001", "10804", "18"),
        MCLMC: ("0.319", "0.001", "1296", "138"),
    },
    "winered": {
        QES: ("0.909", "0.000", "1189", "10"),
        SMC: ("0.909", "0.001", "582", "32"),
        NUTS: ("0.909", "0.001", "4375", "17"),
        MCLMC: ("0.911", "0.000", "208", "14"),
    },
}
NLL, ESS = "test NLL", "ESS per 10^6 gradients"
NOTE = (
    "The paper's split of the data is not known.  The error of the test NLL is the scatter over splits where there are "
    "several; from a single split\nit is that of sampling alone, and nothing is judged.  ESS: pooled Kish number of "
    "ladders, bulk ESS of the energy of chains."
)


def run(bench: Bench) -> xr.Dataset:
    """NLL and efficiency of every task and method."""
    tasks, splits, methods = (bench.settings[name] for name in ("tasks", "splits", "methods"))
    # By methods first, so that an unfinished study has all tasks by one of them.
    found = {
        (method, task): [measured(bench, task, TANH, split, method) for split in splits]
        for method, task in itertools.product(methods, tasks)
    }
    rows = [row for task in tasks for method in methods for row in _rows(task, method, found[method, task])]
    return collect(rows).assign_attrs(note=NOTE)


def _rows(task: str, method: str, found: list[xr.Dataset]) -> list[Row]:
    """Both numbers of one method on one task."""
    printed = PAPER[task].get(method)
    gradients = float(sum(one["gradients"] for one in found))
    nll, nll_err = over_splits(*([float(one[name]) for one in found] for name in ("nll", "nll_err")))
    rate = float(np.mean([one["ess_per_million"] for one in found]))
    spread = float(np.mean([one["ess_per_million_err"] for one in found])) / np.sqrt(len(found))
    return [
        Row(task, method, NLL, nll, nll_err, _stated(printed, 0), gradients=gradients, comparable=len(found) > 1),
        # Kernels, particles and splits differ, and with them the number: it is shown and not judged.
        Row(task, method, ESS, rate, spread, _stated(printed, 2), gradients=gradients, comparable=False),
    ]


def _stated(printed: tuple[str, str, str, str] | None, first: int) -> Stated | None:
    return stated(printed[first], printed[first + 1]) if printed else None


def figure(result: xr.Dataset) -> Figure:
    """Test NLL and efficiency by task and method, with the paper's as crosses."""
    import matplotlib.pyplot as plt  # takes a second to import

    drawing, axes = plt.subplots(1, 2, figsize=(8.6, 3.6))
    tasks, methods = (list(dict.fromkeys(result[name].values)) for name in ("case", "method"))
    for ax, quantity in zip(axes, (NLL, ESS), strict=True):
        for number, method in enumerate(methods):
            mine = result.isel(row=np.flatnonzero((result["method"] == method) & (result["quantity"] == quantity)))
            place = np.array([tasks.index(task) for task in mine["case"].values]) + 0.12 * (number - len(methods) / 2 + 0.5)
            error = np.nan_to_num(mine["ours_err"].values)
            ax.errorbar(place, mine["ours"], error, fmt="o", markersize=4, color=f"C{number}", label=method)
            ax.plot(place, mine["paper"], "x", color=f"C{number}", markersize=6)
        ax.set_xticks(range(len(tasks)), tasks, rotation=25)
        ax.set_ylabel(quantity.replace("10^6", "$10^6$"))
    axes[1].set_yscale("log")
    axes[0].plot([], [], "kx", label="paper")
    axes[0].legend(fontsize="small")
    drawing.tight_layout()
    return drawing


EXPERIMENT = Experiment(
    "networks",
    "tab:clf",
    "Predictions and effective samples per gradient of five Bayesian networks, by ladders and by chains",
    {
        Effort.QUICK: {
            "tasks": list(TASKS),
            "splits": [0],
            "methods": [SMC, QES, NUTS, MCLMC],
            "ladder": {"particles": 20, "replicas": 4, "target_ess": 0.9, "configurations": 2048},
            NUTS: {"chains": 8, "tune": 100, "draws": 100},
            MCLMC: {"chains": 8, "tune": 1000, "draws": 200, "thin": 10},
        },
        Effort.STANDARD: {
            "tasks": list(TASKS),
            "splits": [0],
            "methods": [SMC, QES, NUTS, MCLMC],
            "ladder": {"particles": 40, "replicas": 4, "target_ess": 0.9, "configurations": 4096},
            "ladders": {"winered": {"particles": 24}},
            NUTS: {"chains": 16, "tune": 150, "draws": 150},
            MCLMC: {"chains": 16, "tune": 2000, "draws": 500, "thin": 10},
        },
        Effort.PAPER: {
            "tasks": list(TASKS),
            "splits": [0],
            "methods": [SMC, AUTO, QES, NUTS, MCLMC],
            "ladder": {"particles": 1000, "replicas": 3, "target_ess": 0.9, "steps": 96, "configurations": 4096},
            NUTS: {"chains": 1000, "tune": 250, "draws": 1000, "thin": 1},
            MCLMC: {"chains": 1000, "tune": 2000, "draws": 1000, "thin": 10},
        },
    },
    {Effort.QUICK: 5, Effort.STANDARD: 8, Effort.PAPER: 40 * 60},
    run,
    figure,
    needs="five CSV files (--data) and the extra rivals",
    data=FILES,
    data_required=True,
)
