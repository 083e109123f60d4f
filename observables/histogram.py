"""Histograms of weighted samples, and smooth curves through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from observables.estimation.moments import Bins
from observables.estimation.targets import Targets
from observables.peaks import smoothed
from observables.samples.base import Samples
from observables.samples.pool import Pool

Array = np.ndarray

FINE_BINS = 400
ADAPTIVE_BINS = 100  # of a figure
ENOUGH = 30  # effective samples without which a fine bin has no value
TAIL = 1e-6  # of the probability lies outside the range chosen for a histogram, at each end


def edges_for(values: Array, log_weight: Array, bins: Any) -> Array:
    """Bin edges: as given, or `bins` equal ones over the range that holds all but a negligible part of the weight.

    "adaptive": narrower where there is more weight, so that narrow peaks are resolved.
    """
    if isinstance(bins, str) and bins == "adaptive":
        found = _fine_edges(values, np.exp(log_weight - log_weight.max()), ADAPTIVE_BINS)
        return edges_for(values, log_weight, 2) if found is None else found
    if np.ndim(bins) == 1:
        edges = np.asarray(bins, float)
        if len(edges) < 2 or not np.all(np.diff(edges) > 0):
            raise ValueError("Bin edges must be at least two increasing numbers.")
        return edges
    if not isinstance(bins, int | np.integer) or bins < 2:
        raise ValueError(
            f"bins must be a number of at least 2, a list of edges, or 'adaptive', but {bins!r} was given."
        )
    order = np.argsort(values)
    total = np.cumsum(np.exp(log_weight[order] - log_weight.max()))
    low, high = np.searchsorted(total, [TAIL * total[-1], (1 - TAIL) * total[-1]])
    low, high = values[order][low], values[order][min(high, len(values) - 1)]
    room = 1e-3 * (high - low) or 0.5
    return np.linspace(low - room, high + room, int(bins) + 1)


@dataclass(frozen=True)
class FineHistogram:
    """Bins fine enough to find the peaks and the valley of a distribution, and a smooth curve through log P there."""

    edges: Array
    curve: Array

    @property
    def centres(self) -> Array:
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @staticmethod
    def of(values: Array, log_weight: Array) -> FineHistogram | None:
        """None where there are too few different values."""
        weight = np.exp(log_weight - log_weight.max())
        edges = _fine_edges(values, weight)
        return None if edges is None else FineHistogram(edges, smoothed(_log_density(values, weight, edges)))


def _fine_edges(values: Array, weight: Array, bins: int = FINE_BINS) -> Array | None:
    """At equal steps of the mean of three distribution functions: of P, of the samples, and the uniform one.

    The first resolves narrow peaks, the second what was crossed between them, the third everything else.
    """
    low, high = edges_for(values, np.log(weight), 2)[[0, -1]]
    order = np.argsort(values)
    order = order[(values[order] >= low) & (values[order] <= high)]
    x = values[order].astype(float)
    if len(x) < ENOUGH or x[0] == x[-1]:
        return None
    cumulative = np.cumsum(weight[order])
    steps = cumulative / cumulative[-1] + np.linspace(0, 1, len(x)) + (x - x[0]) / (x[-1] - x[0])
    every = max(1, len(x) // 100_000)
    edges = np.interp(np.linspace(steps[0], steps[-1], bins + 1), steps[::every], x[::every])
    return np.unique(edges)


def _log_density(values: Array, weight: Array, edges: Array) -> Array:
    """log of the density in fine bins, NaN where effective samples are few."""
    index = np.searchsorted(edges, values, side="right") - 1
    inside = (index >= 0) & (index < len(edges) - 1)
    first, second = (np.bincount(index[inside], w[inside], len(edges) - 1) for w in (weight, weight**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(first**2 / second >= ENOUGH, np.log(first / np.diff(edges)), np.nan)


def weighted_values(pool: Pool, targets: Targets, name: str) -> tuple[Array, Array]:
    """Values of an observable (or of U') and log weights of all samples, for the first target."""
    point = targets.points[0]
    couplings = dict(targets.rest) | {k: v for k, v in point.items() if k != "beta"}
    values, weights = [], []
    for samples, base in pool.weighted:
        energy = samples.energy_at(couplings)
        log_w = np.where(np.isfinite(base), base + targets.log_t(energy, point["beta"]), -np.inf)
        some = log_w > log_w.max() - 40
        values.append(observable_or_energy(name, samples, energy).astype(float)[some])
        weights.append(log_w[some])
    return np.concatenate(values), np.concatenate(weights)


def bins_of(values: Array, edges: Array) -> Bins:
    """The bin of every value, as moments."""
    index = np.searchsorted(edges, values, side="right") - 1
    index[(index >= len(edges) - 1) | ~np.isfinite(values)] = -1
    return Bins(index, len(edges) - 1)


def observable_or_energy(name: str, samples: Samples, energy: Array) -> Array:
    """The energy U' of the target for "energy", else the observable."""
    return energy if name == "energy" else samples.observable(name)


def local_fit(x: Array, weight: Array, window: int, degree: int) -> tuple[Array, Array, Array]:
    """Matrices that turn values on the grid x into value, slope and curvature of a local polynomial at every point.

    Least squares over `window` points to either side, with the given weights; rows without enough points are NaN.
    """
    n = len(x)
    matrices = np.full((3, n, n), np.nan)
    for i in range(n):
        some = np.arange(max(0, i - window), min(n, i + window + 1))
        some = some[weight[some] > 0]
        if len(some) <= degree or weight[i] <= 0:
            continue
        scale = np.abs(x[some] - x[i]).max()
        root = np.sqrt(weight[some] / weight[some].max())
        design = np.vander((x[some] - x[i]) / scale, degree + 1, increasing=True)
        fit = np.linalg.pinv(design * root[:, None]) * root
        matrices[:, i, :] = 0.0
        matrices[0, i, some] = fit[0]
        matrices[1, i, some] = fit[1] / scale
        matrices[2, i, some] = 2 * fit[2] / scale**2
    return matrices[0], matrices[1], matrices[2]


def apply(matrix: Array, values: Array) -> Array:
    """matrix @ values along the last axis, where bins without a value have coefficient zero."""
    return np.einsum("ij,...j->...i", matrix, np.where(np.isfinite(values), values, 0.0))
