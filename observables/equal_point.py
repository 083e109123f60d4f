"""Coupling at which two phases have equal weight, or equally high peaks, from one ladder or walk, with its error.

With U = ... + c f X, the log odds of the ordered phase have the exact slope

    d log(Z_ord / Z_dis) / dc = -beta f (<X>_ord - <X>_dis),

so that Newton's method needs one pass over the samples a step and the error of the root is the error of one more step.
What is read at the root takes that step as well, in every sample of the jackknife.
A coupling tilts the distribution P(q), and the heights of its two peaks move apart as

    d log(P_ord / P_dis) / dc = -beta f (<X>_ord - <X>_dis),

with <X> at the q of either peak, so that Newton's method finds where they are equal as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xarray as xr

from observables.estimation.errors import Answer, Uncertain
from observables.estimation.estimator import Estimate, estimate
from observables.estimation.labels import dataset
from observables.estimation.moments import Columns, Moments
from observables.estimation.targets import Targets
from observables.histogram import FineHistogram, bins_of, observable_or_energy, weighted_values
from observables.peaks import Landmarks, Reading, at_equal_heights, edges_of, equal_heights, readings
from observables.phases import TwoPhases
from observables.samples.base import Samples
from observables.samples.pool import Pool, Source

Array = np.ndarray
Found = TypeVar("Found")

LARGEST_STEP = 4.0  # nats that a step may move: the samples should overlap with the next target
NEWTON_STEPS = 40
WEIGHTS_CONVERGED = 1e-6  # nats of log odds
HEIGHTS_CONVERGED = 1e-4  # nats
NEAR = 1.0  # standard errors of a difference of heights, from which one step with the same bins reaches the root

class Excess(NamedTuple):
    """How far a coupling is from the root, in nats, and how fast that changes."""

    value: float
    slope: float
    converged: bool


def damped_newton(excess: Callable[[float], tuple[Excess, Found]], start: float, steps: int) -> tuple[float, Found] | None:
    """The root of a function in nats, by Newton steps of LARGEST_STEP nats at most; None if there is none.

    `excess` returns the function at a coupling, and what else was found there.
    """
    root = float(start)
    for _ in range(steps):
        here, found = excess(root)
        if here.converged:
            return root, found
        root -= float(np.clip(here.value, -LARGEST_STEP, LARGEST_STEP)) / here.slope
    return None


def free_coupling(pool: Pool, coupling: str | None, fixed: Mapping[str, Any]) -> str:
    """The coupling to solve for: the one given, or the first that the run lists and that is not fixed."""
    free = [name for name in pool.couplings if name not in fixed]
    if coupling is None and free:
        return free[0]
    if coupling not in free:
        known = ", ".join(free) or "none"
        raise ValueError(f"{pool.run.problem} has no free coupling {coupling!r} to solve for; there are: {known}.")
    return coupling


def equal_weight(
    ladder: Source,
    coupling: str | None = None,
    by: str | None = None,
    cut: float | None = None,
    beta: float = 1.0,
    *,
    share: float = 0.5,
    errors: str = "auto",
    **couplings: Any,
) -> xr.Dataset:
    """The value of a coupling at which the ordered phase (`by` >= `cut`) has the given share.

    Parameters
    ----------
    ladder : Ladder, Walk, several of them, or Pool
        The samples.
    coupling : str
        The coupling to solve for; by default the first one of the run that `couplings` does not fix (mu2 of phi^4 and
        phi^6).
    by, cut
        How the phases are told apart, as in `phase_weights`.
    beta : float
        Inverse temperature.
    share : float
        The share of the ordered phase.
    errors, couplings
        As in `partition_function`; couplings are fixed at the values given.

    Returns
    -------
    Dataset
        The root under the coupling's name with its error; log_odds_slope, the slope of the log odds there; the mean of the
        coupling's observable in either phase; and <coupling>_block, the root of every block of replicas (or group of
        chains) by itself.  Errors of what is read at the root include that of the root.

    Examples
    --------
    >>> found = observables.equal_weight(ladder)
    >>> float(found.mu2), float(found.mu2_err)
    >>> observables.equal_weight(ladder, "lam", by="q", cut=1.25, mu2=2.29)
    """
    solved = _solve(Pool.of(ladder), coupling, by, cut, beta, share, couplings)
    balance, name, observable = solved.balance, solved.coupling, solved.observable
    uncertain = Uncertain(solved.estimate([]), errors)
    answers = {
        name: uncertain.of(lambda log_z, mean: solved.root + balance.of(log_z, mean).step[:, 0]),
        "log_odds_slope": uncertain.of(lambda log_z, mean: balance.of(log_z, mean).slope),
        f"{observable}_ordered": uncertain.of(lambda log_z, mean: balance.of(log_z, mean).conjugate[:, 1]),
        f"{observable}_disordered": uncertain.of(lambda log_z, mean: balance.of(log_z, mean).conjugate[:, 0]),
    }
    result = dataset(uncertain, answers, drop=(name,))
    found = uncertain.found
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = [solved.root + balance.of(*found.pooled(some)).step[0, 0] for some in found.pool.together]
    words = {"long_name": f"{name} of one block of replicas, or group of chains, by itself, to first order", "units": "1"}
    result[f"{name}_block"] = ("block", alone, words)
    return result.assign_attrs(solved.phases.attrs, share=float(share))


def coexisting_phases(
    ladder: Source,
    coupling: str | None = None,
    by: str | None = None,
    cut: float | None = None,
    beta: float = 1.0,
    *,
    share: float = 0.5,
    errors: str = "auto",
    **couplings: Any,
) -> xr.Dataset:
    """Averages within two phases at the coupling of equal weight, which has an error of its own.

    `phase_averages` at the root would give the same values, but the errors of a coupling that is known exactly.  Here
    every leave-one-out sample of the jackknife is read at its own root: the latent heat moves with it, and log Z of the
    two phases is the same, with the same error.

    Parameters
    ----------
    ladder, coupling, by, cut, beta, share, errors, couplings
        As in `equal_weight`.

    Returns
    -------
    Dataset
        As that of `phase_averages`, over the dimension `phase`, and latent_heat = <U>_disordered - <U>_ordered; the
        coupling of equal weight under its name, with its error.

    Examples
    --------
    >>> found = observables.coexisting_phases(ladder)
    >>> float(found.latent_heat), float(found.latent_heat_err)
    >>> found.log_z.sel(phase="ordered")
    """
    solved = _solve(Pool.of(ladder), coupling, by, cut, beta, share, couplings)
    balance = solved.balance
    names = ["energy", *solved.pool.observables]
    uncertain = Uncertain(solved.estimate(names), errors)

    def per_phase(read: Callable[[_AtRoot], Array]) -> Answer:
        return uncertain.of(lambda log_z, mean: read(balance.of(log_z, mean)))

    averages = per_phase(lambda at: at.averages)
    answers = {name: Answer(averages.value[..., i], averages.error[..., i]) for i, name in enumerate(names)}
    answers["share"] = per_phase(lambda at: at.shares)
    answers["log_z"] = per_phase(lambda at: at.log_z)
    result = dataset(uncertain, answers, extra=("phase",), drop=(solved.coupling,))
    heat = per_phase(lambda at: at.averages[:, 0, 0] - at.averages[:, 1, 0])
    root = per_phase(lambda at: solved.root + at.step[:, 0])
    for name, (value, error), words in (
        ("latent_heat", heat, {"long_name": "latent heat <U>_disordered - <U>_ordered", "units": "nats"}),
        (solved.coupling, root, {"long_name": f"{solved.coupling} of equal weight", "units": "1"}),
    ):
        result[name] = xr.Variable((), value[0], words)
        result[f"{name}_err"] = xr.Variable((), error[0], words | {"long_name": f"standard error of {words['long_name']}"})
    return result.assign_coords(phase=list(solved.phases.names)).assign_attrs(solved.phases.attrs, share=float(share))


class _AtRoot(NamedTuple):
    """What samples say at their own root, to first order in its distance from where they were weighted."""

    step: Array  # (T, 1) to the root
    slope: Array  # (T,) of the log odds
    conjugate: Array  # (T, phase) <X>
    shares: Array  # (T, phase)
    log_z: Array  # (T, phase)
    averages: Array  # (T, phase, observable)


@dataclass(frozen=True)
class _Balance:
    """Two phases at a coupling c near the root, with U = ... + c f X; both phases are moved along to the root.

    d <O>_p / dc = <dO/dc>_p - beta f (<O X>_p - <O>_p <X>_p)  and  d log Z_p / dc = -beta f <X>_p, where only O = U
    depends on c itself.
    """

    beta: float
    factor: float
    wanted: float  # log odds

    def moments(self, phases: TwoPhases, observable: str, names: Sequence[str]) -> Moments:
        """1, X and X^2, then O and O X of every observable, in either phase."""

        def of(samples: Samples, energy: Array) -> Columns:
            upper = phases.upper(samples)
            x = samples.observable(observable).astype(float)
            columns = [np.ones(len(x)), x, x**2]
            for name in names:
                value = observable_or_energy(name, samples, energy).astype(float)
                columns += [value, value * x]
            return Columns([np.where(inside, v, 0.0) for inside in (~upper, upper) for v in columns])

        return of

    def of(self, log_z: Array, mean: Array) -> _AtRoot:
        table = mean.reshape(len(mean), 2, -1)
        share = table[:, :, 0]
        within = table / share[:, :, None]
        x, square, values, products = within[:, :, 1], within[:, :, 2], within[:, :, 3::2], within[:, :, 4::2]
        pull = -self.beta * self.factor
        slope = pull * (x[:, 1] - x[:, 0])
        step = ((self.wanted - np.log(share[:, 1]) + np.log(share[:, 0])) / slope)[:, None]
        variance = square - x**2
        drift = pull * (products - values * x[:, :, None])
        if drift.shape[2]:
            drift[:, :, 0] += self.factor * x  # the energy comes first
        log_share = np.log(share) + pull * x * step
        total = np.logaddexp(log_share[:, 0], log_share[:, 1])[:, None]
        return _AtRoot(
            step=step,
            slope=slope + pull**2 * (variance[:, 1] - variance[:, 0]) * step[:, 0],
            conjugate=x + pull * variance * step,
            shares=np.exp(log_share - total),
            log_z=log_z[:, None] + log_share,
            averages=values + drift * step[:, :, None],
        )


class _Solved(NamedTuple):
    """A coupling of equal weight, and how the samples are read there."""

    pool: Pool
    phases: TwoPhases
    coupling: str
    observable: str  # conjugate to the coupling
    root: float
    targets: Targets
    balance: _Balance

    def estimate(self, names: Sequence[str]) -> Estimate:
        return estimate(self.pool, self.targets, self.balance.moments(self.phases, self.observable, names))


def _solve(
    pool: Pool,
    coupling: str | None,
    by: str | None,
    cut: float | None,
    beta: float,
    share: float,
    couplings: Mapping[str, Any],
) -> _Solved:
    """The coupling at which the ordered phase has a share, by Newton's method."""
    coupling = free_coupling(pool, coupling, couplings)
    phases = TwoPhases.of(pool, by, cut)
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1, but {share!r} was given.")
    start, observable, factor = pool.couplings[coupling]
    balance = _Balance(beta, factor, float(np.log(share / (1 - share))))
    moments = balance.moments(phases, observable, [])

    def excess(value: float) -> tuple[Excess, Targets]:
        targets = Targets.single(pool, beta, {coupling: value, **couplings}, "A coexistence point has")
        mean = estimate(pool, targets, moments, check=False).pooled()[1]
        disordered, ordered = mean.reshape(2, -1)[:, 0]
        if not (ordered > 0 and disordered > 0):
            raise ValueError(
                f"There is no sample of the {phases.names[int(not ordered > 0)]} phase (cut {phases.by} = {phases.cut:g}) "
                f"at {coupling} = {value:g}, so no {coupling} of equal weight can be found; run a ladder nearer to it."
            )
        above = float(np.log(ordered / disordered)) - balance.wanted
        x = mean.reshape(2, -1)[:, 1] / (disordered, ordered)
        slope = -beta * factor * float(x[1] - x[0])
        return Excess(above, slope, abs(above) < WEIGHTS_CONVERGED), targets

    solved = damped_newton(excess, start, NEWTON_STEPS)
    if solved is None:
        raise ValueError(
            f"No {coupling} at which {phases.by} >= {phases.cut:g} has the share {share:g} was found near {start:g}."
        )
    root, targets = solved
    return _Solved(pool, phases, coupling, observable, root, targets, balance)


