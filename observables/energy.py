"""How many states are there at each energy, and how is the energy distributed?  g(E), P(E), F(E) and the barrier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import PchipInterpolator
from scipy.special import logsumexp

from observables.errors import Answer, Uncertain
from observables.estimator import Estimate, Targets, along, estimate, no_moments
from observables.histogram import apply, bins_of, edges_for, local_fit, weighted_values
from observables.labels import dataset
from observables.pool import Pool, Source

Array = np.ndarray
Function = Callable[[Array], Array]

SAMPLES_PER_BIN = 10  # effective samples a bin needs to take part in a fit or to be a peak
LARGEST_TILT = 60.0  # nats by which two peaks may differ in height
OUTSIDE = 5e-4  # of the samples at either end are left out of a density of states: too few for a bin
SIGNIFICANT = 3.0  # standard errors a valley must be deep


def density_of_states(ladder: Source, bins: Any = 100, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """log g(E), the prior probability per unit energy, with the microcanonical beta(E) = S'(E) and S''(E), S = log g.

    bins: a number of bins over the energies the ladder met, finer where it has more samples, or their edges.
    """
    pool = Pool.of(ladder)
    targets = _one_target(pool, 0.0, couplings)
    flat = FlatHistogram(pool, targets, _edges_by_samples(pool, targets, bins), errors)
    _, slope, curvature = local_fit(flat.centres, flat.enough(), window=4, degree=3)
    answers = {
        "log_g": flat.of(lambda log_g: log_g),
        "beta_microcanonical": flat.of(lambda log_g: apply(slope, log_g)),
        "entropy_curvature": flat.of(lambda log_g: apply(curvature, log_g)),
    }
    result = dataset(flat.uncertain, answers, extra=("energy",)).drop_vars(["ess", "beta"])
    return flat.label(result)


def energy_distribution(
    ladder: Source, beta: float = 1.0, bins: Any = 100, *, errors: str = "auto", **couplings: Any
) -> xr.Dataset:
    """log P(E) and F(E) = -log P(E), with the two peaks, the valley between them and its depth, if there are two.

    barrier is the depth of the valley below the lower peak; beta_equal_height the inverse temperature at which both
    peaks are equally high, barrier_equal_height the depth of the valley there.  They are NaN for a single peak.
    """
    pool = Pool.of(ladder)
    targets = _one_target(pool, beta, couplings)
    supported = estimate(pool, targets, no_moments)
    flat = FlatHistogram(pool, targets, edges_for(*weighted_values(pool, targets, "energy"), bins), errors)
    width = np.diff(flat.edges)

    def normalised(log_p: Array) -> Array:
        seen = np.where(np.isfinite(log_p), log_p + np.log(width), -np.inf)
        return log_p - logsumexp(seen, axis=1, keepdims=True)

    value, error = flat.of(normalised)
    result = dataset(flat.uncertain, {"log_p": (value, error), "free_energy": (-value, error)}, extra=("energy",))
    result["ess"] = xr.Variable((), float(supported.ess[0]), result["ess"].attrs)
    # Peaks and valley are looked for on a smoothed curve and read off the curve itself: smoothing would fill a sharp
    # valley, and the extremes of a noisy curve are biased.
    smooth, _, _ = local_fit(flat.centres, flat.enough(), window=2, degree=2)
    curve = Curve(flat.centres, apply(smooth, value)[0], beta)
    for name, function in curve.functions().items():
        answer = flat.of(partial(_after, normalised, function))
        result[name], result[name + "_err"] = (xr.Variable((), float(part[0])) for part in answer)
    if not result["barrier_equal_height"] > SIGNIFICANT * result["barrier_equal_height_err"]:
        for name in curve.functions():
            result[name], result[name + "_err"] = xr.Variable((), np.nan), xr.Variable((), np.nan)
    for name, place in curve.places().items():
        result[name] = xr.Variable((), place if np.isfinite(result["barrier_equal_height"]) else np.nan)
    return flat.label(result)


def _after(first: Function, then: Function, values: Array) -> Array:
    return then(first(values))


class FlatHistogram:
    """A density over bins of energy that may span hundreds of nats, even within a bin.

    The target is t(E)/h(E), with h a smooth curve through the averages of the density in the bins: all bins have
    nearly the same weight, and what is left of the density over h is constant within a bin.
    """

    def __init__(self, pool: Pool, targets: Targets, edges: Array, errors: str):
        self.edges, self.centres = edges, 0.5 * (edges[1:] + edges[:-1])
        rough = _log_sums(pool, targets, edges) - np.log(np.diff(edges))
        met = np.isfinite(rough)
        if met.sum() < 2:
            raise ValueError("The ladder has no samples between the bin edges given.")
        self._curve = PchipInterpolator(self.centres[met], rough[met])
        self._ends = self.centres[met][0], self.centres[met][-1]
        flat = Targets(targets.axes, targets.dims, targets.rest, self._flatten)
        found = estimate(pool, flat, lambda replica, energy: bins_of(energy, edges), check=False)
        self.uncertain = Uncertain(found, errors)
        self.ess = bin_ess(found, flat, edges)

    def _flatten(self, energy: Array) -> Array:
        inside = (energy >= self.edges[0]) & (energy < self.edges[-1])
        return np.where(inside, -self._curve(np.clip(energy, *self._ends)), -np.inf)

    def of(self, function: Callable[[Array], Array]) -> Answer:
        """A function of the log density (T, bins) at the centres of the bins, with its error."""
        offset = self._flatten(self.centres) + np.log(np.diff(self.edges))
        return self.uncertain.of(lambda log_z, mean: function(np.log(mean) + log_z[:, None] - offset))

    def enough(self) -> Array:
        """Effective samples of the bins, zero where they are too few for a fit."""
        return np.where(self.ess > SAMPLES_PER_BIN, self.ess, 0.0)

    def label(self, result: xr.Dataset) -> xr.Dataset:
        words = {"long_name": "effective samples of the bin", "units": "1"}
        return result.assign(bin_ess=("energy", self.ess, words)).assign_coords(
            energy=("energy", self.centres, {"long_name": "energy", "units": "nats"}),
            energy_width=("energy", np.diff(self.edges), {"long_name": "width of the bin", "units": "nats"}),
        )


class Curve:
    """A smooth log P on a grid of energies, and the valley in it.

    The valley is looked for at the inverse temperature where both peaks are equally high, because there it is deepest:
    log P at beta' is log P - (beta' - beta) E up to a constant.
    """

    def __init__(self, energy: Array, log_p: Array, beta: float):
        self.energy, self.beta = energy, beta
        tilts = np.linspace(-1, 1, 121) * LARGEST_TILT / (energy[-1] - energy[0])
        self.here = deepest_valley(log_p)
        self.equal = max((deepest_valley(log_p - tilt * energy) for tilt in tilts), key=lambda found: found[0])

    def places(self) -> dict[str, float]:
        _, low, valley, high = self.equal
        return {"low_peak": self.energy[low], "valley": self.energy[valley], "high_peak": self.energy[high]}

    def functions(self) -> dict[str, Function]:
        """What is read off the curve, at the bins found: each is evaluated again for every set of replicas."""
        e, (depth_here, low_here, valley_here, high_here), (_, low, valley, high) = self.energy, self.here, self.equal

        def barrier(log_p: Array) -> Array:
            if depth_here <= 0:
                return np.full(len(log_p), np.nan)
            return np.minimum(log_p[:, low_here], log_p[:, high_here]) - log_p[:, valley_here]

        def beta_equal(log_p: Array) -> Array:
            if low == high:
                return np.full(len(log_p), np.nan)
            return self.beta + (log_p[:, low] - log_p[:, high]) / (e[low] - e[high])

        def barrier_equal(log_p: Array) -> Array:
            tilted = log_p - (beta_equal(log_p) - self.beta)[:, None] * e
            return tilted[:, low] - tilted[:, valley]

        return {"barrier": barrier, "beta_equal_height": beta_equal, "barrier_equal_height": barrier_equal}


def deepest_valley(log_p: Array) -> tuple[float, int, int, int]:
    """(depth, low, valley, high): the bin lying deepest below the lower of the highest bins to either side of it."""
    with_floor = np.where(np.isfinite(log_p), log_p, -np.inf)
    left = np.maximum.accumulate(with_floor)
    right = np.maximum.accumulate(with_floor[::-1])[::-1]
    with np.errstate(invalid="ignore"):
        depth = np.where(np.isfinite(log_p), np.minimum(left, right) - with_floor, -np.inf)
    valley = int(np.argmax(depth))
    return (
        float(depth[valley]),
        int(np.argmax(with_floor[: valley + 1])),
        valley,
        valley + int(np.argmax(with_floor[valley:])),
    )


def bin_ess(found: Estimate, targets: Targets, edges: Array) -> Array:
    """Effective samples of every bin, (sum W)^2 / sum W^2 within it, for the first target."""
    beta = targets.points[0]["beta"]
    first, second = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for block, bases, log_z in zip(found.pool.blocks, found.pool.log_base, found.log_z[:, 0], strict=True):
        for replica, base in zip(block, bases, strict=True):
            ((_, energy),) = along(targets, replica)
            index = bins_of(energy, edges).index
            weight = np.exp(base + targets.log_t(energy, beta) - log_z)[index >= 0]
            first += np.bincount(index[index >= 0], weight, minlength=len(first))
            second += np.bincount(index[index >= 0], weight**2, minlength=len(first))
    return np.divide(first**2, second, out=np.zeros_like(first), where=second > 0)


def _one_target(pool: Pool, beta: float, couplings: dict[str, Any]) -> Targets:
    targets = Targets.grid(pool, beta, couplings)
    if targets.dims:
        raise ValueError(f"A distribution has one target: {targets.dims[0]} must be a single number.")
    return targets


def _edges_by_samples(pool: Pool, targets: Targets, bins: Any) -> Array:
    """Edges as given, or at equal steps of the mean of two distribution functions: of the samples, and the uniform one.

    The samples alone would leave the top of the ladder, which few levels cross, with a handful of bins.
    """
    if np.ndim(bins) == 1:
        return edges_for(np.empty(0), np.empty(0), bins)
    checked = len(edges_for(np.array([0.0, 1.0]), np.zeros(2), bins))
    energies = np.sort(np.concatenate([energy[np.isfinite(base)] for energy, base in _energies(pool, targets)]))
    energies = energies[int(OUTSIDE * len(energies)) : int((1 - OUTSIDE) * len(energies)) + 1]
    energies = energies[:: max(1, len(energies) // 100_000)]
    steps = 0.5 * np.linspace(0, 1, len(energies)) + 0.5 * (energies - energies[0]) / (energies[-1] - energies[0])
    return np.interp(np.linspace(0, 1, checked), steps, energies)


def _energies(pool: Pool, targets: Targets) -> Iterator[tuple[Array, Array]]:
    for block, bases in zip(pool.blocks, pool.log_base, strict=True):
        for replica, base in zip(block, bases, strict=True):
            ((_, energy),) = along(targets, replica)
            yield energy, base


def _log_sums(pool: Pool, targets: Targets, edges: Array) -> Array:
    """log of the sum of all weights in every bin."""
    beta = targets.points[0]["beta"]
    total = np.full(len(edges) - 1, -np.inf)
    for energy, base in _energies(pool, targets):
        base = base + targets.log_t(energy, beta)
        index = bins_of(energy, edges).index
        some = np.flatnonzero((index >= 0) & np.isfinite(base))
        top = np.full(len(total), -np.inf)
        np.maximum.at(top, index[some], base[some])
        scaled = np.bincount(index[some], np.exp(base[some] - top[index[some]]), minlength=len(total))
        with np.errstate(divide="ignore"):
            total = np.logaddexp(total, np.where(scaled > 0, top + np.log(scaled), -np.inf))
    return total
