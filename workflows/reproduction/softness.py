"""Figure of the softness: bias of log Z and gradients on the spike and slab target over nu.

Small nu is close to the hard wall and lengthens the ladder; large nu is close to tempering and misses the spike.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

import quenchphys as qp
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import AUTO, QES, evidence, sample
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# fig:nu and the text of its paragraph, D = 200: log Z - exact at the two ends; the ratio of their gradients is 3.6
PAPER = {0.5: stated("-0.78", "0.24"), 4.0: stated("-2.24", "0.09")}
PAPER_RATIO = stated("3.6")
DIM = 200
ACCURATE = (0.75, 2.25)  # where the paper finds every point consistent with the exact value
NOTE = f"Only softness {ACCURATE[0]} to {ACCURATE[1]} is judged: below it mutation is too slow, above it the spike is lost."


def run(bench: Bench) -> xr.Dataset:
    """Bias and gradients for every softness, and of the automatic choice."""
    dim, settings = bench.settings["dim"], {name: bench.settings[name] for name in ("particles", "replicas")}
    target = qp.targets.spike_slab(dim)
    rows, points = [], []
    for nu in [*bench.settings["softness"], None]:
        method, own = (AUTO, settings) if nu is None else (QES, settings | {"softness": nu})

        def make(seed: int, checkpoint: Path | None, m=method, s=own) -> xr.Dataset:
            return evidence(sample(m, target, s, seed, checkpoint))

        found = bench.part("auto" if nu is None else f"nu_{nu:g}", make, target)
        off, error, spent = float(found["log_z"]) - target.log_z, float(found["log_z_err"]), float(found["gradients"])
        used = float(found.attrs["softness"])
        judged = nu is None or ACCURATE[0] <= nu <= ACCURATE[1]
        rows.append(Row(f"spike_slab {dim}", method, f"log Z - exact, nu={used:g}", off, error, PAPER.get(nu or 0.0),
                        0.0 if judged else math.nan, spent, comparable=dim == DIM))  # fmt: skip
        points.append((used, off, error, spent, float(nu is None)))
    spent_at = {nu: cost for nu, _, _, cost, automatic in points if not automatic}
    if {0.5, 4.0} <= spent_at.keys():
        ratio = spent_at[0.5] / spent_at[4.0]
        rows.append(Row(f"spike_slab {dim}", QES, "gradients, nu=0.5 / nu=4", ratio, paper=PAPER_RATIO))
    names = ("sweep_nu", "sweep_bias", "sweep_bias_err", "sweep_gradients", "sweep_automatic")
    columns = {name: ("sweep", list(column)) for name, column in zip(names, zip(*points, strict=True), strict=True)}
    return collect(rows).assign(columns).assign_attrs(note=NOTE, dim=dim)


def figure(result: xr.Dataset) -> Figure:
    """Bias and gradients over nu; the default circled, tempering dashed."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, (bias, cost) = plt.subplots(1, 2, figsize=(7.6, 3.2))
    automatic = result["sweep_automatic"].values > 0
    for some, look, label in ((~automatic, "o-", None), (automatic, "s", AUTO)):
        own = result.isel(sweep=some)
        colour = COLOURS[2 if label else 0]
        bias.errorbar(
            own["sweep_nu"], own["sweep_bias"], own["sweep_bias_err"], fmt=look, color=colour, markersize=4, label=label
        )
        cost.plot(own["sweep_nu"], own["sweep_gradients"], look, color=colour, markersize=4, label=label)
    if result.attrs["dim"] == DIM:
        bias.errorbar(
            list(PAPER), [v.value for v in PAPER.values()], [v.error for v in PAPER.values()], fmt="kx", label="paper"
        )
    default = result.isel(sweep=~automatic & (abs(result["sweep_nu"].values - 2.0) < 1e-9))
    for ax, name in ((bias, "sweep_bias"), (cost, "sweep_gradients")):
        ax.plot(
            default["sweep_nu"],
            default[name],
            "o",
            markersize=11,
            markerfacecolor="none",
            color=COLOURS[1],
            label="default",
        )
        ax.set_xlabel(r"softness $\nu$")
    bias.axhline(0.0, color="0.6", linewidth=0.7)
    bias.axhline(math.log(0.1), color="0.6", linewidth=0.9, linestyle="--", label="tempering")
    bias.set(ylabel=r"$\log Z$ - exact", title=f"spike and slab, D = {result.attrs['dim']}")
    cost.set(ylabel="gradients of all seeds", yscale="log")
    bias.legend(fontsize=7)
    return drawing


FINE = [0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0]
EXPERIMENT = Experiment(
    "softness",
    "fig:nu",
    "Bias of the evidence and gradients over the softness of the levels, on the spike and slab target",
    {
        Effort.QUICK: {"dim": 50, "softness": [0.5, 1.0, 2.0, 3.0, 4.0], "particles": 250, "replicas": 4},
        Effort.STANDARD: {
            "dim": DIM,
            "softness": [0.5, 1.0, 1.5, 2.0, 3.0, 4.0],
            "particles": 100,
            "replicas": 4,
        },
        Effort.PAPER: {"dim": DIM, "softness": FINE, "particles": 1000, "replicas": 3},
    },
    {Effort.QUICK: 1, Effort.STANDARD: 12, Effort.PAPER: 45},
    run,
    figure,
)
