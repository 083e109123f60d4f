"""How a coexistence point is found: by chains that cross from phase to phase, or from each phase's own side."""

from __future__ import annotations

from typing import Any

import lattices
from workflows.budget import CoexistenceSettings

# Chains of phi^6 that cross take minutes at L = 40 and their cost to a given error of the log odds grows as V^2.4; bridges
# take less from L = 24 on, but see nothing of what lies between the phases: docs/performance.md.
MOST_SITES = 2048


def method_for(problem: Any, settings: CoexistenceSettings) -> str:
    """The method that is asked for, "auto" decided.

    Chains that cross also give P(q), the barrier and the interface tension, so they are taken where they are quick, for
    every model without Gaussian phases, and where one of their settings was chosen.
    """
    apart = isinstance(problem, lattices.ScalarField)
    if settings.method in ("phases", "both") and not apart:
        raise TypeError(
            f"method='{settings.method}' needs a scalar field, which has a Gaussian near each phase; this model is a "
            f"{type(problem).__name__}: choose method='crossing'."
        )
    if settings.method != "auto":
        return settings.method
    if settings.error is not None:
        if not apart:
            raise TypeError(
                f"error is for bridges to the phases of a scalar field; this model is a {type(problem).__name__}, and its "
                "error follows from sweeps."
            )
        return "phases"
    return "phases" if apart and problem.lattice.sites > MOST_SITES and not settings.of_chains else "crossing"
