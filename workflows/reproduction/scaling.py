"""Figure of scaling: evaluations to convergence on the Gaussian over D, with power laws, and the bias of log Z.

The exponent depends on the dimensions between which it is fitted: steps at a level are 16 up to D = 200 and grow after that.
Beside ours stands the exponent of the printed levels over the same dimensions (tab:typical times steps).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import quenchphys as qp
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import AUTO, NS, QES, SMC, evidence, sample
from workflows.reproduction.path_length import PAPER as PATHS
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# fig:scaling: exponents of evaluations = C D^alpha
PAPER = {SMC: stated("0.86"), QES: stated("1.21"), NS: stated("1.75")}
NOTE = "Exact: the exponent of the paper's printed levels (tab:typical) times steps, over the same dimensions."


def power_law(dims: list[int], evaluations: list[float]) -> tuple[float, float]:
    """(alpha, log C) of evaluations = C D^alpha, by least squares in logarithms."""
    alpha, log_c = np.polyfit(np.log(dims), np.log(evaluations), 1)
    return float(alpha), float(log_c)


def printed_exponent(method: str, dims: list[int]) -> float:
    """Of the levels in the paper's table of path lengths, times the steps at each."""
    column = {QES: 0, SMC: 2}.get(method)
    if column is None or not all(dim in PATHS for dim in dims):
        return math.nan
    return power_law(dims, [float(PATHS[dim][column]) * qp.MALA().transitions(dim) for dim in dims])[0]


def run(bench: Bench) -> xr.Dataset:
    """Evaluations and bias of every method and dimension, and an exponent for each method."""
    settings, points, rows = bench.settings, [], []
    common = {name: settings[name] for name in ("particles", "replicas")}
    for name, by_method in settings["dims"].items():
        for method, dims in by_method.items():
            spent = []
            own = common | (settings["nested"] if method == NS else {})
            for dim in dims:
                target = getattr(qp.targets, name)(dim)

                def make(seed: int, checkpoint: Path | None, m=method, t=target, s=own) -> xr.Dataset:
                    return evidence(sample(m, t, s, seed, checkpoint))

                found = bench.part(f"{name}_{dim}_{method}".replace(", ", "_"), make, target)
                off, error = float(found["log_z"]) - target.log_z, float(found["log_z_err"])
                spent.append(float(found["gradients"]) / settings["replicas"])
                points.append((name, method, dim, off, error, spent[-1]))
                should = math.log(0.1) if (name, method) == ("spike_slab", SMC) else 0.0
                rows.append(Row(f"{name} {dim}", method, "log Z - exact", off, error, exact=should,
                                gradients=float(found["gradients"])))  # fmt: skip
            if name == "gaussian" and len(dims) > 2:
                alpha = power_law(dims, spent)[0]
                rows.append(Row(f"gaussian {dims[0]}-{dims[-1]}", method, "exponent", alpha, paper=PAPER.get(method),
                                exact=printed_exponent(method, dims)))  # fmt: skip
    names = ("point_target", "point_method", "point_dim", "point_bias", "point_bias_err", "point_evaluations")
    columns = {name: ("point", list(column)) for name, column in zip(names, zip(*points, strict=True), strict=True)}
    return collect(rows).assign(columns).assign_attrs(note=NOTE)


def figure(result: xr.Dataset) -> Figure:
    """Evaluations over D with power laws; bias over D, Gaussian filled, spike and slab open."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, (cost, bias) = plt.subplots(1, 2, figsize=(8.0, 3.4))
    points = result[[str(name) for name in result.data_vars if str(name).startswith("point_")]].to_dataframe()
    for number, method in enumerate(points["point_method"].unique()):
        colour = COLOURS[number]
        own = points[points["point_method"] == method]
        gauss, spiked = (own[own["point_target"] == name] for name in ("gaussian", "spike_slab"))
        if len(gauss) > 1:
            alpha, log_c = power_law(list(gauss["point_dim"]), list(gauss["point_evaluations"]))
            dims = gauss["point_dim"].to_numpy(float)
            cost.loglog(dims, np.exp(log_c) * dims**alpha, color=colour, linewidth=0.8)
            cost.loglog(
                dims,
                gauss["point_evaluations"],
                "o",
                color=colour,
                markersize=4,
                label=rf"{method}: $\alpha={alpha:.2f}$",
            )
        for some, marker, shift in ((gauss, "o", 1.0), (spiked, "s", 1.08)):
            open_ = {"markerfacecolor": "white"} if marker == "s" else {}
            bias.errorbar(some["point_dim"] * shift * (1 + 0.05 * number), some["point_bias"], some["point_bias_err"],
                          fmt=marker, color=colour, markersize=4, linewidth=0.8, **open_)  # fmt: skip
    bias.axhline(0.0, color="0.6", linewidth=0.7)
    bias.axhline(math.log(0.1), color="0.6", linewidth=0.7, linestyle="--")
    bias.plot([], [], "ko", markersize=4, label="Gaussian")
    bias.plot([], [], "ks", markersize=4, markerfacecolor="white", label="spike and slab")
    bias.set(xscale="log", xlabel="dimension $D$", ylabel=r"$\log Z$ - exact")
    cost.set(xlabel="dimension $D$", ylabel="evaluations of one run")
    for ax in (cost, bias):
        ax.legend(fontsize=7)
    return drawing


def _dims(gaussian: list[int], spiked: list[int], nested: list[int]) -> dict[str, dict[str, list[int]]]:
    return {
        "gaussian": {QES: gaussian, SMC: gaussian, NS: nested, AUTO: gaussian},
        "spike_slab": {QES: spiked, SMC: spiked, NS: [dim for dim in nested if dim in spiked]},
    }


EXPERIMENT = Experiment(
    "scaling",
    "fig:scaling",
    "Evaluations to convergence over dimension with power laws, and the bias of the evidence",
    {
        Effort.QUICK: {"dims": _dims([10, 50, 100], [10], [10]), "particles": 250, "replicas": 2, "nested": {}},
        Effort.STANDARD: {
            "dims": _dims([10, 50, 100, 200, 500], [10, 50, 200], [10, 50, 100]),
            "particles": 100,
            "replicas": 4,
            "nested": {"particles": 1000},  # with fewer its bias, which goes as 1/N, is all that one sees
        },
        Effort.PAPER: {
            "dims": _dims(list(PATHS), [10, 50, 200, 500], [10, 50, 100]), "particles": 1000, "replicas": 3, "nested": {},
        },
    },
    {Effort.QUICK: 1.5, Effort.STANDARD: 12, Effort.PAPER: 5760},
    run,
    figure,
    needs="the extra rivals for NS",
)  # fmt: skip
