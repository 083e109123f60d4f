"""Figure of the resampling cadence: mode occupancy of the bimodal target for several thresholds, and marginals.

Resampling at every level redraws neutral mode labels again and again, so that occupancies walk at random until one mode is
lost; never resampling concentrates the weight on few lineages.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy import stats

import observables
import quenchphys as qp
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import QES, sample
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# fig:cadence and its paragraph, D = 100, ten seeds: runs of ten that lost a mode
PAPER = {1.0: stated("0.4"), 0.5: stated("0.0")}
DIM = 100
FIXATED = 0.02  # an occupancy nearer than this to 0 or 1 has lost a mode
BINS = 60
DRAWS = 4000
NOTE = (
    "A run is fixated when one mode has less than 2% of its weight.  "
    "By symmetry the mean occupancy is 0.5 at every threshold."
)


def measure(target: qp.targets.Bimodal, settings: dict, seed: int, checkpoint: Path | None) -> xr.Dataset:
    """Occupancy of every run, and histograms of the narrowest and the widest coordinate."""
    ladder = sample(QES, target, settings | {"configurations": 4096}, seed, checkpoint)
    runs = [qp.Ladder(ladder.tree.isel(replica=[r])) for r in range(settings["replicas"])]
    occupancy = [float(observables.order_parameters(one)["mode"].squeeze()) for one in runs]
    drawn = observables.posterior(ladder, draws=DRAWS // settings["replicas"])["field"].values.reshape(-1, target.dim)
    found = {"occupancy": ("run", occupancy), "gradients": float(ladder.attrs["gradients"])}
    found["resampled"] = float(ladder.levels["resampled"].mean())
    for name, column, width in (("narrow", 0, target.narrowest), ("wide", -1, target.widest)):
        edges = _edges(width)
        found[f"{name}_edge"] = (f"{name}_edges", edges)
        found[name] = (f"{name}_bin", np.histogram(drawn[:, column], edges)[0] / len(drawn) / np.diff(edges))
    return xr.Dataset(found)


def _edges(width: float) -> np.ndarray:
    """Bins around the modes: a mode at +-1/(1 + sigma^2) of width tau."""
    centre, tau = 1 / (1 + width**2), width / np.sqrt(1 + width**2)
    reach = centre + 5 * tau
    if tau > 0.1:
        return np.linspace(-reach, reach, BINS + 1)
    near = np.linspace(centre - 5 * tau, centre + 5 * tau, BINS // 2)
    return np.concatenate([-near[::-1], near])


def exact_marginal(x: np.ndarray, width: float) -> np.ndarray:
    """1/2 sum over +- of N(x; +-1/(1 + sigma^2), tau^2)."""
    centre, tau = 1 / (1 + width**2), width / np.sqrt(1 + width**2)
    return 0.5 * (stats.norm.pdf(x, centre, tau) + stats.norm.pdf(x, -centre, tau))


def run(bench: Bench) -> xr.Dataset:
    """Occupancies for every threshold; marginals under the default."""
    dim, thresholds = bench.settings["dim"], bench.settings["thresholds"]
    target = qp.targets.bimodal(dim)
    rows, occupancy, parts = [], [], {}
    for threshold in thresholds:
        settings = {name: bench.settings[name] for name in ("particles", "replicas")} | {"resample_ess": threshold}

        def make(seed: int, checkpoint: Path | None, s=settings) -> xr.Dataset:
            return measure(target, s, seed, checkpoint)

        found = parts[threshold] = bench.part(f"threshold_{threshold:g}", make, target)
        mode = found["occupancy"].values
        case, spent = f"bimodal {dim}, f={threshold:g}", float(found["gradients"])
        fixated = float(np.mean(np.abs(mode - 0.5) > 0.5 - FIXATED))
        paper = PAPER.get(threshold)
        rows += [
            Row(case, QES, "share of fixated runs", fixated, paper=paper, gradients=spent, comparable=dim == DIM),
            Row(case, QES, "scatter of occupancy", float(mode.std(ddof=1))),
            Row(
                case, QES, "mean occupancy", float(mode.mean()), float(mode.std(ddof=1) / np.sqrt(len(mode))), exact=0.5
            ),
            Row(case, QES, "share of levels resampled", float(found["resampled"])),
        ]
        occupancy.append(mode)
    default = parts[0.5].drop_vars(["occupancy", "gradients", "resampled"])
    curves = xr.Dataset({"occupancy": (("threshold", "run"), np.array(occupancy))}, coords={"threshold": thresholds})
    widths = {"dim": dim, "narrowest": target.narrowest, "widest": target.widest}
    return collect(rows).assign(curves).assign(default).assign_attrs(note=NOTE, **widths)


def figure(result: xr.Dataset) -> Figure:
    """Occupancy of every run over the threshold; marginals of the narrowest and the widest coordinate."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, (left, *marginals) = plt.subplots(1, 3, figsize=(9.6, 3.0))
    for place, threshold in enumerate(result["threshold"].values):
        mode = result["occupancy"].sel(threshold=threshold).values
        left.plot(place + np.linspace(-0.2, 0.2, len(mode)), mode, "o", markersize=3, color=COLOURS[0])
    left.set_xticks(range(result.sizes["threshold"]), [f"{t:g}" for t in result["threshold"].values])
    for edge in (0, 1):
        left.axhline(edge, color="0.5", linestyle=":", linewidth=0.8)
    left.axhline(0.5, color="0.7", linewidth=0.7)
    left.set(xlabel="resampling threshold $f$", ylabel="mode occupancy", title=f"bimodal, D = {result.attrs['dim']}")
    for ax, name, width in zip(marginals, ("narrow", "wide"), ("narrowest", "widest"), strict=True):
        edges = result[f"{name}_edge"].values
        ax.stairs(result[name].values, edges, fill=True, alpha=0.4, label="QES, f = 0.5")
        fine = np.linspace(edges[0], edges[-1], 4001)
        ax.plot(fine, exact_marginal(fine, result.attrs[width]), "k--", linewidth=0.8, label="exact")
        ax.set(xlabel=rf"coordinate with $\sigma = {result.attrs[width]:g}$", ylabel="density")
    marginals[1].legend()
    return drawing


ALL = [1.0, 0.9, 0.7, 0.5, 0.3, 0.1]
EXPERIMENT = Experiment(
    "cadence",
    "fig:cadence",
    "Mode occupancy of the bimodal target over the resampling threshold, and marginals under the default",
    {
        Effort.QUICK: {"dim": 20, "thresholds": [1.0, 0.5, 0.1], "particles": 200, "replicas": 8},
        Effort.STANDARD: {"dim": DIM, "thresholds": ALL, "particles": 300, "replicas": 10},
        Effort.PAPER: {"dim": DIM, "thresholds": ALL, "particles": 1000, "replicas": 10},
    },
    {Effort.QUICK: 1, Effort.STANDARD: 8, Effort.PAPER: 15},
    run,
    figure,
)
