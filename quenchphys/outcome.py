"""How a ladder can end, and which ends can be trusted."""

from __future__ import annotations

import enum


class Outcome(enum.Enum):
    """How a ladder ended.  The value is what files and reports print."""

    CONVERGED = "converged"  # the evidence left below the last level is negligible
    REACHED_ENERGY = "reached energy"  # the ladder reached the energy asked for
    REACHED_BETA = "reached beta"  # a tempered ladder reached its last temperature
    LEVEL_LIMIT = "level limit"
    TIME_LIMIT = "time limit"
    FROZEN = "frozen"  # particles no longer moved, or no lower level could be found
    MISSED_PHASE = "missed phase"  # a phase the problem names was never met
    UNDEFINED_ENERGY = "undefined energy"  # the energy was NaN on part of the space

    @property
    def trusted(self) -> bool:
        return self in (Outcome.CONVERGED, Outcome.REACHED_ENERGY, Outcome.REACHED_BETA)
