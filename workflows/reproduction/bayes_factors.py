"""Table of Bayes factors: tanh against ReLU on five tasks, by quenching, tempering and Laplace's approximation.

    log BF = log Z(tanh) - log Z(ReLU)
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from workflows.reproduction.classification import FILES, LAPLACE, RELU, TANH, TASKS, measured, over_splits, splits_of
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import AUTO, QES, SMC
from workflows.reproduction.table import SIGNIFICANT, Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# tab:clfbf, each with its deviation over three seeds
PAPER = {
    "glass": {QES: ("-6.0", "0.46"), SMC: ("-6.2", "0.11"), LAPLACE: ("2.3", "0.39")},
    "heart": {QES: ("7.7", "0.46"), SMC: ("7.7", "0.03"), LAPLACE: ("19.6", "0.49")},
    "sonar": {QES: ("5.3", "0.11"), SMC: ("5.2", "0.06"), LAPLACE: ("15.7", "0.45")},
    "australian": {QES: ("10.5", "0.22"), SMC: ("10.6", "0.05"), LAPLACE: ("36.9", "1.55")},
    "winered": {QES: ("-37.3", "0.10"), SMC: ("-37.9", "0.16"), LAPLACE: ("15.9", "4.50")},
}
PAPER_NLL = {  # tanh, ReLU
    "glass": {
        QES: (("0.990", "0.002"), ("0.993", "0.005")),
        SMC: (("0.991", "0.002"), ("0.993", "0.001")),
        LAPLACE: (("1.231", "0.001"), ("1.181", "0.024")),
    },
    "heart": {
        QES: (("0.464", "0.000"), ("0.465", "0.001")),
        SMC: (("0.465", "0.001"), ("0.467", "0.002")),
        LAPLACE: (("0.503", "0.002"), ("0.495", "0.004")),
    },
    "sonar": {
        QES: (("0.458", "0.002"), ("0.444", "0.002")),
        SMC: (("0.456", "0.001"), ("0.444", "0.001")),
        LAPLACE: (("0.534", "0.007"), ("0.505", "0.004")),
    },
    "australian": {
        QES: (("0.319", "0.000"), ("0.324", "0.001")),
        SMC: (("0.319", "0.001"), ("0.324", "0.001")),
        LAPLACE: (("0.428", "0.001"), ("0.448", "0.027")),
    },
    "winered": {
        QES: (("0.909", "0.000"), ("0.930", "0.001")),
        SMC: (("0.909", "0.001"), ("0.929", "0.000")),
        LAPLACE: (("1.005", "0.003"), ("0.985", "0.007")),
    },
}
BAYES_FACTOR = "log BF"
NOTE = (
    "The paper's split of the data is not known.  Errors over several splits are their scatter; from a single split they "
    "are those of sampling\nalone, and nothing is judged but the sign and whether QES and SMC agree."
)


def run(bench: Bench) -> xr.Dataset:
    """Bayes factors and predictions of every task and method."""
    tasks, methods = (bench.settings[name] for name in ("tasks", "methods"))
    splits = {pair: splits_of(bench.settings, *pair) for pair in itertools.product(tasks, methods)}
    # By methods first, so that an unfinished study has all tasks by one of them.
    found = {
        (method, task, split): [measured(bench, task, name, split, method) for name in (TANH, RELU)]
        for method, task in itertools.product(methods, tasks)
        for split in splits[task, method]
    }
    rows, doubts = [], []
    for task in tasks:
        pairs = {method: [found[method, task, split] for split in splits[task, method]] for method in methods}
        factors = {method: [_factor(*pair) for pair in own] for method, own in pairs.items()}
        for method in methods:
            rows += _rows(task, method, splits[task, method], factors[method], pairs[method])
        doubts += _doubts(task, factors)
    return collect(rows).assign_attrs(note=NOTE, doubt=" ".join(doubts))


def _factor(tanh: xr.Dataset, relu: xr.Dataset) -> xr.Dataset:
    """log BF with its error, and the cost of both networks."""
    return xr.Dataset(
        {
            "value": float(tanh["log_z"] - relu["log_z"]),
            "error": math.hypot(float(tanh["log_z_err"]), float(relu["log_z_err"])),
            "gradients": float(tanh["gradients"] + relu["gradients"]),
        }
    )


def _rows(
    task: str, method: str, splits: list[int], factors: list[xr.Dataset], pairs: list[list[xr.Dataset]]
) -> list[Row]:
    """The Bayes factor of each split, their mean beside the paper's, and the predictions of both networks."""
    gradients = float(sum(one["gradients"] for one in factors))
    value, error = over_splits(*([float(one[name]) for one in factors] for name in ("value", "error")))
    printed, several = PAPER[task].get(method), len(splits) > 1
    paper = stated(*printed) if printed else None
    rows = [Row(task, method, BAYES_FACTOR, value, error, paper, gradients=gradients, comparable=several)]
    if several:
        rows += [
            Row(task, method, f"{BAYES_FACTOR}, split {split}", float(one["value"]), float(one["error"]))
            for split, one in zip(splits, factors, strict=True)
        ]
    for number, name in enumerate((TANH, "ReLU")):
        found = [pair[number] for pair in pairs]
        nll = over_splits(*([float(one[what]) for one in found] for what in ("nll", "nll_err")))
        known = PAPER_NLL[task].get(method)
        rows.append(
            Row(task, method, f"test NLL, {name}", *nll, stated(*known[number]) if known else None, comparable=several)
        )
    return rows


