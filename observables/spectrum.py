"""The spectrum: the density of states g(E), the distribution P(E), the free energy F(E) and its barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from observables.estimation.errors import Answer
from observables.estimation.estimator import estimate
from observables.estimation.labels import dataset
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from observables.flat_histogram import FlatHistogram, Shape, edges_by_samples
from observables.histogram import apply, edges_for, local_fit, weighted_values
from observables.peaks import Landmarks, at_equal_heights, edges_of, equal_heights, readings, smoothed
from observables.samples.pool import Pool, Source

Array = np.ndarray

SAMPLES_PER_BIN = 10  # effective samples a bin needs to take part in a fit
SIGNIFICANT = 3.0  # standard errors a valley must be deep


def density_of_states(ladder: Source, bins: Any = 100, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """log g(E), the prior probability per unit energy, with the microcanonical beta(E) = S'(E) and S''(E), S = log g.

    Parameters
    ----------
    ladder, errors, couplings
        As in `partition_function`, but for a single set of couplings.
    bins : int or sequence of floats
        Number of bins over the sampled energies, finer where there are more samples, or their edges.

    Returns
    -------
    Dataset
        log_g, beta_microcanonical and entropy_curvature over energy, with their errors, and bin_ess, the effective samples
        of every bin.  log g is averaged over the bin and has log_g_err^2/2 added: the content of a bin is a count, unbiased
        itself but not in its logarithm.

    Examples
    --------
    >>> found = observables.density_of_states(ladder, bins=60)
    >>> found.energy.values, found.log_g.values
    """
    pool = Pool.of(ladder)
    targets = Targets.single(pool, 0.0, couplings, "A density of states has")
    edges = edges_by_samples(pool, targets, bins)
    flat = FlatHistogram(pool, targets, Shape.of(pool, targets), edges, errors, absolute=True)
    enough = np.where(flat.ess > SAMPLES_PER_BIN, flat.ess, 0.0)
    _, slope, curvature = local_fit(flat.centres, enough, window=4, degree=3)
    log_g, log_g_err = flat.of(lambda log_g: log_g)
    answers = {
        "log_g": Answer(log_g + log_g_err**2 / 2, log_g_err),
        "beta_microcanonical": flat.of(lambda log_g: apply(slope, log_g)),
        "entropy_curvature": flat.of(lambda log_g: apply(curvature, log_g)),
    }
    result = dataset(flat.uncertain, answers, extra=("energy",)).drop_vars(["ess", "beta"])
    return flat.label(result)


def energy_distribution(
    ladder: Source, beta: float = 1.0, bins: Any = 100, *, errors: str = "auto", **couplings: Any
) -> xr.Dataset:
    """log P(E), averaged over each bin, and F(E) = -log P(E); two peaks, if there are two, and the valley between them.

    Parameters
    ----------
    ladder, beta, errors, couplings
        As in `partition_function`, but for a single target.
    bins : int, sequence of floats, or "adaptive"
        Number of bins, or their edges; adaptive ones are narrower where there is more weight.

    Returns
    -------
    Dataset
        log_p and free_energy over energy with their errors, and bin_ess.  barrier is the depth of the valley below the
        lower peak; beta_equal_height the inverse temperature at which both peaks are equally high, barrier_equal_height the
        depth of the valley there, and low_peak, valley, high_peak the energies of the three.  They are NaN for a single
        peak, and where there are too few samples to resolve the valley.  None of them depends on `bins`.

    Examples
    --------
    >>> found = observables.energy_distribution(ladder, beta=1.0)
    >>> found.free_energy.values, float(found.barrier)
    """
    pool = Pool.of(ladder)
    targets = Targets.single(pool, beta, couplings, "A distribution has")
    supported = estimate(pool, targets, no_moments)
    shape = Shape.of(pool, targets)
    edges = edges_for(*weighted_values(pool, targets, "energy"), bins)
    flat = FlatHistogram(pool, targets, shape, edges, errors)
    width = np.diff(flat.edges)

    def normalised(log_p: Array) -> Array:
        seen = np.where(np.isfinite(log_p), log_p + np.log(width), -np.inf)
        return log_p - logsumexp(seen, axis=1, keepdims=True)

    value, error = flat.of(normalised)
    result = dataset(flat.uncertain, {"log_p": (value, error), "free_energy": (-value, error)}, extra=("energy",))
    result["ess"] = xr.Variable((), float(supported.ess[0]), result["ess"].attrs)
    for name, number in _barriers(pool, targets, shape, errors).items():
        result[name] = xr.Variable((), number)
    return flat.label(result)


BARRIERS = ("barrier", "beta_equal_height", "barrier_equal_height")
PLACES = ("low_peak", "valley", "high_peak")


def _barriers(pool: Pool, targets: Targets, shape: Shape, errors: str) -> dict[str, float]:
    """All numbers about the valley; log P at beta' is log P - (beta' - beta) E up to a constant."""
    nothing = {name + end: np.nan for name in BARRIERS for end in ("", "_err")} | dict.fromkeys(PLACES, np.nan)
    curve, energy, beta = smoothed(shape.log_density), shape.centres, float(targets.points[0]["beta"])
    tilt = equal_heights(curve, energy)
    here, equal = Landmarks.of(curve), Landmarks.of(curve - tilt * energy)
    if equal is None:
        return nothing
    edges = edges_of([equal] if here is None else [here, equal])
    flat = FlatHistogram(pool, targets, shape, shape.edges[edges], errors)
    three_equal = readings(edges, equal, shape.edges)

    def beta_depth_and_places(log_p: Array) -> Array:
        found = at_equal_heights(three_equal, log_p, flat.centres, tilt)
        found[:, 0] = beta + tilt + found[:, 0]
        return found

    value, error = flat.of(beta_depth_and_places)
    if not value[0, 1] > SIGNIFICANT * error[0, 1]:
        return nothing
    found = nothing | dict(zip(PLACES, map(float, value[0, 2:]), strict=True))
    for i, name in enumerate(BARRIERS[1:]):
        found[name], found[name + "_err"] = float(value[0, i]), float(error[0, i])
    if here is not None:
        three = readings(edges, here, shape.edges)
        heights = flat.of(lambda log_p: np.stack([read(log_p)[0] for read in three], axis=1)).value[0]
        lower = 0 if heights[0] < heights[2] else 2
        depth = flat.of(lambda log_p: three[lower](log_p)[0] - three[1](log_p)[0])
        found["barrier"], found["barrier_err"] = float(depth.value[0]), float(depth.error[0])
    return found
