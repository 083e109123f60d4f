"""Two phases on either side of a cut: their weights, and averages within each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from observables.estimation.errors import Answer, Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.labels import dataset
from observables.estimation.moments import Columns
from observables.estimation.targets import Targets
from observables.samples.base import Samples
from observables.samples.pool import Pool, Source

Array = np.ndarray


class TwoPhases(NamedTuple):
    """Two phases told apart by one observable: `by` < `cut`, and `by` >= `cut`."""

    by: str
    cut: float
    names: tuple[str, str] = ("disordered", "ordered")

    @staticmethod
    def among(phases: Mapping[str, tuple[str, float, float]]) -> TwoPhases | None:
        """From the phases of a run, {name: (observable, low, high)}; None if they are not two of one observable."""
        if len(phases) != 2:
            return None
        lower, upper = sorted(phases, key=lambda name: phases[name][1])
        by, _, cut = phases[lower]
        return TwoPhases(by, float(cut), (lower, upper)) if phases[upper][0] == by and math.isfinite(cut) else None

    @staticmethod
    def of(pool: Pool, by: str | None = None, cut: float | None = None) -> TwoPhases:
        """The two phases that the run carries, or those given by an observable and a cut."""
        own = TwoPhases.among(pool.run.phases)
        by = own.by if by is None and own is not None else by
        cut = own.cut if cut is None and own is not None and own.by == by else cut
        if by is None or cut is None:
            raise ValueError(
                f"{pool.run.problem} names no two phases told apart by one observable; give the observable and the bound "
                "between the phases, such as by='m', cut=0.5."
                if own is None
                else f"The phases of {pool.run.problem} are told apart by {own.by}; for by={by!r} a cut is needed as well."
            )
        pool.check_recorded(by)
        _refuse_undefined(pool, by)
        return own if own is not None and (own.by, own.cut) == (by, cut) else TwoPhases(by, cut)

    def upper(self, samples: Samples) -> Array:
        """Whether a sample is in the upper phase, `by` >= `cut`."""
        return samples.observable(self.by) >= self.cut

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of a result about these phases."""
        return {"phase_by": self.by, "phase_cut": float(self.cut)}


def _refuse_undefined(pool: Pool, by: str) -> None:
    """A sample whose `by` is NaN belongs to neither phase, and would count as the lower one."""
    undefined = total = 0
    for samples, base in pool.weighted:
        weighed = np.isfinite(base)
        undefined += int(np.isnan(samples.observable(by)[weighed]).sum())
        total += int(weighed.sum())
    if undefined:
        raise ValueError(
            f"{by} is undefined (NaN) for {undefined / total:.2g} of the samples, so it cannot tell the phases of "
            f"{pool.run.problem} apart; choose an observable that is defined everywhere."
        )


def phase_weights(
    ladder: Source,
    by: str | None = None,
    cut: float | None = None,
    beta: Any = 1.0,
    *,
    errors: str = "auto",
    **couplings: Any,
) -> xr.Dataset:
    """The share of the ordered phase, that is of `by` >= `cut`, and the log of its odds.

    Parameters
    ----------
    ladder : Ladder, Walk, several of them, or Pool
        The samples.
    by, cut : str, float
        The observable that tells the phases apart, and the bound between them; by default those of the two phases that
        the problem names.
    beta, errors, couplings
        As in `partition_function`.

    Returns
    -------
    Dataset
        ordered_share and log_odds with their errors, and ess.

    Examples
    --------
    >>> observables.phase_weights(ladder, mu2=[2.28, 2.29, 2.30]).ordered_share
    >>> observables.phase_weights(ladder, by="q", cut=1.25, mu2=2.29)
    """
    pool = Pool.of(ladder)
    phases = TwoPhases.of(pool, by, cut)
    targets = Targets.grid(pool, beta, couplings)
    found = estimate(pool, targets, lambda samples, energy: Columns([phases.upper(samples).astype(float)]))
    uncertain = Uncertain(found, errors)
    answers = {
        "ordered_share": uncertain.of(lambda log_z, mean: mean[:, 0]),
        "log_odds": uncertain.of(lambda log_z, mean: np.log(mean[:, 0]) - np.log1p(-mean[:, 0])),
    }
    return dataset(uncertain, answers).assign_attrs(phases.attrs)


def phase_averages(
    ladder: Source,
    by: str | None = None,
    cut: float | None = None,
    beta: float = 1.0,
    *,
    errors: str = "auto",
    **couplings: float,
) -> xr.Dataset:
    """Averages within each of two phases, over the dimension `phase`.

    Parameters
    ----------
    ladder, by, cut
        As in `phase_weights`.
    beta, errors, couplings
        As in `partition_function`, but for a single target.

    Returns
    -------
    Dataset
        share and log_z = log(share Z) of each phase, the mean energy and every recorded observable within it, each with its
        error.  The coordinate `phase` has the names that the problem gives its phases, the one with the lower `by` first;
        for any other cut they are disordered (`by` < `cut`) and ordered.

    Examples
    --------
    >>> found = observables.phase_averages(ladder, mu2=2.286)
    >>> float(found.q.sel(phase="ordered")), float(found.q_err.sel(phase="ordered"))
    """
    pool = Pool.of(ladder)
    phases = TwoPhases.of(pool, by, cut)
    targets = Targets.single(pool, beta, couplings, "Phase averages have")
    names = ["energy", *pool.observables]

    def moments(samples: Samples, energy: Array) -> Columns:
        """1 and O within each phase, both phases in turn."""
        upper = phases.upper(samples)
        values = [np.ones(len(energy)), energy, *(samples.observable(name) for name in pool.observables)]
        return Columns([np.where(inside, v, 0.0) for inside in (~upper, upper) for v in values])

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
    result = dataset(uncertain, answers, extra=("phase",)).assign_coords(phase=list(phases.names))
    return result.assign_attrs(phases.attrs)
