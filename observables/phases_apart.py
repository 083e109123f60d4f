"""Coexistence of two phases that were sampled apart: their absolute log Z, and where they are equal.

A bridge (`quenchphys.bridge`) gives log Z of one phase, and reweighting carries it to a nearby coupling c.  With
U = ... + c f X the log odds log(Z_o / Z_d) have the slope -f (<X>_o - <X>_d), so Newton's method finds the coupling of equal
weight.  The phases are independent, so squares of errors add up: a quantity Q of one phase, read at the root, has the part

    dQ = delta Q + Q' delta c,     delta c = -+ delta(log Z) / slope,     Q' = dQ/dc,

from its own groups of chains, and Q' delta c from those of the other phase.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr

from observables.estimation.errors import Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.moments import Columns
from observables.estimation.targets import Targets
from observables.samples.base import Samples
from observables.samples.pool import Pool
from quenchphys.ladder import Ladder

Array = np.ndarray

NEWTON_STEPS = 20
CONVERGED = 1e-6  # nats of log odds
NAMES = ("disordered", "ordered")
SIGNS = (-1.0, 1.0)  # of log Z in the log odds
ENERGY = "potential"  # the name under which a phase records the energy of the whole model


class Number(NamedTuple):
    """A number and its standard error."""

    value: float
    error: float


class _Phase:
    """One phase: log Z in absolute terms and averages, at any coupling near that of its run."""

    def __init__(self, ladder: Ladder, coupling: str):
        if "log_scale" not in ladder.parameters:
            raise ValueError(f"{ladder.problem} has no log_scale: phases apart are bridges to lattices.phase_fields.")
        self.pool = Pool.of(ladder)
        if coupling not in self.pool.couplings:
            known = ", ".join(self.pool.couplings)
            raise ValueError(f"{ladder.problem} has no coupling {coupling!r}; its couplings are: {known}.")
        self.coupling = coupling
        self.log_scale = float(ladder.parameters["log_scale"])
        self.at_run, self.conjugate, self.factor = self.pool.couplings[coupling]
        self.names = list(ladder.observables)

    def at(self, value: float) -> Uncertain:
        """Estimates of log Z and of the mean of every observable."""
        targets = Targets.grid(self.pool, 1.0, {self.coupling: value})

        def moments(samples: Samples, energy: Array) -> Columns:
            columns = {name: samples.observable(name) for name in self.names}
            # The energy of the whole model moves with the coupling.
            moved = (value - self.at_run) * self.factor * columns[self.conjugate].astype(float)
            columns[ENERGY] = columns[ENERGY] + moved
            return Columns(list(columns.values()))

        return Uncertain(estimate(self.pool, targets, moments))

    def log_z(self, found: Uncertain) -> Number:
        """Absolute log Z of the phase."""
        value, error = found.of(lambda log_z, mean: log_z)
        return Number(float((value + found.log_correction(error))[0]) + self.log_scale, float(error[0]))

    def means(self, found: Uncertain) -> Array:
        return found.found.pooled()[1][0]

    def force(self, found: Uncertain) -> float:
        """d log Z / dc = -f <X>"""
        return -self.factor * float(self.means(found)[self.names.index(self.conjugate)])


class _Root(NamedTuple):
    """Where the phases are equal, and both phases there."""

    value: float
    slope: float
    found: tuple[Uncertain, Uncertain]


def separate_phases(disordered: Ladder, ordered: Ladder, coupling: str = "mu2") -> xr.Dataset:
    """The coupling at which two phases that were sampled apart have equal weight, and both phases there.

    Parameters
    ----------
    disordered, ordered : Ladder
        Bridges to the two phases of `lattices.phase_fields`, at couplings near the point of equal weight.
    coupling : str
        The coupling to be found.

    Returns
    -------
    Dataset
        The coupling of equal weight with its error; log_odds of the ordered phase at the coupling of the run
        (<coupling>_run) and their slope; log_z and every observable over the dimension `phase`, energy among them;
        latent_heat.

    Examples
    --------
    >>> phases = lattices.phase_fields(lattices.phi6(L=40, mu2=2.2839))
    >>> observables.separate_phases(*(qp.bridge(phases[name]) for name in ("disordered", "ordered")))
    """
    phases = _Phase(disordered, coupling), _Phase(ordered, coupling)
    run = phases[0].at_run
    if phases[1].at_run != run:
        raise ValueError(f"The phases were sampled at different {coupling}: {run:.9g} and {phases[1].at_run:.9g}.")
    at_run = _log_odds(phases, (phases[0].at(run), phases[1].at(run)))
    root = _root(phases, run)
    log_odds = _log_odds(phases, root.found)
    error = log_odds.error / abs(root.slope)
    result = xr.Dataset(attrs=phases[0].pool.attrs | {"coupling": coupling, "errors_from": "replicas"})
    scalars = {
        coupling: (root.value, error, f"{coupling} of equal weight"),
        "log_odds": (at_run.value, at_run.error, f"log odds of the ordered phase at {coupling}_run"),
    }
    step = max(error, 1e-9 * abs(root.value))
    slopes = [_slopes(phase, root.value, step) for phase in phases]
    names = phases[0].names
    answers = {name: [_mean(phases, root, slopes, i, j) for i in range(2)] for j, name in enumerate(names)}
    answers["energy"] = answers.pop(ENERGY)
    answers["log_z"] = [_log_z(phases, root, i) for i in range(2)]
    for name, both in answers.items():
        for end, values in (("", [a.value for a in both]), ("_err", [a.error for a in both])):
            result[name + end] = ("phase", values, {"long_name": f"{'standard error of ' * bool(end)}{name}", "units": "1"})
    heat = _latent_heat(phases, root, slopes)
    scalars["latent_heat"] = (heat.value, heat.error, "latent heat <U>_disordered - <U>_ordered")
    for name, (value, uncertainty, words) in scalars.items():
        result[name] = xr.Variable((), value, {"long_name": words})
        result[f"{name}_err"] = xr.Variable((), uncertainty, {"long_name": f"standard error of {words}"})
    result["log_odds_slope"] = xr.Variable((), root.slope, {"long_name": f"slope of the log odds in {coupling}"})
    result[f"{coupling}_run"] = xr.Variable((), run, {"long_name": f"{coupling} of the bridges"})
    return result.assign_coords(phase=list(NAMES))


def _log_odds(phases: tuple[_Phase, _Phase], found: tuple[Uncertain, Uncertain]) -> Number:
    both = [phase.log_z(here) for phase, here in zip(phases, found, strict=True)]
    return Number(both[1].value - both[0].value, float(np.hypot(both[0].error, both[1].error)))


def _root(phases: tuple[_Phase, _Phase], start: float) -> _Root:
    value = start
    for _ in range(NEWTON_STEPS):
        found = phases[0].at(value), phases[1].at(value)
        slope = phases[1].force(found[1]) - phases[0].force(found[0])
        excess = float(_log_odds(phases, found).value)
        if abs(excess) < CONVERGED:
            return _Root(value, slope, found)
        value -= excess / slope
    raise ValueError(f"No {phases[0].coupling} of equal weight was found near {start:.6g}: the samples do not reach it.")


def _slopes(phase: _Phase, value: float, step: float) -> Array:
    """d<O>/dc of every observable."""
    low, high = (phase.means(phase.at(value + side * step)) for side in (-1, 1))
    return (high - low) / (2 * step)


Function = Callable[[float, Array], float]  # (log Z, means of the observables) -> a quantity


def _own(root: _Root, phase: int, function: Function) -> float:
    """The part of an error that comes from the groups of one phase."""
    found = root.found[phase]
    return float(found.of(lambda log_z, mean: np.array([function(log_z[0], mean[0])])).error[0])


def _shift(root: _Root, phase: int, log_z: float) -> float:
    """How far the root moves with log Z of a phase."""
    return -SIGNS[phase] * (log_z - float(root.found[phase].found.pooled()[0][0])) / root.slope


def _mean(phases: tuple[_Phase, _Phase], root: _Root, slopes: list[Array], i: int, j: int) -> Number:
    """Observable j of phase i at the root."""
    slope, other = slopes[i][j], 1 - i
    own = _own(root, i, lambda log_z, mean: mean[j] + slope * _shift(root, i, log_z))
    moved = _own(root, other, lambda log_z, mean: slope * _shift(root, other, log_z))
    return Number(float(phases[i].means(root.found[i])[j]), float(np.hypot(own, moved)))


def _log_z(phases: tuple[_Phase, _Phase], root: _Root, i: int) -> Number:
    """log Z of phase i at the root, where both are the same."""
    slope, other = phases[i].force(root.found[i]), 1 - i
    own = _own(root, i, lambda log_z, mean: log_z + slope * _shift(root, i, log_z))
    moved = _own(root, other, lambda log_z, mean: slope * _shift(root, other, log_z))
    return Number(phases[i].log_z(root.found[i]).value, float(np.hypot(own, moved)))


def _latent_heat(phases: tuple[_Phase, _Phase], root: _Root, slopes: list[Array]) -> Number:
    j = phases[0].names.index(ENERGY)
    slope = slopes[0][j] - slopes[1][j]

    def heat(phase: int) -> Function:
        return lambda log_z, mean: -SIGNS[phase] * mean[j] + slope * _shift(root, phase, log_z)

    parts = [_own(root, phase, heat(phase)) for phase in range(2)]
    energies = [phases[i].means(root.found[i])[j] for i in range(2)]
    return Number(float(energies[0] - energies[1]), float(np.hypot(parts[0], parts[1])))
