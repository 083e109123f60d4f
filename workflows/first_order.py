"""Where do two phases coexist?  A pilot ladder finds the coupling, a production ladder at that coupling gives the answer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from quenchphys.softening import choose, too_soft
from workflows.effort import Effort
from workflows.family import Family, Model, check_bracket, family
from workflows.narration import Narrator
from workflows.study import Study

PILOTS = 6  # at most so many pilot ladders walk towards the coexistence point
SMALLEST_STEP = 1e-3  # of the bracket, by which a pilot must bring the search forward
LARGEST_SCATTER = 1.5  # nats of log odds between replicas, above which an average of them is not to be trusted


class Phases(NamedTuple):
    """The two phases of a model, told apart by one observable."""

    by: str
    cut: float


def coexistence(
    L: int | None = None,
    bracket: tuple[float, float] | None = None,
    *,
    model: Model = "phi6",
    coupling: str = "mu2",
    shape: Sequence[int] | None = None,
    particles: int | None = None,
    replicas: int = 8,
    seed: int = 0,
    softness: float | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **couplings: float,
) -> xr.Dataset:
    """The value of a coupling at which two phases weigh the same, and what both are like there.

    Parameters
    ----------
    L, shape
        The lattice: L x L, or any shape.
    bracket
        Two values of the coupling with the coexistence point between them.
    model
        "phi6", "phi4", or a function that takes its couplings by name and returns a model with two `phases`.
    coupling
        The coupling to be found; `couplings` fixes others, such as lam=-1.
    particles, replicas, seed, softness
        Of the production ladder, as in `quenchphys.quench`; pilots have a fourth of the particles.  Default: fewer
        particles on larger lattices, from 1000 down to 512, because the same error of the odds is a smaller one of the
        coupling there; the softness that the pilot shows to be safe.
    out
        File for the result; ladders go into a folder beside it, and a repeated call takes them up.
    overwrite
        Replace an existing result.  Ladders of the same request are used again, others are replaced.
    progress
        Say on standard error what happens; by default if that is a terminal.

    Returns
    -------
    Dataset
        <coupling> and <coupling>_equal_height with errors; ordered_share at the coupling of the production ladder
        (<coupling>_run); averages of every observable over the dimension `phase`; barrier and interface_tension in P(q),
        latent_heat; p_q, p_m and log_p_energy.  The attribute `trusted` is 1 or 0, and `why` says why.
    """
    if bracket is None:
        raise ValueError(f"bracket is missing: two values of {coupling} with the coexistence point between them.")
    ends = check_bracket(bracket, coupling)
    line = family(model, coupling, couplings, L, shape)
    for value in ends:
        line.at(value)  # a value the model does not allow is found here
    phases_of(line, 0.5 * sum(ends))
    effort = Effort.on(line.at(ends[0]), particles, replicas, seed, softness)
    study = Study(out, request_of(line, effort), Narrator(progress), overwrite=overwrite)
    return search(line, ends, effort, study)


def request_of(line: Family, effort: Effort) -> dict[str, Any]:
    """What makes two coexistence points the same; the bracket is only where they are looked for."""
    return {"workflow": "coexistence", **line.request(), **effort.request()}


def search(
    line: Family, bracket: tuple[float, float], effort: Effort, study: Study, start: float | None = None
) -> xr.Dataset:
    """Pilots from `start` (the middle of the bracket), production, answer; writes them where the study says."""
    seeker = Search(line, study, effort)
    root, pilot = seeker.root(bracket, 0.5 * sum(bracket) if start is None else start)
    return study.finish(seeker.production(root, seeker.softness(root, pilot)))


def phases_of(line: Family, value: float) -> Phases:
    """How the phases of the model are told apart."""
    problem = line.at(value)
    if line.coupling not in getattr(problem, "couplings", {}):
        known = ", ".join(getattr(problem, "couplings", {})) or "none"
        raise ValueError(f"{line.name} cannot be reweighted in {line.coupling}; its couplings are: {known}.")
    phases = dict(getattr(problem, "phases", {}))
    if len({observable for observable, _, _ in phases.values()}) != 1 or len(phases) != 2:
        transition = getattr(getattr(problem, "mean_field", None), "coexistence_mu2", None)
        why = (
            ""
            if transition is None
            else f" (mean field puts a first-order transition at mu2 = {transition:g} or below)"
        )
        raise ValueError(
            f"{line.name} is not expected to have two phases at {line.coupling} = {value:g}{why}: move the bracket."
        )
    (observable, _, cut), _ = sorted(phases.values(), key=lambda phase: phase[1])
    return Phases(observable, float(cut))


class Search:
    """The ladders of one coexistence point."""

    def __init__(self, line: Family, study: Study, effort: Effort):
        self.line, self.study, self.effort = line, study, effort

    def root(self, bracket: tuple[float, float], start: float) -> tuple[float, qp.Ladder]:
        """The coupling of equal weight, and the pilot that found it; refused if it does not lie in the bracket."""
        coupling, at = self.line.coupling, start
        inside = bracket  # shrinks as pilots tell on which side the root lies
        for number in range(PILOTS):
            phases = phases_of(self.line, at)
            ladder = self._ladder("pilot", at, self.effort.pilot(number))
            if not ladder.outcome.trusted:
                raise RuntimeError(
                    f"The pilot ladder at {coupling} = {at:g} ended with '{ladder.outcome.value}', so the coexistence point "
                    "cannot be found from it; try more particles, or a bracket nearer to it."
                )
            pool = observables.Pool(ladder)
            try:
                found = observables.equal_weight(pool, coupling, by=phases.by, cut=phases.cut)
                root = float(found[coupling])
            except ValueError:  # too far away to be seen from here
                root = np.nan
            if bracket[0] <= root <= bracket[1]:
                self.study.narrator.say(f"pilot: {coupling} = {root:.6g} +- {float(found[coupling + '_err']):.2g}")
                return root, ladder
            share = _share(pool, phases)
            if np.isfinite(root):
                raise ValueError(self._outside(bracket, root, pool, phases))
            lower_ordered = _ordered_below(pool, coupling, phases)
            inside = (at, inside[1]) if (share > 0.5) == lower_ordered else (inside[0], at)
            at = 0.5 * sum(inside)
            if inside[1] - inside[0] < SMALLEST_STEP * (bracket[1] - bracket[0]):
                break
        side = "above" if at > 0.5 * sum(bracket) else "below"
        raise ValueError(
            f"No coexistence point was found in {coupling} = {bracket[0]:g}..{bracket[1]:g}; it seems to lie {side} "
            f"{max(bracket) if side == 'above' else min(bracket):g}: at {at:g} the ordered share is {share:.3g}."
        )

    def softness(self, root: float, pilot: qp.Ladder) -> float:
        """The softness given, or the one that the pilot, and if need be others at the root, show to be safe."""
        if self.effort.softness is not None:
            return self.effort.softness

        def run(softness: float, number: int) -> qp.Ladder:
            if number == 0:
                return pilot
            return self._ladder("pilot", root, self.effort.pilot(PILOTS + number).softened(softness))

        found = choose(run, pilot.softness)
        self.study.narrator.say(f"pilot: softness {found:.3g}")
        return found

    def production(self, root: float, softness: float) -> xr.Dataset:
        """A ladder at the root, and everything it says about the two phases."""
        ladder = self._ladder("production", root, self.effort.softened(softness))
        return describe(ladder, self.line.coupling, phases_of(self.line, root))

    def _ladder(self, name: str, at: float, effort: Effort) -> qp.Ladder:
        where = f"{self.line.name} at {self.line.coupling} = {at:.6g}"
        file = name if effort.softness is None else f"{name}_softness_{effort.softness:.4g}"
        return self.study.ladder(f"{file}_{at:.9g}", self.line.at(at), effort, f"{name}: {where}")

    def _outside(self, bracket: tuple[float, float], root: float, pool: observables.Pool, phases: Phases) -> str:
        coupling = self.line.coupling
        side, end = ("below", bracket[0]) if root < bracket[0] else ("above", bracket[1])
        said = []
        for value in bracket:
            try:
                said.append(f"{_share(pool, phases, **{coupling: value}):.3g} at {value:g}")
            except ValueError:  # not supported there: so far from coexistence that one phase has everything
                said.append(
                    f"{1.0 if (value < root) == _ordered_below(pool, coupling, phases) else 0.0:.3g} at {value:g}"
                )
        return (
            f"The bracket does not contain the coexistence point: the ordered share is {said[0]} and {said[1]}, so "
            f"{coupling} lies {side} {end:g} (near {root:.5g})."
        )


def describe(ladder: qp.Ladder, coupling: str, phases: Phases) -> xr.Dataset:
    """The coexistence point of a ladder, and both phases at it."""
    pool = observables.Pool(ladder)
    by, cut = phases
    run = ladder.couplings[coupling][0]
    weight = observables.equal_weight(pool, coupling, by=by, cut=cut)
    point = float(weight[coupling])
    here: dict[str, Any] = {coupling: point}
    within = observables.phase_averages(pool, by=by, cut=cut, **here)
    result = within.drop_vars(["beta", coupling], errors="ignore")
    result[coupling], result[f"{coupling}_err"] = weight[coupling], weight[f"{coupling}_err"]
    result[f"{coupling}_replica"] = weight[f"{coupling}_block"].rename(block="replica")
    result["log_odds_slope"], result["log_odds_slope_err"] = weight["log_odds_slope"], weight["log_odds_slope_err"]
    at_run = observables.phase_weights(pool, by=by, cut=cut)
    result[f"{coupling}_run"] = xr.Variable((), run, {"long_name": f"{coupling} of the production ladder"})
    for name in ("ordered_share", "ordered_share_err"):
        result[name] = at_run[name].drop_vars("beta")
        result[name].attrs["long_name"] += f" at {coupling}_run"
    _add_heights(result, pool, ladder, coupling, phases, point)
    _add_distributions(result, pool, by, here)
    energy, energy_err = within["energy"].values, within["energy_err"].values
    words = {"long_name": "latent heat <U>_disordered - <U>_ordered", "units": "nats"}
    result["latent_heat"] = xr.Variable((), energy[0] - energy[1], words)
    result["latent_heat_err"] = xr.Variable((), float(np.hypot(*energy_err)), {"long_name": "standard error"})
    why = doubts(ladder, result, coupling)
    if why:
        warnings.warn("The coexistence point is not to be trusted: " + " ".join(why), stacklevel=4)
    return result.assign_attrs(workflow="coexistence", coupling=coupling, trusted=int(not why), why=" ".join(why))


def _add_heights(
    result: xr.Dataset, pool: observables.Pool, ladder: qp.Ladder, coupling: str, phases: Phases, point: float
) -> None:
    """Equal height and the barrier; NaN where the distribution has no two peaks."""
    names = {coupling: f"{coupling}_equal_height", "barrier": "barrier"}
    try:
        height = observables.equal_height(pool, coupling, by=phases.by, cut=phases.cut, start=point)
    except ValueError:
        height = xr.Dataset({name + end: xr.Variable((), np.nan) for name in names for end in ("", "_err")})
    for name, label in names.items():
        result[label], result[f"{label}_err"] = height[name].variable, height[f"{name}_err"].variable
    shape = ladder.configurations["field"].shape[2:]
    if len(shape) > 1:
        # Two flat walls cross the lattice where it is narrowest.
        area = 2 * np.prod(shape) / max(shape)
        words = {"long_name": "interface tension, barrier / (2 x area of a wall)", "units": "nats per site of wall"}
        result["interface_tension"] = xr.Variable((), float(result["barrier"]) / area, words)
        result["interface_tension_err"] = xr.Variable((), float(result["barrier_err"]) / area)


def _add_distributions(result: xr.Dataset, pool: observables.Pool, by: str, here: dict[str, Any]) -> None:
    """P of the order parameter, of the magnetisation where it is recorded, and of the energy, at coexistence."""
    for name in dict.fromkeys([by, *(["m"] if "m" in pool.observables else [])]):
        found = observables.distribution(pool, of=name, **here)
        axis = f"{name}_axis"
        for part, label in (("p", f"p_{name}"), ("p_err", f"p_{name}_err")):
            result[label] = ((axis,), found[part].values, {"long_name": f"probability density of {name}"})
        result[axis] = ((axis,), found[name].values, {"long_name": name})
    found = observables.energy_distribution(pool, **here)
    for part, label in (("log_p", "log_p_energy"), ("log_p_err", "log_p_energy_err")):
        result[label] = (("energy_axis",), found[part].values, {"long_name": "log probability density of the energy"})
    result["energy_axis"] = (("energy_axis",), found["energy"].values, {"long_name": "energy", "units": "nats"})


def doubts(ladder: qp.Ladder, result: xr.Dataset, coupling: str) -> list[str]:
    """Why the answer might be wrong: each a sentence; none if both phases were sampled by every replica."""
    said = []
    if not ladder.outcome.trusted:
        said.append(f"The production ladder ended with '{ladder.outcome.value}'.")
    if soft := too_soft(ladder):
        said.append(soft + ".")
    log_odds = float(result["log_odds_slope"]) * (float(result[coupling]) - result[f"{coupling}_replica"].values)
    if not np.isfinite(log_odds).all():
        said.append("A replica sampled one phase only.")
    elif len(log_odds) > 1 and log_odds.std(ddof=1) > LARGEST_SCATTER:
        said.append(
            f"The log odds of the phases scatter by {log_odds.std(ddof=1):.1f} nats between replicas (at most "
            f"{LARGEST_SCATTER:g} can be averaged); more particles are needed."
        )
    return said


def _share(pool: observables.Pool, phases: Phases, **couplings: float) -> float:
    found = observables.phase_weights(pool, by=phases.by, cut=phases.cut, errors="replicas", **couplings)
    return float(found["ordered_share"])


def _ordered_below(pool: observables.Pool, coupling: str, phases: Phases) -> bool:
    """Whether the ordered phase wins at lower values of the coupling: where its conjugate observable is the larger one."""
    _, conjugate, factor = pool.couplings[coupling]
    replica = pool.replicas[0]
    x, order = replica.observable(conjugate), replica.observable(phases.by)
    inside = order >= phases.cut
    return bool(factor * (np.nanmean(x[inside]) - np.nanmean(x[~inside])) > 0)
