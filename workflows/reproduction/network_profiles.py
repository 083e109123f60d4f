"""P(E) of Bayesian networks deep below their posterior: the right panel of the figure of the barrier.

A ladder of each task goes far beyond the evidence, to see whether a second peak lies below.  P(E) is the paper's level
marginal, G_nu(E) exp(-E), the distribution of U smoothed by the slack; E is counted from its peak, per training example.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from observables.peaks import deepest_valley
from workflows.reproduction.classification import TANH, network_of
from workflows.reproduction.experiment import Bench
from workflows.reproduction.methods import QES, sample
from workflows.reproduction.table import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 160
PEAKS = "peaks of P(E)"
PROMINENT = 1.0  # nats by which a valley must lie below both of its sides to separate two peaks


def profiles(bench: Bench) -> tuple[list[Row], xr.Dataset]:
    """Number of peaks and curve of every task; `doubt`, an attribute of the curves, names those with more than one peak."""
    settings = dict(bench.settings["networks"])
    tasks, rows, curves = settings.pop("tasks"), [], []
    for task in tasks:
        model = network_of(bench.data, task, TANH, 0)

        def make(seed: int, checkpoint: Path | None, model: Any = model) -> xr.Dataset:
            return measure(model, settings, seed, checkpoint)

        found = bench.part(f"{task}_deep", make, model)
        rows.append(Row(task, QES, PEAKS, float(found["peaks"]), exact=1.0, gradients=float(found["gradients"])))
        rows.append(Row(task, QES, "log P(E) at its lowest E, from the peak", -float(found["depth"])))
        curves.append(found[["energy", "log_p", "log_p_err"]])
    both = xr.concat(curves, dim="task").assign_coords(task=tasks)
    several = [row.case for row in rows if row.quantity == PEAKS and row.ours > 1]
    doubt = f"P(E) of {', '.join(several)} has more than one peak." if several else ""
    named = both.rename(energy="network_energy", log_p="network_log_p", log_p_err="network_log_p_err")
    return rows, named.assign_attrs(doubt=doubt)


def measure(model: qp.targets.Network, settings: dict[str, Any], seed: int, checkpoint: Path | None) -> xr.Dataset:
    """The curve of one network, from a ladder down to `dlogz` nats below its evidence."""
    own = dict(settings)
    stop = qp.RemainingEvidence(own.pop("dlogz"))
    ladder = sample(QES, model, own | {"stop": stop}, seed, checkpoint)
    return profile(ladder, len(model.labels)).assign(gradients=float(ladder.attrs["gradients"]))


def profile(ladder: qp.Ladder, examples: int) -> xr.Dataset:
    """log P(E) of all replicas on common energies, counted from the peak and per example, with the scatter of replicas.

    Returns
    -------
    Dataset
        energy, log_p and log_p_err over point; peaks, the number of peaks that a valley of PROMINENT nats separates, and
        depth, how far P(E) has fallen at its lowest energy.
    """
    found = observables.level_marginal(ladder)
    energy, log_p = found["energy"].values, found["log_p"].values
    common = np.linspace(np.nanmax(np.nanmin(energy, axis=1)), np.nanmin(np.nanmax(energy, axis=1)), POINTS)
    each = np.stack([_interpolated(common, *pair) for pair in zip(energy, log_p, strict=True)])
    mean = each.mean(axis=0)
    error = each.std(axis=0, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.full(POINTS, np.nan)
    return xr.Dataset(
        {
            "energy": ("point", (common - common[np.argmax(mean)]) / examples),
            "log_p": ("point", mean),
            "log_p_err": ("point", error),
            "peaks": 1.0 + float(deepest_valley(mean)[0] > PROMINENT),
            "depth": float(mean.max() - mean[0]),
        }
    )


def _interpolated(at: np.ndarray, energy: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    known = np.isfinite(energy)
    order = np.argsort(energy[known])
    return np.interp(at, energy[known][order], log_p[known][order])


def draw(ax: Axes, result: xr.Dataset) -> None:
    """One curve for each task."""
    for number, task in enumerate(result["task"].values):
        own = result.sel(task=task)
        ax.plot(own["network_energy"], own["network_log_p"], color=f"C{number}", label=str(task))
        band = (own["network_log_p"] - own["network_log_p_err"], own["network_log_p"] + own["network_log_p_err"])
        ax.fill_between(own["network_energy"], *band, color=f"C{number}", alpha=0.25, linewidth=0)
    ax.set(xlabel="energy per example, from the peak", ylabel=r"$\log\,P(E)$")
    ax.legend(fontsize="small")
