"""Figure of the posterior of the spike and slab target: one coordinate and the radius, against closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from workflows.reproduction.exact import coordinate_density, log_radial_density
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import QES, sample
from workflows.reproduction.table import Row, collect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 80
DRAWS = 4000
WIDEST = 3.2  # of a coordinate that is drawn: four and a half deviations of the slab
NOTE = (
    "The radius comes from all samples of the ladder, "
    "the coordinate from the configurations it kept, all D of which are alike."
)


def measure(target: Any, settings: dict[str, Any], seed: int, checkpoint: Path | None) -> xr.Dataset:
    """Share of the spike, mean r^2, and histograms of the coordinates and of the radius."""
    ladder = sample(QES, target, settings | {"configurations": 4096}, seed, checkpoint)
    pool = observables.Pool(ladder)
    means = observables.order_parameters(pool)
    farthest = target.slab / np.hypot(1, target.slab) * (np.sqrt(target.dim) + 4.5)  # of the shell of the slab
    squares = np.linspace(0.0, farthest, BINS + 1) ** 2
    radial = observables.distribution(pool, "r2", bins=squares)
    radius = np.sqrt(squares)
    # P(r) dr = P(s) ds: the density of s times the width of its bin, over that of r.
    p, error = (radial[name].values * np.diff(squares) / np.diff(radius) for name in ("p", "p_err"))
    drawn = observables.posterior(pool, draws=DRAWS // settings["replicas"])["field"].values.ravel()
    edges = np.linspace(-WIDEST, WIDEST, 2 * BINS + 1)
    found: dict[str, Any] = {"radius_edge": ("radius_edges", radius), "radial": ("radius_bin", p)}
    found |= {"radial_err": ("radius_bin", error), "coordinate_edge": ("coordinate_edges", edges)}
    found["coordinate"] = "coordinate_bin", np.histogram(drawn, edges)[0] / len(drawn) / np.diff(edges)
    for name in ("spike", "r2"):
        found |= {name: float(means[name].squeeze()), f"{name}_err": float(means[f"{name}_err"].squeeze())}
    return xr.Dataset(found | {"gradients": float(ladder.attrs["gradients"])})


def run(bench: Bench) -> xr.Dataset:
    """Moments and histograms for every dimension."""
    settings = {name: bench.settings[name] for name in ("particles", "replicas")}
    rows, parts = [], []
    for dim in bench.settings["dims"]:
        target = qp.targets.spike_slab(dim)

        def make(seed: int, checkpoint: Path | None, t=target) -> xr.Dataset:
            return measure(t, settings, seed, checkpoint)

        found = bench.part(f"spike_slab_{dim}", make, target)
        for name, exact in target.moments().items():
            quantity = {"spike": "share of the spike", "r2": "mean of r^2"}[name]
            rows.append(Row(f"spike_slab {dim}", QES, quantity, float(found[name]), float(found[f"{name}_err"]),
                            exact=exact, gradients=float(found["gradients"])))  # fmt: skip
        parts.append(found.drop_vars(["gradients", "spike", "spike_err", "r2", "r2_err"]))
    curves = xr.concat(parts, dim="dim").assign_coords(dim=bench.settings["dims"])
    return collect(rows).assign(curves).assign_attrs(note=NOTE)


def figure(result: xr.Dataset) -> Figure:
    """One coordinate above, the radius below, on logarithmic axes, for every D."""
    import matplotlib.pyplot as plt  # takes a second to import

    count = result.sizes["dim"]
    drawing, axes = plt.subplots(2, count, figsize=(2.7 * count, 5.0), squeeze=False)
    for (above, below), dim in zip(axes.T, result["dim"].values, strict=True):
        target, own = qp.targets.spike_slab(int(dim)), result.sel(dim=dim)
        edges = own["coordinate_edge"].values
        above.stairs(own["coordinate"].values, edges, fill=True, alpha=0.4, label="QES")
        x = np.linspace(edges[0], edges[-1], 2001)
        share = [1 - target.spike_share, target.spike_share]
        above.plot(x, coordinate_density([target.slab, target.spike], share, x), "k--", linewidth=0.8, label="exact")
        above.set(yscale="log", ylim=(1e-5, 10), xlabel="$x_1$", title=f"D = {dim}")
        radius = own["radius_edge"].values
        below.stairs(own["radial"].values, radius, fill=True, alpha=0.4)
        fine = np.linspace(1e-3, radius[-1], 4001)
        below.plot(fine, np.exp(log_radial_density(target, fine)), "k--", linewidth=0.8)
        below.set(yscale="log", ylim=(1e-5, 10), xlabel="$|x|$")
    axes[0, 0].set_ylabel("density")
    axes[1, 0].set_ylabel("density")
    axes[0, 0].legend()
    return drawing


EXPERIMENT = Experiment(
    "marginal",
    "fig:marginal",
    "Posterior of the spike and slab target in one coordinate and in the radius, against closed forms",
    {
        Effort.QUICK: {"dims": [10, 50], "particles": 250, "replicas": 4},
        Effort.STANDARD: {"dims": [10, 50, 200], "particles": 500, "replicas": 4},
        Effort.PAPER: {"dims": [10, 50, 200, 500], "particles": 1000, "replicas": 3},
    },
    {Effort.QUICK: 0.6, Effort.STANDARD: 2, Effort.PAPER: 35},
    run,
    figure,
)
