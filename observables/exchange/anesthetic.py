"""Samples as anesthetic takes them: a table of weighted samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from observables.exchange.weighted import Weighted, library
from observables.samples.pool import Source

LABELS = {
    "energy": "$U$",
    "q": "$q$",
    "m": "$m$",
    "abs_m": "$|m|$",
    "m2": "$m^2$",
    "m4": "$m^4$",
    "phi2": r"$\sum\phi^2$",
    "phi4": r"$\sum\phi^4$",
    "phi6": r"$\sum\phi^6$",
}


def to_anesthetic(ladder: Source, beta: float = 1.0, **couplings: Any) -> Any:
    """All samples with their weights for one target as `anesthetic.Samples`, for corner plots and weighted averages.

    Parameters
    ----------
    ladder : Ladder, Walk, several of them, or Pool
        The samples.
    beta, couplings
        As in `partition_function`, but for a single target.

    Returns
    -------
    anesthetic.Samples
        One row per sample that has weight: energy and every observable.  Weighted means are those of `order_parameters`.
        `attrs` are those of the run, with log_z.

    Examples
    --------
    >>> samples = observables.to_anesthetic(ladder, mu2=2.286)
    >>> samples.q.mean(), samples.neff()
    >>> samples.plot_2d(["q", "m"])
    """
    anesthetic = library("anesthetic", "to_anesthetic")
    samples = Weighted.of(ladder, beta, couplings, "A table of weighted samples has")
    names = list(samples.recorded)
    found = anesthetic.Samples(
        data=np.stack([samples.recorded[name].astype(float) for name in names], axis=1),
        columns=names,
        weights=samples.share / samples.share.max(),
        labels=[LABELS.get(name, name) for name in names],
        label=samples.pool.run.problem,
    )
    found.attrs.update(samples.attrs)
    return found
