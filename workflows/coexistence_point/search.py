"""Where do two phases coexist?  A pilot ladder finds the coupling, walkers between its phases give the answer.

    pilot     a ladder of few particles down to the last phase: roughly the coupling, and a weight in U with which
    walkers   walk from phase to phase, in equilibrium: the odds of the phases, and all averages.  At the top they meet
              exact draws from the prior, and with them an absolute log Z

Both are run at one value of the coupling; the answer is found by reweighting.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from observables.phases import TwoPhases
from quenchphys.samplers.softness import SMALLEST, too_soft
from workflows.budget import PARTICLES, SWEEPS, Effort
from workflows.coexistence_point.describe import Ends, describe_point
from workflows.coexistence_point.walk import run_chains
from workflows.model_family import Family, Model, check_bracket, family
from workflows.narrator import Narrator
from workflows.store import Study

FORMAT = 3  # of what is kept; older walks lack the dims and attributes of a `Walk`
PILOTS = 6  # at most so many pilot ladders walk towards the coexistence point
SMALLEST_STEP = 1e-3  # of the bracket, by which a pilot must bring the search forward
REACH = 8.0  # nats of log odds at a pilot's coupling, beyond which walkers there would hardly see one of the phases


def coexistence(
    L: int | None = None,
    bracket: tuple[float, float] | None = None,
    *,
    model: Model = "phi6",
    coupling: str = "mu2",
    shape: Sequence[int] | None = None,
    particles: int = PARTICLES,
    replicas: int = 8,
    seed: int = 0,
    softness: float | None = None,
    sweeps: int = SWEEPS,
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
        As in `quenchphys.quench`; the pilot, which only leads the walkers, has an eighth of the particles, but at least
        64, and at most four replicas.  Default softness: what the model recommends, or a smaller one where a pilot finds
        it too large.
    sweeps
        Of the walkers: the error of the coupling falls with its square root.  Walkers that have hardly crossed from phase
        to phase walk on, up to nine times as long.
    out
        File for the result; ladders go into a folder beside it, and a repeated call takes them up.
    overwrite
        Replace an existing result.  Ladders of the same request are used again, others are replaced.
    progress
        Say on standard error what happens; by default if that is a terminal.

    Returns
    -------
    Dataset
        <coupling> and <coupling>_equal_height with errors; ordered_share at the coupling of pilot and walkers
        (<coupling>_run);
        crossings of the walkers from phase to phase, and their meetings with the prior; <coupling>_pilot, what the pilot
        found by itself;
        averages of every observable over the dimension `phase`; barrier and interface_tension in P(q), latent_heat;
        p_q, p_m and log_p_energy.  The attribute `trusted` is 1 or 0, and `why` says why.
    """
    if bracket is None:
        raise ValueError(f"bracket is missing: two values of {coupling} with the coexistence point between them.")
    ends = check_bracket(bracket, coupling)
    line = family(model, coupling, couplings, L, shape)
    for value in ends:
        line.at(value)  # a value the model does not allow is found here
    phases_of(line, 0.5 * sum(ends))
    effort = Effort(particles, replicas, seed, softness, sweeps)
    study = Study(out, request_of(line, effort), Narrator(progress), overwrite=overwrite)
    return search(line, ends, effort, study)


def request_of(line: Family, effort: Effort) -> dict[str, Any]:
    """What makes two coexistence points the same; the bracket is only where they are looked for."""
    return {"workflow": "coexistence", "format": FORMAT, **line.request(), **effort.request()}


def search(
    line: Family, bracket: tuple[float, float], effort: Effort, study: Study, start: float | None = None
) -> xr.Dataset:
    """Pilots from `start` (the middle of the bracket), walkers, answer; writes them where the study says."""
    seeker = Search(line, study, effort)
    root, pilot = seeker.root(bracket, 0.5 * sum(bracket) if start is None else start)
    return study.finish(seeker.production(root, seeker.safe(root, pilot)))


