"""What is each phase like?  Averages within the phases on either side of a cut."""

from __future__ import annotations

import numpy as np
import xarray as xr

from observables.estimation.errors import Answer, Uncertain
from observables.estimation.estimator import Columns, Targets, estimate
from observables.estimation.labels import dataset
from observables.order import check_recorded
from observables.samples.of_ladders import Samples
from observables.samples.pool import Pool, Source

Array = np.ndarray

PHASES = ["disordered", "ordered"]


def phase_averages(
    ladder: Source, by: str = "q", cut: float = 1.25, beta: float = 1.0, *, errors: str = "auto", **couplings: float
) -> xr.Dataset:
    """Averages within the disordered (`by` < `cut`) and the ordered phase, over the dimension `phase`.

    share and log_z = log(share Z) of each phase, the mean energy and every recorded observable within it.
    """
    pool = Pool.of(ladder)
    check_recorded(pool, by)
    targets = Targets.grid(pool, beta, couplings)
    if targets.dims:
        raise ValueError(f"Phase averages have one target: {targets.dims[0]} must be a single number.")
    names = ["energy", *pool.observables]

    def moments(replica: Samples, energy: Array) -> Columns:
        """1 and O within each phase, both phases in turn."""
        ordered = replica.observable(by) >= cut
        values = [np.ones(len(energy)), energy, *(replica.observable(name) for name in pool.observables)]
        # An undefined value belongs to a sample without weight, but 0 * NaN would spoil the sum.
        return Columns([np.where(inside, np.nan_to_num(v), 0.0) for inside in (~ordered, ordered) for v in values])

    uncertain = Uncertain(estimate(pool, targets, moments), errors)

    def shares(mean: Array) -> Array:
        """(T, phase)"""
        return mean.reshape(len(mean), 2, -1)[:, :, 0]

    def within(mean: Array) -> Array:
        """(T, phase, observable)"""
        table = mean.reshape(len(mean), 2, -1)
        return table[:, :, 1:] / table[:, :, :1]

    averages = uncertain.of(lambda log_z, mean: within(mean))
    answers = {name: Answer(averages.value[..., i], averages.error[..., i]) for i, name in enumerate(names)}
    answers["share"] = uncertain.of(lambda log_z, mean: shares(mean))
    answers["log_z"] = uncertain.of(lambda log_z, mean: log_z[:, None] + np.log(shares(mean)))
    result = dataset(uncertain, answers, extra=("phase",)).assign_coords(phase=PHASES)
    return result.assign_attrs(phase_by=by, phase_cut=float(cut))