def _doubts(task: str, factors: dict[str, list[xr.Dataset]]) -> list[str]:
    """Signs that are not the paper's, and quenched and tempered evidences that disagree on the same split."""
    found = []
    for method in (QES, AUTO, SMC):
        sign = math.copysign(1, float(PAPER[task][QES][0]))
        wrong = sum(float(one["value"]) * sign < 0 for one in factors.get(method, []))
        if wrong:
            count = len(factors[method])
            found.append(f"{method} finds another sign than the paper on {wrong} of {count} splits of {task}.")
    for method in (QES, AUTO):
        for split, (one, other) in enumerate(zip(factors.get(method, []), factors.get(SMC, []), strict=False)):
            z = float(one["value"] - other["value"]) / math.hypot(float(one["error"]), float(other["error"]))
            if abs(z) > SIGNIFICANT:
                found.append(f"{method} and SMC are {z:+.1f} combined errors apart on {task} (split number {split}).")
    return found


def figure(result: xr.Dataset) -> Figure:
    """log BF of every task and method, with the paper's as crosses."""
    import matplotlib.pyplot as plt  # takes a second to import

    drawing, ax = plt.subplots(figsize=(6.4, 3.8))
    tasks, methods = (list(dict.fromkeys(result[name].values)) for name in ("case", "method"))
    for number, method in enumerate(methods):
        mine = result.isel(row=np.flatnonzero((result["method"] == method) & (result["quantity"] == BAYES_FACTOR)))
        place = np.array([tasks.index(task) for task in mine["case"].values]) + 0.14 * (number - len(methods) / 2 + 0.5)
        error = np.nan_to_num(mine["ours_err"].values)
        ax.errorbar(place, mine["ours"], error, fmt="o", markersize=4, color=f"C{number}", label=method)
        ax.plot(place, mine["paper"], "x", color=f"C{number}", markersize=6)
    ax.plot([], [], "kx", label="paper")
    ax.axhline(0, color="black", linewidth=0.6)
    ax.set_xticks(range(len(tasks)), tasks)
    ax.set(ylabel=r"$\log Z(\tanh) - \log Z(\mathrm{ReLU})$")
    ax.legend(fontsize="small")
    drawing.tight_layout()
    return drawing


EXPERIMENT = Experiment(
    "bayes-factors",
    "tab:clfbf",
    "Evidence of tanh against ReLU networks on five tasks, by quenching, tempering and Laplace's approximation",
    {
        Effort.QUICK: {
            "tasks": list(TASKS),
            "splits": [0],
            "methods": [SMC, QES, LAPLACE],
            "ladder": {"particles": 20, "replicas": 4, "target_ess": 0.9, "configurations": 2048},
            LAPLACE: {"starts": 2, "steps": 20_000, "rate": 1e-3, "draws": 200},
        },
        Effort.STANDARD: {
            "tasks": list(TASKS),
            "splits": [0, 1, 2],
            "methods": [SMC, QES, LAPLACE],
            "ladder": {"particles": 40, "replicas": 4, "target_ess": 0.9, "configurations": 4096},
            # Few stages of SMC: with 24 particles too few effective samples are left.
            "ladders": {"winered": {"particles": 24}, f"winered {SMC}": {"particles": 40}},
            "splits_of": {f"winered {QES}": [0]},
            LAPLACE: {"starts": 2, "steps": 20_000, "rate": 1e-3, "draws": 1000},
        },
        Effort.PAPER: {
            "tasks": list(TASKS),
            "splits": [0],
            "methods": [SMC, AUTO, QES, LAPLACE],
            "ladder": {"particles": 1000, "replicas": 3, "target_ess": 0.9, "steps": 96, "configurations": 4096},
            LAPLACE: {"starts": 3, "steps": 20_000, "rate": 1e-3, "draws": 1000},
        },
    },
    {Effort.QUICK: 4, Effort.STANDARD: 18, Effort.PAPER: 20 * 60},
    run,
    figure,
    needs="five CSV files (--data) and the extra rivals",
    data=FILES,
    data_required=True,
)
