"""Figure of the radial posterior of the Gaussian: pooled particles of QES and of tempering over the exact shell.

r = tau chi_D with tau^2 = sigma^2/(1 + sigma^2).  Particles are pooled as in the paper, so that its Kish numbers compare.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy import stats

import observables
import quenchphys as qp
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import AUTO, QES, SMC, sample
from workflows.reproduction.pooling import pooled_log_weights
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# fig:rfill, D = 10^4, one run: pooled Kish effective sample size
PAPER = {QES: stated("4.8e5"), SMC: stated("6.9e3")}
DIM = 10_000
BINS = 50
NOTE = "Kish: mean of the runs; that of the paper is for D = 10^4 and 1000 particles."


def shell(dim: int, sigma: float = 0.5) -> tuple[float, float, float]:
    """(tau, mean and standard deviation of r)."""
    tau = sigma / np.sqrt(1 + sigma**2)
    return tau, float(tau * stats.chi.mean(dim)), float(tau * stats.chi.std(dim))


def measure(method: str, target: Any, settings: dict[str, Any], seed: int, checkpoint: Path | None) -> xr.Dataset:
    """Histogram of the radius by the pooled weights, its Kish number, and the mean of r^2 with its error."""
    ladder = sample(method, target, settings, seed, checkpoint)
    pool = observables.Pool(ladder)
    _, mean, deviation = shell(target.dim)
    edges = mean + deviation * np.linspace(-4.5, 4.5, BINS + 1)
    histograms, kish = [], []
    for replica in pool.replicas:
        q = np.exp(pooled_log_weights(replica))
        radius = np.sqrt(replica.particle_observables["r2"].astype(float))
        histograms.append(np.histogram(radius, edges, weights=q)[0] / np.diff(edges))
        kish.append(1 / np.sum(q**2))
    found = observables.order_parameters(pool)
    return xr.Dataset(
        {
            "edge": ("edges", edges),
            "density": (("replica", "bin"), np.array(histograms)),
            "kish": ("replica", kish),
            "r2": float(found["r2"].squeeze()),
            "r2_err": float(found["r2_err"].squeeze()),
            "gradients": float(ladder.attrs["gradients"] + ladder.attrs.get("pilot_gradients", 0.0)),
        }
    )


def run(bench: Bench) -> xr.Dataset:
    """Every method on one Gaussian."""
    dim = bench.settings["dim"]
    target = qp.targets.gaussian(dim)
    rows, parts = [], []
    for method in (QES, SMC, AUTO):
        settings = bench.settings["common"] | bench.settings["methods"].get(method, {})

        def make(seed: int, checkpoint: Path | None, m=method, s=settings) -> xr.Dataset:
            return measure(m, target, s, seed, checkpoint)

        found = bench.part(method.replace(", ", "_"), make, target)
        case, spent = f"gaussian {dim}", float(found["gradients"])
        rows.append(Row(case, method, "mean of r^2", float(found["r2"]), float(found["r2_err"]),
                        exact=target.moments()["r2"], gradients=spent))  # fmt: skip
        rows.append(Row(case, method, "Kish ESS of a run", float(found["kish"].mean()), paper=PAPER.get(method)))
        parts.append(found[["edge", "density"]].mean("replica"))
    curves = xr.concat(parts, dim="curve").assign_coords(curve=[QES, SMC, AUTO])
    return collect(rows).assign(curves).assign_attrs(note=NOTE, dim=dim)


def figure(result: xr.Dataset) -> Figure:
    """Density of the radius of every method, and the exact shell."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, ax = plt.subplots(figsize=(5.4, 3.4))
    for number, method in enumerate(result["curve"].values):
        own = result.sel(curve=method)
        ax.stairs(own["density"].values, own["edge"].values, color=COLOURS[number], linewidth=1.1, label=method)
    tau, mean, deviation = shell(result.attrs["dim"])
    r = np.linspace(mean - 4.5 * deviation, mean + 4.5 * deviation, 1001)
    ax.plot(r, stats.chi.pdf(r / tau, result.attrs["dim"]) / tau, "k--", linewidth=0.9, label=r"exact, $\tau\chi_D$")
    ax.set(xlabel="$|x|$", ylabel="density", title=f"Gaussian, D = {result.attrs['dim']}", ylim=(0, None))
    ax.legend()
    return drawing


EXPERIMENT = Experiment(
    "radial",
    "fig:rfill",
    "Radial posterior of the Gaussian from the pooled particles of QES and of tempering, against the exact shell",
    {
        Effort.QUICK: {"dim": 100, "common": {"particles": 250, "replicas": 4}, "methods": {}},
        Effort.STANDARD: {"dim": 1000, "common": {"particles": 100, "replicas": 2}, "methods": {}},
        Effort.PAPER: {"dim": DIM, "common": {"particles": 1000, "replicas": 1}, "methods": {AUTO: {"replicas": 4}}},
    },
    {Effort.QUICK: 1, Effort.STANDARD: 8, Effort.PAPER: 1320},
    run,
    figure,
)
