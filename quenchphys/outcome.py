"""Outcomes of a ladder, and which of them can be trusted."""

from __future__ import annotations

import enum


class Outcome(enum.Enum):
    """How a ladder ended.  The value is the text in files and reports.

    Examples
    --------
    >>> ladder.outcome
    <Outcome.MISSED_PHASE: 'missed phase'>
    >>> ladder.outcome.trusted
    False
    """

    CONVERGED = "converged"  # the evidence left below the last level is negligible
    REACHED_ENERGY = "reached energy"  # the ladder reached the requested energy
    REACHED_BETA = "reached beta"  # a tempered ladder reached its last temperature
    LEVEL_LIMIT = "level limit"  # the ladder used up its levels
    TIME_LIMIT = "time limit"  # the ladder used up its time
    FROZEN = "frozen"  # particles no longer moved, or no lower level could be found
    MISSED_PHASE = "missed phase"  # a phase that the problem names was never reached
    LEFT_PHASE = "left phase"  # chains of a bridge left their phase too often: it is not metastable
    LAGGED = "lagged"  # between two phases particles hardly forgot one level before the next
    UNDEFINED_ENERGY = "undefined energy"  # the energy was NaN on part of the space

    @property
    def trusted(self) -> bool:
        """Whether results of such a ladder can be used."""
        return self in (Outcome.CONVERGED, Outcome.REACHED_ENERGY, Outcome.REACHED_BETA)