def equal_height(
    ladder: Source,
    coupling: str | None = None,
    by: str | None = None,
    cut: float | None = None,
    beta: float = 1.0,
    *,
    start: float | None = None,
    errors: str = "auto",
    **couplings: float,
) -> xr.Dataset:
    """The value of a coupling at which P(`by`) has equally high peaks on either side of `cut`, with the barrier there.

    Parameters
    ----------
    ladder, coupling, by, cut, beta, errors, couplings
        As in `equal_weight`.
    start : float
        Where the search begins, by default at the coupling of the run.

    Returns
    -------
    Dataset
        The root under the coupling's name and barrier = log(P_peak / P_valley) with their errors; low_peak, valley and
        high_peak, the values of `by` where these lie.

    Examples
    --------
    >>> found = observables.equal_height(ladder)
    >>> float(found.mu2), float(found.barrier), float(found.barrier_err)
    """
    pool = Pool.of(ladder)
    coupling = free_coupling(pool, coupling, couplings)
    phases = TwoPhases.of(pool, by, cut)
    start = pool.couplings[coupling][0] if start is None else float(start)

    def excess(at: float) -> tuple[Excess, tuple[_Peaks, float, float]]:
        """The difference of the heights; with it the coupling one more step away, and its error."""
        targets = Targets.single(pool, beta, {coupling: at, **couplings}, "A coexistence point has")
        found = _Peaks.of(pool, targets, phases, errors)
        if found is None:
            raise ValueError(f"P({phases.by}) has no two peaks around {phases.by} = {phases.cut:g} at {coupling} = {at:g}.")
        difference, error = (float(part[0]) for part in found.difference())
        slope = _slope(pool, targets, found.places, coupling, phases.by)
        # Bins follow the coupling, so that the heights jump by a fraction of their error and a root may lie in a jump: the
        # last step is taken with the bins of the one before.
        converged = abs(difference) < max(HEIGHTS_CONVERGED, NEAR * error)
        return Excess(difference, slope, converged), (found, at - difference / slope, abs(error / slope))

    solved = damped_newton(excess, start, NEWTON_STEPS)
    if solved is None:
        raise ValueError(
            f"No {coupling} at which the peaks of P({phases.by}) are equally high was found near {start:g}."
        )
    _, (found, root, error) = solved
    answers = {coupling: Answer(np.array([root]), np.array([error])), "barrier": found.barrier()}
    result = dataset(found.uncertain, answers, drop=(coupling,))
    for name, place in zip(("low_peak", "valley", "high_peak"), found.places, strict=True):
        result[name] = xr.Variable((), place, {"long_name": f"{phases.by} at the {name.replace('_', ' ')}"})
    return result.assign_attrs(phases.attrs)