def phases_of(line: Family, value: float) -> TwoPhases:
    """How the phases of the model are told apart."""
    problem = line.at(value)
    if line.coupling not in getattr(problem, "couplings", {}):
        known = ", ".join(getattr(problem, "couplings", {})) or "none"
        raise ValueError(f"{line.name} cannot be reweighted in {line.coupling}; its couplings are: {known}.")
    phases = TwoPhases.among(dict(getattr(problem, "phases", {})))
    if phases is None:
        transition = getattr(getattr(problem, "mean_field", None), "coexistence_mu2", None)
        why = (
            ""
            if transition is None
            else f" (mean field puts a first-order transition at mu2 = {transition:g} or below)"
        )
        raise ValueError(
            f"{line.name} is not expected to have two phases at {line.coupling} = {value:g}{why}: move the bracket."
        )
    return phases


class Search:
    """The ladders of one coexistence point."""

    def __init__(self, line: Family, study: Study, effort: Effort):
        self.line, self.study, self.effort = line, study, effort

    def root(self, bracket: tuple[float, float], start: float) -> tuple[float, observables.Pool]:
        """The coupling of equal weight, and the pilot that found it; refused if it does not lie in the bracket."""
        coupling, at = self.line.coupling, start
        inside = bracket  # shrinks as pilots tell on which side the root lies
        for number in range(PILOTS):
            phases = phases_of(self.line, at)
            ladder = self._pilot(at, self.effort.pilot(number))
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
                return root, pool
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

    def safe(self, root: float, pilot: observables.Pool) -> observables.Pool:
        """The pilot, or one nearer to the root or with harder levels where it has to be."""
        number, phases = PILOTS, phases_of(self.line, root)
        log_odds = observables.phase_weights(pilot, by=phases.by, cut=phases.cut)["log_odds"]
        if abs(float(log_odds)) > REACH:
            pilot = observables.Pool(self._pilot(root, self.effort.pilot(number)))
        while self.effort.softness is None:
            softness = pilot.ladders[0].softness
            if softness <= SMALLEST or not too_soft(pilot.ladders[0]):
                break
            number += 1
            self.study.narrator.say(f"pilot: softness {softness:.3g} is too large")
            at = pilot.couplings[self.line.coupling][0]
            harder = self.effort.pilot(number).softened(max(SMALLEST, softness / 4))
            pilot = observables.Pool(self._pilot(at, harder))
        return pilot

    def production(self, root: float, pilot: observables.Pool) -> xr.Dataset:
        """Walkers at the coupling of the pilot, and everything they say about the two phases."""
        coupling = self.line.coupling
        at = pilot.couplings[coupling][0]
        phases = phases_of(self.line, root)
        ends = Ends.of(pilot, phases, {coupling: root})
        walks = run_chains(self.study, self.effort, self.line.at(at), f"{at:.9g}", pilot, ends, phases)
        return describe_point(pilot, walks, ends, coupling, phases)

    def _pilot(self, at: float, effort: Effort) -> qp.Ladder:
        file = "pilot" if effort.softness is None else f"pilot_softness_{effort.softness:.4g}"
        words = f"pilot: {self.line.name} at {self.line.coupling} = {at:.6g}"
        return self.study.ladder(f"{file}_{at:.9g}", self.line.at(at), effort, words)

    def _outside(self, bracket: tuple[float, float], root: float, pool: observables.Pool, phases: TwoPhases) -> str:
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


def _share(pool: observables.Pool, phases: TwoPhases, **couplings: float) -> float:
    found = observables.phase_weights(pool, by=phases.by, cut=phases.cut, errors="auto", **couplings)
    return float(found["ordered_share"])


def _ordered_below(pool: observables.Pool, coupling: str, phases: TwoPhases) -> bool:
    """Whether the ordered phase wins at lower values of the coupling: where its conjugate observable is the larger one."""
    _, conjugate, factor = pool.couplings[coupling]
    replica = pool.replicas[0]
    x, order = replica.observable(conjugate), replica.observable(phases.by)
    inside = order >= phases.cut
    return bool(factor * (np.nanmean(x[inside]) - np.nanmean(x[~inside])) > 0)
