"""What to expect of a transition before anything is sampled: its two phases, and where to look for it.

Mean field knows two values of mu2 for a scalar field: that of equal minima of a uniform field, which fluctuations lower,
and that of equal bounds on log Z of its two Gaussian phases (the ordered one counts twice, for phi -> -phi), which is a
little too low.  The transition of phi^6 lies between them: 2.22 and 2.5 by mean field, 2.28 in truth.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

import lattices
from observables.phases import TwoPhases
from quenchphys.problem import view
from workflows.model_family import ModelFamily

STEPS, DEPTH = 49, 1.2  # how finely and how far below its uniform value the mean-field transition is searched
PLACES = 33  # in a bracket, at which two phases are looked for


class Place(NamedTuple):
    """Where to look for a transition: a bracket, and the value in it to begin with."""

    bracket: tuple[float, float]
    start: float


def phases_of(family: ModelFamily, value: float) -> TwoPhases:
    """The observable that tells the two phases of a model apart, and the value that separates them."""
    problem = family.at(value)
    model = view(problem)
    if family.coupling not in model.couplings:
        known = ", ".join(model.couplings) or "none"
        raise ValueError(f"{family.name} cannot be reweighted in {family.coupling}; its couplings are: {known}.")
    phases = TwoPhases.among(model.phases)
    if phases is None:
        raise ValueError(_no_phases(family, value, problem))
    return phases


def _no_phases(family: ModelFamily, value: float, problem: Any) -> str:
    """Why a model has no two phases at a value of the coupling, and what to do instead."""
    if isinstance(problem, lattices.ScalarField):
        transition = problem.mean_field.coexistence_mu2
        if transition is None:
            return (
                f"The transition of {family.name} at these couplings is of second order by mean field: it has no two phases "
                "that coexist; use finite_size_scaling (quenchphys fss), which finds its critical point."
            )
        where = f" (mean field puts a first-order transition at mu2 = {transition:g} or below)"
    else:
        where = ""
    return f"{family.name} is not expected to have two phases at {family.coupling} = {value:g}{where}: move the bracket."


def has_phases(family: ModelFamily, value: float) -> bool:
    """Whether two phases are expected at a value of the coupling."""
    try:
        phases_of(family, value)
    except ValueError:
        return False
    return True


def start_in(family: ModelFamily, bracket: tuple[float, float]) -> float:
    """Where to begin in a bracket: in its middle, or as near as two phases are expected to where mean field says.

    Parameters
    ----------
    family
        The model with its open coupling.
    bracket
        Two values of the coupling.

    Returns
    -------
    float
        A value inside the bracket; refused if two phases are expected at none.
    """
    middle = 0.5 * sum(bracket)
    if has_phases(family, middle):
        return middle
    guess = _expected(family) if family.coupling == "mu2" else None
    centre = middle if guess is None else guess
    inside = np.linspace(*bracket, PLACES + 2)[1:-1]
    places = [*([centre] if bracket[0] < centre < bracket[1] else []), *inside[np.argsort(np.abs(inside - centre))]]
    for place in places:
        if has_phases(family, float(place)):
            return float(place)
    phases_of(family, middle)  # refuses, and says why
    return middle


def own_place(family: ModelFamily) -> Place:
    """Where mean field says that two phases coexist; refused for models and couplings of which it knows nothing.

    Parameters
    ----------
    family
        The model with its open coupling.

    Returns
    -------
    Place
        As wide a bracket on both sides of the Gaussian value as that is away from the uniform one.
    """
    guess = _expected(family) if family.coupling == "mu2" else None
    if guess is None:
        if family.coupling == "mu2" and isinstance(family.at(1.0), lattices.ScalarField):
            phases_of(family, 1.0)  # says that the transition is of second order
        raise ValueError(
            f"bracket is missing: give two values of {family.coupling} with the coexistence point between them; mean field "
            "knows where to look for mu2 of a scalar field only."
        )
    width = abs(guess - _uniform(family)) or 0.1 * max(1.0, abs(guess))
    return Place((guess - width, guess + width), guess)


def _uniform(family: ModelFamily) -> float:
    """mu2 of equal minima of a uniform field; NaN where the model is no scalar field, or its transition continuous."""
    try:
        problem = family.at(1.0)
    except Exception:  # whatever it is by which a user's function refuses this value
        return np.nan
    found = problem.mean_field.coexistence_mu2 if isinstance(problem, lattices.ScalarField) else None
    return np.nan if found is None else float(found)


def _expected(family: ModelFamily) -> float | None:
    """mu2 at which the Gaussian phases have the same log Z, or that of the uniform field; None where there is neither."""
    top = _uniform(family)
    if not np.isfinite(top):
        return None

    def log_odds(mu2: float) -> float:
        """log Z of the ordered phases minus that of the disordered one; NaN where one of them is not stable."""
        phases = family.at(mu2).mean_field
        if phases.ordered is None or phases.disordered is None:
            return np.nan
        return phases.ordered.log_z + float(np.log(2)) - phases.disordered.log_z

    values = [float(value) for value in np.linspace(top, top - DEPTH * max(1.0, abs(top)), STEPS)]
    high = log_odds(top)
    for above, below in pairwise(values):
        low = log_odds(below)
        if high < 0 <= low:
            return float(brentq(log_odds, below, above, xtol=1e-4))
        high = low
    return top
