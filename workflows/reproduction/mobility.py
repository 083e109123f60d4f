"""Table of mobility at the wall: how often particles near a level move, against all of them, on the Gaussian.

A particle is near the wall when its slack is below a fifth of the mean slack of its population.  The kernel is MALA itself;
a subclass watches its transitions and counts, while an ordinary ladder runs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import stats

import quenchphys as qp
from quenchphys.kernels.base import Move
from quenchphys.parallel.random_numbers import Stream
from quenchphys.smc.density import Density, Point
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import QES, sample
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = jax.Array

# tab:wall: share near the wall, moves there, moves overall
PAPER = {
    2: ("0.036", "0.126", "0.403"),
    3: ("0.032", "0.282", "0.434"),
    5: ("0.035", "0.327", "0.464"),
    10: ("0.043", "0.366", "0.497"),
    50: ("0.061", "0.286", "0.554"),
    1000: ("0.071", "0.289", "0.598"),
}
NEAR = 0.2  # of the mean slack
STEPS = 10
QUANTITIES = ("share near the wall", "moves there", "moves overall", "ratio")
# In equilibrium the slack is Gamma(3) where log g(E) is locally linear: a share of 2.31% is near the wall.
EQUILIBRIUM = float(stats.gamma.cdf(NEAR * 3, 3))
NOTE = (
    f"Exact: {EQUILIBRIUM:.4f} of an equilibrated population is near the wall; more are found there, because every level "
    "lowers the slack of all particles at once."
)

_counts: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(4))  # by watch: proposals, near, moves near, moves


@dataclass(frozen=True)
class WatchedMALA(qp.MALA):
    """MALA that counts where its particles are and whether they move, under the name `watch`."""

    watch: str = ""

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        moved, move = super().transition(stream, shared, point, density, step_size, scale)
        slack = density.parameter - point.energy
        near = slack < NEAR * jnp.mean(slack)
        moves = jnp.any(moved.position != point.position, axis=-1)
        counts = jnp.stack([jnp.asarray(slack.size), near.sum(), (near & moves).sum(), moves.sum()])
        jax.debug.callback(_count, counts, watch=self.watch)
        return moved, move


def _count(counts: np.ndarray, watch: str) -> None:
    _counts[watch] += np.asarray(counts).reshape(-1, 4).sum(axis=0)


def measure(dim: int, particles: int, replicas: int, seed: int) -> xr.Dataset:
    """Counts of one ladder: proposals, those near the wall, moves there, all moves."""
    watch = f"{dim} {particles} {replicas} {seed}"
    _counts.pop(watch, None)
    kernel = WatchedMALA(steps=STEPS, watch=watch)
    settings = {"particles": particles, "replicas": replicas, "kernel": kernel, "devices": 1}
    ladder = sample(QES, qp.targets.gaussian(dim), settings, seed)
    jax.effects_barrier()
    return xr.Dataset({"counts": ("count", _counts.pop(watch)), "gradients": float(ladder.attrs["gradients"])})


def run(bench: Bench) -> xr.Dataset:
    """Shares and rates for every dimension."""
    rows, table = [], []
    particles, replicas = bench.settings["particles"], bench.settings["replicas"]
    for dim in bench.settings["dims"]:

        def make(seed: int, checkpoint: Path | None, d=dim) -> xr.Dataset:
            return measure(d, particles, replicas, seed)

        found = bench.part(f"gaussian_{dim}", make, qp.targets.gaussian(dim))
        proposals, near, moves_near, moves = found["counts"].values
        ours = (near / proposals, moves_near / near, moves / proposals, moves_near / near / (moves / proposals))
        printed = (*PAPER[dim], f"{float(PAPER[dim][1]) / float(PAPER[dim][2]):.2f}")
        for quantity, value, text in zip(QUANTITIES, ours, printed, strict=True):
            exact = EQUILIBRIUM if quantity == QUANTITIES[0] else np.nan
            rows.append(Row(f"gaussian {dim}", QES, quantity, float(value), paper=stated(text), exact=exact,
                            gradients=float(found["gradients"])))  # fmt: skip
        table.append(ours)
    curves = {"mobility": (("dim", "kind"), np.array(table))}
    coords = {"dim": bench.settings["dims"], "kind": list(QUANTITIES)}
    return collect(rows).assign(xr.Dataset(curves, coords=coords)).assign_attrs(note=NOTE)


def figure(result: xr.Dataset) -> Figure:
    """Share near the wall, and rates of moves, over D, with the paper's."""
    import matplotlib.pyplot as plt  # takes a second to import

    drawing, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2))
    dims = result["dim"].values
    printed = np.array([[float(text) for text in PAPER[int(dim)]] for dim in dims])
    for ax, columns in ((left, (0,)), (right, (1, 2))):
        for column in columns:
            colour = f"C{column}"
            ax.semilogx(
                dims, result["mobility"].values[:, column], "o-", color=colour, markersize=4, label=QUANTITIES[column]
            )
            ax.semilogx(dims, printed[:, column], "x", color=colour, markersize=6)
        ax.plot([], [], "kx", label="paper")
        ax.set(xlabel="dimension $D$", ylim=(0, None))
    left.axhline(EQUILIBRIUM, color="0.6", linewidth=0.7, linestyle="--", label="equilibrium")
    for ax in (left, right):
        ax.legend()
    return drawing


EXPERIMENT = Experiment(
    "mobility",
    "tab:wall",
    "How often particles near the wall of a level move, on the Gaussian",
    {
        Effort.QUICK: {"dims": [2, 3, 5, 10, 50], "particles": 200, "replicas": 2},
        Effort.STANDARD: {"dims": list(PAPER), "particles": 200, "replicas": 4},
        Effort.PAPER: {"dims": list(PAPER), "particles": 200, "replicas": 3},
    },
    {Effort.QUICK: 1, Effort.STANDARD: 5, Effort.PAPER: 5},
    run,
    figure,
)
