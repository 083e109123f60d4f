"""Coexistence of two phases, by chains that cross between them or by bridges to both.

By crossing:

    pilot     a small ladder down to the last phase: the approximate coupling, and a multicanonical weight in U
    chains    travel between the phases in equilibrium with that weight: the odds of the phases, and all averages.  At the
              top they overlap with exact draws from the prior, which put log Z on an absolute scale

Both are run at one value of the coupling; the coexistence point is found by reweighting.  Without crossing: see
`workflows.coexistence_point.bridges`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from observables.phases import TwoPhases
from quenchphys.samplers.softness import SMALLEST, too_soft
from workflows.budget import CoexistenceSettings, LadderSettings, PilotSettings, WalkSettings
from workflows.coexistence_point.agreement import both_answers
from workflows.coexistence_point.bridges import BridgedPoint
from workflows.coexistence_point.describe import Ends, describe_point
from workflows.coexistence_point.expectation import Place, own_place, phases_of, start_in
from workflows.coexistence_point.method import method_for
from workflows.coexistence_point.walk import run_chains
from workflows.model_family import Model, ModelFamily, check_bracket, family_of
from workflows.old_names import renamed
from workflows.provenance import call_of
from workflows.store import Request, Study, request_of
from workflows.timing import stages_of_point

WORDS = {
    "crossing": "method: chains that cross from phase to phase",
    "phases": "method: a bridge to each phase, nothing crosses between them",
    "both": "method: chains that cross, and then bridges to both phases",
}
PILOTS = 6  # pilot ladders that are run at most to find the coexistence point
SMALLEST_STEP = 1e-3  # of the bracket: a search whose interval is smaller has failed
REACH = 8.0  # nats of log odds at the coupling of a pilot, beyond which chains there would hardly see one of the phases


@renamed(particles="pilot_particles", replicas="pilot_replicas")
def coexistence(
    L: int | None = None,
    bracket: tuple[float, float] | None = None,
    *,
    model: Model = "phi6",
    coupling: str = "mu2",
    shape: Sequence[int] | None = None,
    pilot_particles: int = PilotSettings.particles,
    pilot_replicas: int = PilotSettings.replicas,
    groups: int = WalkSettings.groups,
    chains: int = WalkSettings.chains,
    sweeps: int = WalkSettings.sweeps,
    method: str = "auto",
    error: float | None = None,
    seed: int = 0,
    softness: float | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **couplings: float,
) -> xr.Dataset:
    """Find the value of a coupling at which two phases have the same weight, and describe both phases there.

    On small lattices a pilot ladder finds the coupling approximately, and with it a multicanonical weight; chains with that
    weight travel between the phases and give the answer.  On large ones, where nothing crosses, each phase is sampled by
    itself, by a bridge from the Gaussian field that is closest to it.

    Parameters
    ----------
    L, shape
        The lattice: L x L, or any shape.
    bracket
        Two values of the coupling with the coexistence point between them; they may be far apart.  Default, for mu2 of a
        scalar field: where mean field expects the point.
    model
        "phi6", "phi4", or a function that takes its couplings by name and returns a model with two `phases`.
    coupling
        The coupling to be found.
    **couplings
        Values of other couplings, such as lam=-1.
    pilot_particles, pilot_replicas
        Particles in a population, and independent populations, of the pilot ladder.  They do not enter the error bars:
        the pilot only has to see both phases.  Before these names existed they were called `particles` and `replicas`.
    groups, chains
        Groups of multicanonical chains (at least 8), and chains in each.  Error bars are a jackknife over all chains.
    sweeps
        Sweeps of each chain: errors fall with the square root.  Sweeps in which chains remember their start are not counted
        but added, and chains that have hardly crossed from phase to phase go on for up to nine times as many.
    method
        "crossing": chains that travel between the phases.  "phases": a bridge to each phase, for scalar fields; its cost
        to a given error of the coupling does not grow with the lattice, but it sees nothing of what lies between: no
        barrier, no interface tension, no P(m) and P(E).  "both": both answers, how far they are apart, and one answer from
        both.  "auto": crossing up to 2048 sites, for models other than scalar fields, and where one of its settings is
        given; else phases.
    error
        Standard error of the coupling that bridges have to reach; default: 0.1 nats in the log odds of the phases.
    seed
        The same seed gives the same numbers.
    softness
        Softness nu of the pilot's levels.  Default: what the model recommends, or a smaller one where a pilot finds that
        too large.
    out
        File for the result.  Ladders and walks are kept in a folder beside it; a repeated call uses them again.
    overwrite
        Replace an existing result.  Ladders of the same request are used again, others are deleted.
    progress
        Show what is being done and the time left: by default as a bar in a terminal or a notebook, as a line a minute
        elsewhere.  True: there at once as well; False: nothing.

    Returns
    -------
    Dataset
        <coupling> with its error; averages of every observable over the dimension `phase`, log_z among them; latent_heat.
        The attribute `trusted` is 1 or 0, and `why` gives the reasons for doubt.  By crossing also
        <coupling>_equal_height; ordered_share at the coupling of pilot and chains (<coupling>_run); crossings of the chains
        from phase to phase, and their meetings with draws from the prior; <coupling>_pilot, the estimate of the pilot
        alone; barrier in P(q), the plateau between its peaks and, where that is flat, interface_tension; p_q, p_m and
        log_p_energy.  By phases log_odds at the coupling of the
        bridges, p_q on both sides, and mixed_weight, a bound on what was neglected.  By both also <coupling>_crossing,
        <coupling>_phases and <coupling>_distance, their difference in errors.

    Examples
    --------
    >>> point = workflows.coexistence(L=8, out="run.nc")
    >>> float(point.mu2), float(point.mu2_err)
    >>> point.q.sel(phase="ordered")
    >>> workflows.coexistence(L=8, bracket=(-1.05, -0.95), coupling="lam", mu2=2.3, sweeps=6400)   # half the error
    """
    call = call_of(coexistence, locals())
    family = family_of(model, coupling, couplings, L, shape)
    place = own_place(family) if bracket is None else _place_in(family, check_bracket(bracket, coupling))
    chosen = CoexistenceSettings.of(
        pilot_particles, pilot_replicas, groups, chains, sweeps, seed, softness, error, method
    )
    settings = decided(family, place.start, chosen)
    plan = stages_of_point(family.at(place.bracket[0]), settings)
    with Study(out, point_request(family, settings), progress=progress, overwrite=overwrite, plan=plan, call=call) as study:
        return find_point(family, place.bracket, settings, study, place.start)


def _place_in(family: ModelFamily, bracket: tuple[float, float]) -> Place:
    for value in bracket:
        family.at(value)  # refuses values that the model does not allow
    return Place(bracket, start_in(family, bracket))


def decided(family: ModelFamily, value: float, settings: CoexistenceSettings) -> CoexistenceSettings:
    """The settings with a method that is not "auto"."""
    return settings._replace(method=method_for(family.at(value), settings))


def point_request(family: ModelFamily, settings: CoexistenceSettings) -> Request:
    """The request of a coexistence point.  The bracket only says where to look, and is no part of it."""
    return request_of("coexistence", family.request(), settings.request(settings.method))


def find_point(
    family: ModelFamily,
    bracket: tuple[float, float],
    settings: CoexistenceSettings,
    study: Study,
    start: float | None = None,
) -> xr.Dataset:
    """The point from `start` (default: see `start_in`) by the method of the settings, all kept by the study."""
    first = start_in(family, bracket) if start is None else start
    study.message(WORDS[settings.method])
    parts = []
    if settings.method in ("crossing", "both"):
        search = PointSearch(family, study, settings)
        root, pilot = search.find_root(bracket, first)
        parts.append(search.measure(root, search.suitable_pilot(root, pilot)))
        first = float(parts[0][family.coupling])
    if settings.method in ("phases", "both"):
        parts.append(BridgedPoint(family, study, settings.bridge).find(bracket, first))
    return study.finish(parts[0] if len(parts) == 1 else both_answers(parts[0], parts[1], family.coupling))


class PointSearch:
    """The search for one coexistence point: its pilot ladders, and then its chains."""

    def __init__(self, family: ModelFamily, study: Study, settings: CoexistenceSettings):
        self.family, self.study, self.settings = family, study, settings

    def find_root(self, bracket: tuple[float, float], start: float) -> tuple[float, observables.Pool]:
        """The coupling of equal weight, and the pilot that found it; refused if it does not lie in the bracket."""
        coupling, at = self.family.coupling, start
        inside = bracket  # shrinks as pilots show on which side the root lies
        for number in range(PILOTS):
            phases = phases_of(self.family, at)
            ladder = self._pilot(at, self.settings.pilot.ladder(number))
            if not (ladder.outcome.trusted or ladder.outcome is qp.Outcome.LAGGED):  # chains make up for a lag
                raise RuntimeError(
                    f"The pilot ladder at {coupling} = {at:g} ended with '{ladder.outcome.value}', so the coexistence point "
                    "cannot be found from it; try more pilot particles, or a bracket closer to the point."
                )
            pool = observables.Pool(ladder)
            try:
                found = observables.equal_weight(pool, coupling, by=phases.by, cut=phases.cut)
                root = float(found[coupling])
            except ValueError:  # the point is too far away for reweighting from here
                root = np.nan
            if bracket[0] <= root <= bracket[1]:
                self.study.message(f"pilot: {coupling} = {root:.6g} +- {float(found[coupling + '_err']):.2g}")
                return root, pool
            share = _ordered_share(pool, phases)
            if np.isfinite(root):
                raise ValueError(self._outside(bracket, root, pool, phases))
            lower_ordered = _ordered_below(pool, coupling, phases)
            inside = (at, inside[1]) if (share > 0.5) == lower_ordered else (inside[0], at)
            if inside[1] - inside[0] < SMALLEST_STEP * (bracket[1] - bracket[0]):
                break
            try:
                at = start_in(self.family, inside)
            except ValueError:  # on the side where the point must lie no two phases are expected
                break
        side = "above" if at > 0.5 * sum(bracket) else "below"
        raise ValueError(
            f"No coexistence point was found in {coupling} = {bracket[0]:g}..{bracket[1]:g}; it seems to lie {side} "
            f"{max(bracket) if side == 'above' else min(bracket):g}: at {at:g} the ordered share is {share:.3g}."
        )

    def suitable_pilot(self, root: float, pilot: observables.Pool) -> observables.Pool:
        """The pilot, or a new one: nearer to the root if it is too far away, with a smaller softness if it is too soft."""
        number, phases = PILOTS, phases_of(self.family, root)
        log_odds = observables.phase_weights(pilot, by=phases.by, cut=phases.cut)["log_odds"]
        if abs(float(log_odds)) > REACH:
            pilot = observables.Pool(self._pilot(root, self.settings.pilot.ladder(number)))
        while self.settings.pilot.softness is None:
            softness = pilot.ladders[0].softness
            if softness <= SMALLEST or not too_soft(pilot.ladders[0]):
                break
            number += 1
            self.study.message(f"pilot: softness {softness:.3g} is too large")
            at = pilot.couplings[self.family.coupling][0]
            harder = self.settings.pilot.ladder(number).softened(max(SMALLEST, softness / 4))
            pilot = observables.Pool(self._pilot(at, harder))
        return pilot

    def measure(self, root: float, pilot: observables.Pool) -> xr.Dataset:
        """Run chains at the coupling of the pilot, and describe both phases by them."""
        coupling = self.family.coupling
        at = pilot.couplings[coupling][0]
        phases = phases_of(self.family, root)
        ends = Ends.of(pilot, phases, {coupling: root})
        walks = run_chains(self.study, self.settings.walk, self.family.at(at), f"{at:.9g}", pilot, ends, phases)
        return describe_point(pilot, walks, ends, coupling, phases)

    def _pilot(self, at: float, settings: LadderSettings) -> qp.Ladder:
        file = "pilot" if settings.softness is None else f"pilot_softness_{settings.softness:.4g}"
        label = f"pilot: {self.family.name} at {self.family.coupling} = {at:.6g}"
        return self.study.ladder(f"{file}_{at:.9g}", self.family.at(at), settings, label, stage="pilot")

    def _outside(self, bracket: tuple[float, float], root: float, pool: observables.Pool, phases: TwoPhases) -> str:
        """On which side of the bracket the point lies, and how much of the ordered phase there is at both ends."""
        coupling = self.family.coupling
        side, end = ("below", bracket[0]) if root < bracket[0] else ("above", bracket[1])
        shares = []
        for value in bracket:
            try:
                share = _ordered_share(pool, phases, **{coupling: value})
            except ValueError:  # too far for reweighting, and so far from coexistence that one phase has everything
                share = 1.0 if (value < root) == _ordered_below(pool, coupling, phases) else 0.0
            shares.append(f"{share:.3g} at {value:g}")
        return (
            f"The bracket does not contain the coexistence point: the ordered share is {shares[0]} and {shares[1]}, so "
            f"{coupling} lies {side} {end:g} (near {root:.5g})."
        )


def _ordered_share(pool: observables.Pool, phases: TwoPhases, **couplings: float) -> float:
    found = observables.phase_weights(pool, by=phases.by, cut=phases.cut, errors="auto", **couplings)
    return float(found["ordered_share"])


def _ordered_below(pool: observables.Pool, coupling: str, phases: TwoPhases) -> bool:
    """Whether the ordered phase wins at lower values of the coupling: if its conjugate observable is larger in it."""
    _, conjugate, factor = pool.couplings[coupling]
    replica = pool.replicas[0]
    x, order = replica.observable(conjugate), replica.observable(phases.by)
    inside = order >= phases.cut
    return bool(factor * (np.nanmean(x[inside]) - np.nanmean(x[~inside])) > 0)
