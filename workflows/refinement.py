"""Polishing of a ladder: multicanonical chains over its energies, in equilibrium, where a ladder lags.

A ladder passes the mixed region of a first-order transition once; chains with the ladder's own weight pass it as often as
time allows, and their error is that of independent chains.  They reach from the prior, whose exact draws put Z on an
absolute scale, down to the energies of the lowest temperature of interest, so a walk answers every question that the
ladder answers: Z(beta), P(E), order parameters, posterior draws.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

import observables
import quenchphys as qp
from observables.phases import TwoPhases
from observables.samples.of_walks import crossings
from quenchphys.problem import Problem, view
from quenchphys.walk import Walk, joined
from workflows.budget import WalkSettings
from workflows.coexistence_point.describe import DRIFT, FEWEST_CROSSINGS, FEWEST_MEETINGS, Answer, Ends, drift_of
from workflows.coexistence_point.walk import run_chains
from workflows.store import Study, identity_of, request_of
from workflows.timing import stages_of_walk

INNER = 0.1  # of the way from one end of the energies to the other, within which a chain has arrived


class Polished(NamedTuple):
    """A walk, and the reasons to doubt it."""

    walk: Walk
    doubts: list[str]


def polish(
    model: Problem,
    ladder: qp.Ladder,
    *,
    beta: float = 1.0,
    groups: int = WalkSettings.groups,
    chains: int = WalkSettings.chains,
    sweeps: int = WalkSettings.sweeps,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Walk:
    """Multicanonical chains over the energies of a ladder, for right answers where the ladder lags.

    Parameters
    ----------
    model
        The problem the ladder was run for.
    ladder
        A quenched ladder of it; its particles give the weight, its configurations the starts.
    beta
        Largest inverse temperature that will be asked for; the ladder must reach its energies.
    groups, chains, sweeps
        As in `coexistence`: error bars are a jackknife over all chains, and fall with the square root of the sweeps.
    seed
        A whole number; chains have random numbers of their own, also where the ladder has the same seed.
    out, overwrite, progress
        As in `coexistence`; the walk is written to `out`.

    Returns
    -------
    Walk
        To be passed to every function of `observables`.  Its attributes say how often chains crossed (crossings), and
        whether it can be trusted (trusted, why).

    Examples
    --------
    >>> model = lattices.phi6(L=40, mu2=2.2839)
    >>> ladder = qp.quench(model, particles=400, replicas=8)
    >>> walk = workflows.polish(model, ladder)
    >>> observables.partition_function(walk, beta=[0.9, 1.0])
    """
    _check_same_problem(model, ladder)
    settings = WalkSettings(groups, chains, sweeps, seed)
    request = request_of("polish", identity_of(model) | {"largest_beta": float(beta)}, asdict(settings))
    plan = stages_of_walk(model, settings)
    with Study(out, request, progress=progress, overwrite=overwrite, plan=plan) as study:
        found = polished(model, ladder, float(beta), settings, study)
        why = " ".join(found.doubts)
        walk = Walk(found.walk.data.assign_attrs(trusted=int(not why), why=why))
        if out is not None:
            walk.save(out, overwrite=overwrite)
        return walk


def polished(model: Problem, ladder: qp.Ladder, beta: float, settings: WalkSettings, study: Study) -> Polished:
    """Run the chains of a study over the energies of a ladder."""
    pool = observables.Pool(ladder)
    phases = TwoPhases.among(ladder.phases) or TwoPhases("energy", 0.0)
    ends = ends_of(pool, phases, beta)
    walks = run_chains(study, settings, model, "polish", pool, ends, phases)
    count = crossings(walks, phases.by, ends.inner)
    walk = joined(walks)
    walk = Walk(walk.data.assign_attrs(crossings=int(count.sum())))
    doubts = []
    if count.mean() < FEWEST_CROSSINGS:
        doubts.append(
            f"The chains crossed only {count.sum()} times (at least {FEWEST_CROSSINGS * len(count):g} are needed); more "
            "sweeps are needed."
        )
    scale = observables.Pool(walks).scale
    if scale is not None and (met := scale.meetings.sum() / len(count)) < FEWEST_MEETINGS:
        doubts.append(
            f"The chains hardly met the energies of the prior ({met:.2g} times a group, at least {FEWEST_MEETINGS:g} are "
            "needed), so log Z is not known; more sweeps are needed."
        )
    name, answer = balance_of(ladder, beta)
    if abs(drift := drift_of(walks, answer)) > DRIFT:
        doubts.append(
            f"The second half of the walk is {abs(drift):.1f} errors away from the first in {name} (at most {DRIFT:g} would "
            "be chance): the chains remember their start; more sweeps are needed."
        )
    if float(walk.attrs["undefined"]) > 0:
        doubts.append(f"The energy was undefined (NaN) for {float(walk.attrs['undefined']):.2g} of the moves of the chains.")
    return Polished(walk, doubts)


def balance_of(ladder: qp.Ladder, beta: float) -> tuple[str, Answer]:
    """What chains that remember their start get wrong first: the log odds of the phases, or log Z where there are none."""
    phases = TwoPhases.among(ladder.phases)

    def answer(pool: observables.Pool) -> tuple[float, float]:
        if phases is None:
            found, name = observables.partition_function(pool, beta), "log_z"
        else:
            found, name = observables.phase_weights(pool, phases.by, phases.cut, min(1.0, beta)), "log_odds"
        return float(found[name].squeeze()), float(found[f"{name}_err"].squeeze())

    return "log Z" if phases is None else "the log odds of the phases", answer


def ends_of(pool: observables.Pool, phases: TwoPhases, beta: float) -> Ends:
    """Energies from a standard deviation below the mean at `beta` up to the prior, and what tells that a chain arrived."""
    coldest = observables.thermodynamics(pool, [beta])
    low = float(coldest.energy[0]) - float(np.sqrt(coldest.heat_capacity[0])) / beta
    high = float(np.median(np.concatenate([replica.prior_energy for replica in pool.replicas])))
    if phases.by != "energy":
        both = Ends.of(pool, phases, {})
        return Ends(min(low, both.low), max(high, both.high), both.inner)
    return Ends(low, high, (low + INNER * (high - low), high - INNER * (high - low)))


def _check_same_problem(model: Any, ladder: qp.Ladder) -> None:
    seen = view(model)
    if (seen.name, seen.parameters) != (ladder.problem, ladder.parameters):
        raise ValueError(
            f"The ladder is one of {ladder.problem} with the parameters {ladder.parameters}, but the model is {seen.name} "
            f"with {seen.parameters}; polish a ladder with its own model."
        )