@dataclass(frozen=True)
class _Peaks:
    """The two peaks of P(`by`) and the valley between them, tilted to equal heights, at one target.

    The peaks are looked for where they are equally high, because far from there the lower one may be a mere shoulder.  A
    coupling whose observable is a multiple of `by` tilts log P just so.
    """

    uncertain: Uncertain
    edges: Array
    tilt: float
    three: Sequence[Reading]

    @staticmethod
    def of(pool: Pool, targets: Targets, phases: TwoPhases, errors: str) -> _Peaks | None:
        """None where there are no two peaks, or not on either side of the cut."""
        fine = FineHistogram.of(*weighted_values(pool, targets, phases.by))
        if fine is None:
            return None
        tilt = equal_heights(fine.curve, fine.centres)
        marks = Landmarks.of(fine.curve - tilt * fine.centres)
        if marks is None:
            return None
        bins = edges_of([marks])
        edges = fine.edges[bins]
        found = estimate(
            pool, targets, lambda samples, energy: bins_of(observable_or_energy(phases.by, samples, energy), edges)
        )
        peaks = _Peaks(Uncertain(found, errors), edges, tilt, readings(bins, marks, fine.edges))
        low, _, high = peaks.places
        return peaks if low < phases.cut <= high else None

    def _read(self, mean: Array) -> Array:
        log_p = np.log(mean / np.diff(self.edges))
        return at_equal_heights(self.three, log_p, 0.5 * (self.edges[1:] + self.edges[:-1]), self.tilt)

    @property
    def places(self) -> Array:
        """`by` at the low peak, the valley and the high peak."""
        return self._read(self.uncertain.found.pooled()[1])[0, 2:]

    def difference(self) -> Answer:
        """Height of the high peak above the low one: what a tilt over the distance between them takes away."""

        def height(log_z: Array, mean: Array) -> Array:
            more, _, low, _, high = self._read(mean).T
            return (self.tilt + more) * (high - low)

        return self.uncertain.of(height)

    def barrier(self) -> Answer:
        """The depth of the valley where both peaks are equally high."""
        return self.uncertain.of(lambda log_z, mean: self._read(mean)[:, 1])


def _slope(pool: Pool, targets: Targets, places: Array, coupling: str, by: str) -> float:
    """How fast the difference of the heights moves with the coupling: -beta f (<X>_high - <X>_low), <X> at either peak.

    A peak that moves along changes nothing to first order.  <X> given `by` is a parabola over the samples around a peak.
    """
    _, conjugate, factor = pool.couplings[coupling]
    x, log_w = weighted_values(pool, targets, conjugate)
    order, _ = weighted_values(pool, targets, by)
    reach = 0.25 * (places[2] - places[0])
    at_peaks = []
    for place in (places[0], places[2]):
        near = np.flatnonzero(np.abs(order - place) < reach)
        root_weight = np.exp(0.5 * (log_w[near] - log_w[near].max()))
        at_peaks.append(np.polynomial.Polynomial.fit(order[near] - place, x[near], 2, w=root_weight)(0.0))
    return -targets.points[0]["beta"] * factor * float(at_peaks[1] - at_peaks[0])
