"""Table of mutation budgets: bias of log Z on the Gaussian over the steps at a level, and with twice the particles.

The working point is n = sqrt(D) steps, rounded up to a power of two (128 at D = 10^4).  At other D the rows stand for the
same multiples of the working point.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import quenchphys as qp
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import AUTO, QES, evidence, sample
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# tab:nsteps at D = 10^4, (multiple of 1000 particles, multiple of 128 steps): log Z - exact, gradients of one run
PAPER = {
    (1, 0.25): (stated("-1.91", "0.68", 10), 0.47e9),
    (1, 0.5): (stated("-1.62", "0.93", 10), 0.94e9),
    (1, 1.0): (stated("-0.89", "0.71", 10), 1.86e9),
    (1, 2.0): (stated("-1.10", "0.77", 10), 3.69e9),
    (2, 1.0): (stated("-0.62", "0.45", 10), 3.74e9),
}
DIM = 10_000
ADAPTIVE = 4.0  # where a number of steps that adapts is drawn
NOTE = (
    "Fewer steps than the working point leave the population behind its level: that is a bias, so only the working point "
    "and more are judged.\nGradients are those of all seeds."
)


def run(bench: Bench) -> xr.Dataset:
    """Bias of log Z for each budget, and of our own way."""
    dim, particles = bench.settings["dim"], bench.settings["particles"]
    target = qp.targets.gaussian(dim)
    working = qp.MALA().transitions(dim)
    budgets: list[tuple[str, int, float | None]] = [(QES, twice, share) for twice, share in PAPER]
    rows, kept = [], []
    for method, twice, share in [*budgets, (AUTO, 1, None)]:
        settings: dict[str, Any] = {"particles": particles * twice, "replicas": bench.settings["replicas"]}
        if share is not None:
            settings["steps"] = round(working * share)

        def make(seed: int, checkpoint: Path | None, m=method, s=settings) -> xr.Dataset:
            return evidence(sample(m, target, s, seed, checkpoint))

        steps = settings.get("steps")
        found = bench.part(f"{particles * twice}_particles_{steps or 'adaptive'}_steps", make, target)
        off, error = float(found["log_z"]) - target.log_z, float(found["log_z_err"])
        judged = share is None or share >= 1
        rows.append(
            Row(
                f"gaussian {dim}", method, f"N={particles * twice}, {steps or 'adaptive'} steps", off, error,
                PAPER[twice, share][0] if share is not None else None, 0.0 if judged else math.nan,
                float(found["gradients"]), comparable=dim == DIM,
            )
        )  # fmt: skip
        kept.append((method, twice, share if share is not None else math.nan, off, error, float(found["gradients"])))
    names = ("budget_method", "budget_particles", "budget_steps", "budget_bias", "budget_bias_err", "budget_gradients")
    columns = {name: ("budget", list(column)) for name, column in zip(names, zip(*kept, strict=True), strict=True)}
    return collect(rows).assign(columns).assign_attrs(note=NOTE, dim=dim, particles=particles, working=working)


def figure(result: xr.Dataset) -> Figure:
    """Bias over the steps at a level, in units of the working point, with the paper's."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, ax = plt.subplots(figsize=(5.0, 3.4))
    steps, size = result["budget_steps"].values, result["budget_particles"].values
    for twice, colour in ((1, COLOURS[0]), (2, COLOURS[1])):
        here = (size == twice) & np.isfinite(steps)
        bias, error = result["budget_bias"].values[here], result["budget_bias_err"].values[here]
        ax.errorbar(
            steps[here],
            bias,
            error,
            fmt="o-",
            color=colour,
            markersize=4,
            label=f"D = {result.attrs['dim']}, {twice * result.attrs['particles']} particles",
        )
        printed = [(share, value) for (many, share), (value, _) in PAPER.items() if many == twice]
        ax.errorbar([1.04 * s for s, _ in printed], [v.value for _, v in printed], [v.error for _, v in printed], fmt="x",
                    color=colour, linewidth=0.7, label=f"paper, D = {DIM}, {1000 * twice} particles")  # fmt: skip
    own = ~np.isfinite(steps)
    ax.errorbar(
        [ADAPTIVE],
        result["budget_bias"].values[own],
        result["budget_bias_err"].values[own],
        fmt="s",
        color=COLOURS[2],
        label=AUTO,
    )
    ax.axhline(0, color="0.6", linewidth=0.7)
    ax.set(xscale="log", xlabel=f"steps at a level / {result.attrs['working']}", ylabel=r"$\log Z$ - exact")
    shares = sorted({share for _, share in PAPER})
    ax.set_xticks([*shares, ADAPTIVE], [*(f"{share:g}" for share in shares), "adaptive"])
    ax.minorticks_off()
    ax.legend(fontsize=7)
    return drawing


EXPERIMENT = Experiment(
    "budget",
    "tab:nsteps",
    "Bias of log Z on the Gaussian over the number of steps at a level",
    {
        Effort.QUICK: {"dim": 100, "particles": 100, "replicas": 8},
        Effort.STANDARD: {"dim": 200, "particles": 100, "replicas": 8},
        Effort.PAPER: {"dim": DIM, "particles": 1000, "replicas": 10},
    },
    {Effort.QUICK: 1, Effort.STANDARD: 10, Effort.PAPER: 72000},
    run,
    figure,
)
