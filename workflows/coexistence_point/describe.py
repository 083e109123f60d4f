"""The coexistence point of a walk: both phases there, and the reasons to doubt it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from observables.interfaces import Walls, is_flat
from observables.phases import TwoPhases
from observables.samples.of_walks import crossings
from quenchphys.autocorrelation import integrated_time
from quenchphys.samplers.softness import too_soft
from quenchphys.walk import Walk

Answer = Callable[[observables.Pool], tuple[float, float]]  # a number and its error

LARGEST_ERROR = 0.4  # of the log odds, in nats, above which a jackknife over chains is no error to be trusted
FEWEST_CROSSINGS = 2.0  # from phase to phase, in a group of chains
ENOUGH_CROSSINGS = 8.0  # in a group on average, that is one a chain: chains run on until they have these and the fewest
FEWEST_MEETINGS = 10.0  # of samples of chains with draws from the prior, in a group
DRIFT = 4.0  # standard errors between the first and the second half of a walk, above which chains remember their start
MIDDLE = (0.25, 0.75)  # of the way from one phase to the other, where the cut between them must lie
DISAGREEMENT = 5.0  # standard errors between pilot and chains, and nats, above which one of them missed something


class Ends(NamedTuple):
    """Energies between which chains travel, and the order parameters that tell in which phase a chain is."""

    low: float
    """One standard deviation of U below its mean in the lower phase."""
    high: float
    """One above its mean in the higher, or the median of the prior if that is higher still, so that chains meet it."""
    inner: tuple[float, float]
    """The order parameter in both phases, moved a tenth of the way towards each other."""

    @staticmethod
    def of(pool: observables.Pool, phases: TwoPhases, here: dict[str, float]) -> Ends:
        """From the samples of a ladder, weighted at these couplings; U is that of the ladder."""
        sums = np.zeros((2, 4))  # of 1, U, U^2 and the order parameter, in either phase
        top = max(
            (base - replica.energy_at(here))[np.isfinite(base)].max()
            for replica, base in pool.weighted
        )
        for replica, base in pool.weighted:
            some = np.isfinite(base)
            energy, order = (replica.observable(name)[some].astype(float) for name in ("energy", phases.by))
            weight = np.exp(base[some] - replica.energy_at(here)[some] - top)
            table = weight * np.stack([np.ones_like(energy), energy, energy**2, order])
            for phase, inside in enumerate((order < phases.cut, order >= phases.cut)):
                sums[phase] += table[:, inside].sum(axis=1)
        _, mean, square, order = (sums / sums[:, :1]).T
        width = np.sqrt(square - mean**2)
        step = 0.1 * (order[1] - order[0])
        inner = float(order[0] + step), float(order[1] - step)
        prior = np.median(np.concatenate([replica.prior_energy for replica in pool.replicas]))
        return Ends(float((mean - width).min()), float(max((mean + width).max(), prior)), inner)


def describe_point(
    pilot: observables.Pool,
    walks: list[Walk],
    ends: Ends,
    coupling: str,
    phases: TwoPhases,
) -> xr.Dataset:
    """The coexistence point from a walk, and both phases at it."""
    by, cut, _ = phases
    run = pilot.couplings[coupling][0]
    count = crossings(walks, by, ends.inner)
    if not count.any():
        raise RuntimeError(
            f"The chains at {coupling} = {run:.6g} never crossed from one phase to the other, so their coexistence point "
            "cannot be found; try more sweeps."
        )
    pool = observables.Pool(walks)
    weight = observables.equal_weight(pool, coupling, by=by, cut=cut)
    point = float(weight[coupling])
    here: dict[str, Any] = {coupling: point}
    result = observables.coexisting_phases(pool, coupling, by=by, cut=cut).drop_vars("beta")
    result[f"{coupling}_group"] = weight[f"{coupling}_block"].rename(block="group")
    result["log_odds_slope"], result["log_odds_slope_err"] = weight["log_odds_slope"], weight["log_odds_slope_err"]
    at_run = observables.phase_weights(pool, by=by, cut=cut)
    result[f"{coupling}_run"] = xr.Variable((), run, {"long_name": f"{coupling} of the pilot ladder and the chains"})
    for name in ("ordered_share", "ordered_share_err"):
        result[name] = at_run[name].drop_vars("beta")
        result[name].attrs["long_name"] += f" at {coupling}_run"
    alone = observables.equal_weight(pilot, coupling, by=by, cut=cut)
    for end in ("", "_err"):
        words = {"long_name": f"{coupling} of the pilot ladder alone"}
        result[f"{coupling}_pilot{end}"] = xr.Variable((), float(alone[f"{coupling}{end}"]), words)
    result["crossings"] = xr.Variable("group", count, {"long_name": "crossings of chains from phase to phase"})
    drift = drift_of(walks, equal_weight_of(coupling, phases))
    result["drift"] = xr.Variable((), drift, {"long_name": "second half minus first, in errors"})
    words = {"long_name": "integrated autocorrelation time of the chains", "units": "sweeps"}
    result["tau"] = xr.Variable((), memory(walks, by), words)
    assert pool.scale is not None
    words = {"long_name": "samples of chains and draws from the prior that could be either"}
    met = [pool.scale.meetings[some].sum() for some in pool.together]
    result["meetings"] = xr.Variable("group", met, words)
    shape = walks[0].last.shape[2:]
    _add_heights(result, pool, coupling, phases, point)
    _add_walls(result, pool, shape, phases, here)
    _add_distributions(result, pool, by, here)
    why = doubts(pilot.ladders[0], walks, result, coupling)
    if why:
        warnings.warn("The coexistence point is not to be trusted: " + " ".join(why), stacklevel=4)
    return result.assign_attrs(
        workflow="coexistence", method="crossing", coupling=coupling, trusted=int(not why), why=" ".join(why)
    )


def memory(walks: list[Walk], by: str) -> float:
    """Autocorrelation time tau of successive parts of a walk, in sweeps: the longer of those of U and of `by`."""
    names = dict.fromkeys(("energy", by))
    series = {name: np.concatenate([walk.data[name].values for walk in walks], axis=1) for name in names}
    times = [integrated_time(np.moveaxis(values, 1, 0)) for values in series.values()]
    return float(np.nanmax([1.0, *times]))  # NaN where nothing ever changes


def drift_of(walks: list[Walk], answer: Answer) -> float:
    """How far an answer moved from the first half of a walk to the second, in standard errors.

    NaN where a half does not know it.
    """
    middle = len(walks) // 2
    try:
        halves = [answer(observables.Pool(half)) for half in (walks[:middle], walks[middle:])]
    except ValueError:
        return float("nan")
    (first, error), (second, error_too) = halves
    return float((second - first) / np.hypot(error, error_too))


def equal_weight_of(coupling: str, phases: TwoPhases) -> Answer:
    """The coupling of equal weight, of a pool."""

    def answer(pool: observables.Pool) -> tuple[float, float]:
        found = observables.equal_weight(pool, coupling, by=phases.by, cut=phases.cut)
        return float(found[coupling]), float(found[f"{coupling}_err"])

    return answer


def _add_heights(
    result: xr.Dataset, pool: observables.Pool, coupling: str, phases: TwoPhases, point: float
) -> None:
    """Equal height and the barrier; NaN where the distribution has no two peaks."""
    names = {coupling: f"{coupling}_equal_height", "barrier": "barrier"}
    try:
        height = observables.equal_height(pool, coupling, by=phases.by, cut=phases.cut, start=point)
    except ValueError:
        height = xr.Dataset({name + end: xr.Variable((), np.nan) for name in names for end in ("", "_err")})
    for name, label in names.items():
        result[label], result[f"{label}_err"] = height[name].variable, height[f"{name}_err"].variable


def _add_walls(
    result: xr.Dataset, pool: observables.Pool, shape: tuple[int, ...], phases: TwoPhases, here: dict[str, Any]
) -> None:
    """The plateau of P between the phases, and the tension of the walls that it consists of, where there are any."""
    if len(shape) < 2 or not np.isfinite(result["barrier"]):
        return
    found = observables.mixed_states(pool, by=phases.by, cut=phases.cut, **here)
    for name in ("plateau", "plateau_bend"):
        result[name], result[f"{name}_err"] = found[name].variable, found[f"{name}_err"].variable
    walls = Walls.across(shape)
    tension = walls.tension(float(found["plateau"]), float(found["plateau_err"]))
    words = {"long_name": "interface tension, from the plateau of P(q)", "units": "nats per site of wall"}
    if is_flat(found) and np.isfinite(tension[0]):
        for end, value in zip(("", "_err"), tension, strict=True):
            result[f"interface_tension{end}"] = xr.Variable((), value, words)
    words = {"long_name": "area of two walls across the lattice", "units": "sites"}
    result["wall_area"] = xr.Variable((), walls.area, words)
    words = {"long_name": "known terms of the plateau beside the tension", "units": "nats"}
    result["wall_term"] = xr.Variable((), walls.known, words)


def _add_distributions(result: xr.Dataset, pool: observables.Pool, by: str, here: dict[str, Any]) -> None:
    """P of the order parameter, of the magnetisation where it is recorded, and of the energy, at coexistence."""
    for name in dict.fromkeys([by, *(["m"] if "m" in pool.observables else [])]):
        found = observables.distribution(pool, of=name, bins="adaptive", **here)
        axis = f"{name}_axis"
        for part, label in (("p", f"p_{name}"), ("p_err", f"p_{name}_err")):
            result[label] = ((axis,), found[part].values, {"long_name": f"probability density of {name}"})
        result[axis] = ((axis,), found[name].values, {"long_name": name})
    found = observables.energy_distribution(pool, bins="adaptive", **here)
    for part, label in (("log_p", "log_p_energy"), ("log_p_err", "log_p_energy_err")):
        result[label] = (("energy_axis",), found[part].values, {"long_name": "log probability density of the energy"})
    result["energy_axis"] = (("energy_axis",), found["energy"].values, {"long_name": "energy", "units": "nats"})


def cut_through_a_phase(point: xr.Dataset) -> str:
    """A sentence if the cut between the phases is too close to one of them, or beyond it; else nothing.

    Mean field knows where strong transitions are to be cut.  At a weak one its cut goes through the ordered phase, whose
    lower part then counts as disordered: the jump comes out too small, and the point with it.
    """
    by, cut = point.attrs["phase_by"], float(point.attrs["phase_cut"])
    low, high = (float(value) for value in point[by].values)
    if MIDDLE[0] < (cut - low) / (high - low) < MIDDLE[1]:
        return ""
    return (
        f"The phases at {by} = {low:.3g} and {high:.3g} are cut at {cut:.3g}, too close to one of them: the transition is "
        "too weak for this cut; a larger lattice has sharper phases."
    )


def doubts(pilot: qp.Ladder, walks: list[Walk], result: xr.Dataset, coupling: str) -> list[str]:
    """Why the answer might be wrong: each a sentence; none if the chains crossed often between the phases."""
    reasons = []
    if not (pilot.outcome.trusted or pilot.outcome is qp.Outcome.LAGGED):  # chains make up for a lag
        reasons.append(f"The pilot ladder ended with '{pilot.outcome.value}'.")
    if soft := too_soft(pilot):
        reasons.append(soft + ".")
    slope, here, error = (float(result[name]) for name in ("log_odds_slope", coupling, f"{coupling}_err"))
    log_odds = slope * (here - result[f"{coupling}_group"].values)
    crossed = result["crossings"].values
    if not np.isfinite(log_odds).all():
        reasons.append("A group of chains saw one phase only; more sweeps are needed.")
    elif crossed.mean() < FEWEST_CROSSINGS:
        reasons.append(
            f"The chains crossed from phase to phase only {crossed.sum()} times (at least "
            f"{FEWEST_CROSSINGS * len(crossed):g} are needed); more sweeps are needed."
        )
    elif error * abs(slope) > LARGEST_ERROR:
        reasons.append(
            f"The log odds of the phases are known to {error * abs(slope):.2g} nats only (the chains can tell an "
            f"error of up to {LARGEST_ERROR:g}); more sweeps are needed."
        )
    if (met := result["meetings"].values.mean()) < FEWEST_MEETINGS:
        reasons.append(
            f"The chains hardly met the energies of the prior ({met:.2g} times a group, at least {FEWEST_MEETINGS:g} are "
            "needed), so log Z is not known; more sweeps are needed."
        )
    if abs(drift := float(result["drift"])) > DRIFT:
        reasons.append(
            f"The second half of the walk is {abs(drift):.1f} errors away from the first in {coupling} (at most {DRIFT:g} "
            "would be chance): the chains remember their start; more sweeps are needed."
        )
    if why := cut_through_a_phase(result):
        reasons.append(why)
    undefined = max(float(walk.attrs["undefined"]) for walk in walks)
    if undefined > 0:
        reasons.append(f"The energy was undefined (NaN) for {undefined:.2g} of the moves of the chains.")
    alone, alone_err = float(result[f"{coupling}_pilot"]), float(result[f"{coupling}_pilot_err"])
    apart = abs(here - alone)
    if apart > DISAGREEMENT * np.hypot(error, alone_err) and apart * abs(slope) > DISAGREEMENT:
        reasons.append(
            f"The pilot ladder alone finds {coupling} = {alone:.6g} +- {alone_err:.2g}, {apart * abs(slope):.1f} nats of "
            "log odds away: one of the two missed a part of a phase."
        )
    return reasons
