"""Table of mobility at the wall: how often particles near a level move, against all of them, on the Gaussian.

Near the wall means a slack below a fifth of the mean slack of the population.  The kernel is MALA itself; a subclass watches
its transitions and counts, while an ordinary ladder runs.  What is near may be the particle that is to move, or the place
that is proposed to it: the paper's words allow both, so both are counted.
"""

from __future__ import annotations

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
QUANTITIES = (
    "particles near the wall",
    "moves of those",
    "proposals near the wall",
    "accepted of those",
    "moves overall",
)
# In equilibrium the slack is Gamma(3) where log g(E) is locally linear: a share of 2.31% is near the wall.
EQUILIBRIUM = float(stats.gamma.cdf(NEAR * 3, 3))
NOTE = (
    f"Exact: {EQUILIBRIUM:.4f} of an equilibrated population is near the wall; more are found there, because every level "
    "lowers the slack of all particles at once."
)

_counts: dict[tuple[str, float], np.ndarray] = {}  # by watch and level, see `Counts`
Counts = ("proposals", "moves", "particles near", "moves of those", "proposals near", "accepted of those")


@dataclass(frozen=True)
class WatchedMALA(qp.MALA):
    """MALA that counts where its particles and proposals are and whether they move, under the name `watch`."""

    watch: str = ""

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        moved, move = super().transition(stream, shared, point, density, step_size, scale)
        moves = jnp.any(moved.position != point.position, axis=-1)
        # The proposal, made once more from the same random numbers.
        width = step_size * scale
        noise = stream.split()[0].normal(point.position.shape)
        proposal = density.evaluate(point.position + width * (0.5 * width * density.score(point) + noise))
        slack = density.parameter - point.energy
        near = slack < NEAR * jnp.mean(slack)
        room = density.parameter - proposal.energy
        lands = (room > 0) & (room < NEAR * jnp.mean(slack))
        counts = [
            jnp.asarray(slack.size),
            moves.sum(),
            near.sum(),
            (near & moves).sum(),
            lands.sum(),
            (lands & moves).sum(),
        ]
        jax.debug.callback(_count, density.parameter, jnp.stack(counts), watch=self.watch)
        return moved, move


def _count(level: np.ndarray, counts: np.ndarray, watch: str) -> None:
    place = watch, float(level)
    _counts[place] = _counts.get(place, np.zeros(len(Counts))) + np.asarray(counts)


def measure(dim: int, particles: int, replicas: int, seed: int) -> xr.Dataset:
    """Counts over the levels of one ladder; the engine also works on a few levels that it does not keep."""
    watch = f"{dim} {particles} {replicas} {seed}"
    kernel = WatchedMALA(steps=STEPS, watch=watch)
    settings = {"particles": particles, "replicas": replicas, "kernel": kernel, "devices": 1}
    ladder = sample(QES, qp.targets.gaussian(dim), settings, seed)
    jax.effects_barrier()
    levels = ladder.levels["energy"].values
    seen = {float(level): _counts.pop((w, level)) for w, level in list(_counts) if w == watch}
    total = sum((seen[float(level)] for level in levels[np.isfinite(levels)]), np.zeros(len(Counts)))
    return xr.Dataset(
        {"counts": ("count", total), "gradients": float(ladder.attrs["gradients"])}, {"count": list(Counts)}
    )


def run(bench: Bench) -> xr.Dataset:
    """Shares and rates for every dimension."""
    rows, table = [], []
    particles, replicas = bench.settings["particles"], bench.settings["replicas"]
    for dim in bench.settings["dims"]:

        def make(seed: int, checkpoint: Path | None, d=dim) -> xr.Dataset:
            return measure(d, particles, replicas, seed)

        found = bench.part(f"gaussian_{dim}", make, qp.targets.gaussian(dim))
        proposals, moves, near, moves_near, lands, accepted = found["counts"].values
        overall = moves / proposals
        ours = (near / proposals, moves_near / near, lands / proposals, accepted / lands, overall)
        wall = {QUANTITIES[0]: PAPER[dim][0], QUANTITIES[1]: PAPER[dim][1], QUANTITIES[2]: PAPER[dim][0]}
        printed = wall | {QUANTITIES[3]: PAPER[dim][1], QUANTITIES[4]: PAPER[dim][2]}
        for quantity, value in zip(QUANTITIES, ours, strict=True):
            exact = EQUILIBRIUM if quantity == QUANTITIES[0] else np.nan
            rows.append(Row(f"gaussian {dim}", QES, quantity, float(value), paper=stated(printed[quantity]), exact=exact,
                            gradients=float(found["gradients"])))  # fmt: skip
        table.append(ours)
    curves = {"mobility": (("dim", "kind"), np.array(table))}
    coords = {"dim": bench.settings["dims"], "kind": list(QUANTITIES)}
    return collect(rows).assign(xr.Dataset(curves, coords=coords)).assign_attrs(note=NOTE)


def figure(result: xr.Dataset) -> Figure:
    """Share near the wall, and rates of moves, over D, with the paper's."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2))
    dims = result["dim"].values
    printed = np.array([[float(text) for text in PAPER[int(dim)]] for dim in dims])
    for ax, columns in ((left, (0, 2)), (right, (1, 3, 4))):
        for column in columns:
            values = result["mobility"].values[:, column]
            ax.semilogx(dims, values, "o-", color=COLOURS[column], markersize=4, label=QUANTITIES[column])
        for place, column in ((0, 2), (1, 3), (2, 4)):
            if column in columns:
                ax.semilogx(dims, printed[:, place], "x", color=COLOURS[column], markersize=6)
        ax.plot([], [], "kx", label="paper")
        ax.set(xlabel="dimension $D$", ylim=(0, None))
        ax.set_xticks(dims, [str(dim) for dim in dims], minor=False)
        ax.minorticks_off()
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
        Effort.STANDARD: {"dims": list(PAPER), "particles": 200, "replicas": 2},
        Effort.PAPER: {"dims": list(PAPER), "particles": 200, "replicas": 3},
    },
    {Effort.QUICK: 1, Effort.STANDARD: 2, Effort.PAPER: 5},
    run,
    figure,
)
