"""The distribution of an observable, such as P(q) or P(m): its free energy -log P, its peaks and its valley."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.errors import Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.labels import dataset
from observables.estimation.targets import Targets
from observables.histogram import FineHistogram, bins_of, edges_for, observable_or_energy, weighted_values
from observables.peaks import Landmarks, edges_of, readings
from observables.samples.pool import Pool, Source

Array = np.ndarray

SIGNIFICANT = 3.0  # standard errors a valley must be deep
DEPTHS = ("barrier", "barrier_low", "barrier_high")
PLACES = ("low_peak", "valley", "high_peak")


def distribution(
    ladder: Source, of: str, beta: float = 1.0, bins: Any = 100, *, errors: str = "auto", **couplings: Any
) -> xr.Dataset:
    """The probability density of an observable, and its free energy -log P.

    Parameters
    ----------
    ladder : Ladder, Walk, several of them, or Pool
        The samples.
    of : str
        An observable, or "energy".
    beta, errors, couplings
        As in `partition_function`, but for a single target.
    bins : int, sequence of floats, or "adaptive"
        Number of bins, or their edges; adaptive ones are narrower where there is more weight.

    Returns
    -------
    Dataset
        p and free_energy = -log p with their errors, over the observable.  low_peak, valley and high_peak are where the two
        peaks and the minimum between them lie; barrier_low and barrier_high the heights of the peaks above it,
        log(P_peak/P_valley); barrier the smaller of the two.  NaN for a single peak, and where there are too few samples to
        resolve the valley.  None of them depends on `bins`.

    Examples
    --------
    >>> found = observables.distribution(ladder, "q", mu2=2.286)
    >>> float(found.barrier), float(found.barrier_err)
    """
    pool = Pool.of(ladder)
    pool.check_recorded(of)
    pool.check_defined(of, "have a distribution")
    targets = Targets.single(pool, beta, couplings, "A distribution has")
    values, log_w = weighted_values(pool, targets, of)
    edges = edges_for(values, log_w, bins)
    width = np.diff(edges)
    uncertain = _histogram(pool, targets, of, edges, errors)
    answers = {
        "p": uncertain.of(lambda log_z, mean: mean / width),
        "free_energy": uncertain.of(lambda log_z, mean: -np.log(mean / width)),
    }
    result = dataset(uncertain, answers, extra=(of,))
    for name, number in _barriers(pool, targets, of, values, log_w, errors).items():
        result[name] = xr.Variable((), number)
    return result.assign_coords({of: (of, 0.5 * (edges[1:] + edges[:-1]), {"long_name": of, "units": "1"})})


def _histogram(pool: Pool, targets: Targets, of: str, edges: Array, errors: str) -> Uncertain:
    found = estimate(
        pool, targets, lambda samples, energy: bins_of(observable_or_energy(of, samples, energy).astype(float), edges)
    )
    return Uncertain(found, errors)


def _barriers(pool: Pool, targets: Targets, of: str, values: Array, log_w: Array, errors: str) -> dict[str, float]:
    """Depths with errors, and places."""
    nothing = {name + end: np.nan for name in DEPTHS for end in ("", "_err")} | dict.fromkeys(PLACES, np.nan)
    fine = FineHistogram.of(values, log_w)
    marks = None if fine is None else Landmarks.of(fine.curve)
    if fine is None or marks is None:
        return nothing
    edges = edges_of([marks])
    width = np.diff(fine.edges[edges])
    low, valley, high = readings(edges, marks, fine.edges)
    uncertain = _histogram(pool, targets, of, fine.edges[edges], errors)

    def depths(log_z: Array, mean: Array) -> Array:
        log_p = np.log(mean / width)
        return np.stack([read(log_p)[0] - valley(log_p)[0] for read in (low, high)], axis=1)

    value, error = (part[0] for part in uncertain.of(depths))
    lower = int(np.argmin(value))
    if not value[lower] > SIGNIFICANT * error[lower]:
        return nothing
    log_p = np.log(uncertain.found.pooled()[1] / width)
    found = {name: float(read(log_p)[1][0]) for name, read in zip(PLACES, (low, valley, high), strict=True)}
    for name, i in zip(DEPTHS, (lower, 0, 1), strict=True):
        found[name], found[name + "_err"] = float(value[i]), float(error[i])
    return found
