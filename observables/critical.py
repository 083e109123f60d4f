"""Signs of a continuous transition: the Binder cumulant, its slope in a coupling, and the size of the fluctuations.

With U = ... + c f X, every average moves as d<O>/dc = -beta f (<O X> - <O><X>), so that the slope of

    B = 1 - <m^4> / (3 <m^2>^2),     dB/dc = (1 - B) (2 <m^2>'/<m^2> - <m^4>'/<m^4>)

comes from the same samples as B itself, without differences between neighbouring couplings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.equal_point import free_coupling
from observables.estimation.errors import Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.labels import dataset
from observables.estimation.moments import Columns
from observables.estimation.targets import Targets
from observables.samples.base import Samples
from observables.samples.pool import Pool, Source

Array = np.ndarray

NEEDED = ("m2", "m4", "abs_m")


def binder(
    ladder: Source, coupling: str | None = None, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any
) -> xr.Dataset:
    """Binder cumulant, its slope in a coupling, and the fluctuations V <m^2> and V (<m^2> - <|m|>^2), over couplings.

    Parameters
    ----------
    ladder, beta, errors, couplings
        As in `partition_function`.  The observables m2, m4 and abs_m must have been recorded.
    coupling : str
        The coupling in which the slope is taken; by default the first one of the run (mu2 of phi^4 and phi^6).

    Returns
    -------
    Dataset
        binder, binder_slope, fluctuation = V <m^2> and susceptibility = V (<m^2> - <|m|>^2), each with its error, and ess.
        V is the number of degrees of freedom, the sites of a scalar field.

    Examples
    --------
    >>> found = observables.binder(ladder, mu2=np.linspace(-1.30, -1.25, 6))
    >>> found.binder.values, found.binder_slope.values
    """
    pool = Pool.of(ladder)
    missing = [name for name in NEEDED if name not in pool.observables]
    if missing:
        raise ValueError(
            f"The Binder cumulant needs the observables {', '.join(NEEDED)}; {missing[0]} was not recorded."
        )
    coupling = free_coupling(pool, coupling, {})
    _, conjugate, factor = pool.couplings[coupling]
    volume = float(pool.run.dimension)
    targets = Targets.grid(pool, beta, couplings)
    at = np.array([point["beta"] for point in targets.points])

    def moments(samples: Samples, energy: Array) -> Columns:
        m2, m4, abs_m = (samples.observable(name).astype(float) for name in NEEDED)
        x = samples.observable(conjugate).astype(float)
        return Columns([m2, m4, abs_m, x, m2 * x, m4 * x])

    def cumulant(mean: Array) -> Array:
        return 1 - mean[:, 1] / (3 * mean[:, 0] ** 2)

    def slope(log_z: Array, mean: Array) -> Array:
        m2, m4, _, x, m2x, m4x = mean.T
        relative_m2, relative_m4 = (-at * factor * (ox / o - x) for o, ox in ((m2, m2x), (m4, m4x)))
        return (1 - cumulant(mean)) * (2 * relative_m2 - relative_m4)

    uncertain = Uncertain(estimate(pool, targets, moments), errors)
    return dataset(
        uncertain,
        {
            "binder": uncertain.of(lambda log_z, mean: cumulant(mean)),
            "binder_slope": uncertain.of(slope),
            "fluctuation": uncertain.of(lambda log_z, mean: volume * mean[:, 0]),
            "susceptibility": uncertain.of(lambda log_z, mean: volume * (mean[:, 0] - mean[:, 2] ** 2)),
        },
    ).assign_attrs(slope_in=coupling)
