"""When a ladder may end: small rules, combined by `|` (whichever fires first) and `&` (all of them).

quench(problem, stop=RemainingEvidence(-3) | LevelLimit(5000))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quenchphys.ladder import Outcome


class Standing(NamedTuple):
    """Where one replica stands after a level."""

    level: int
    parameter: float  # E_k, or beta_k of a tempered ladder
    lowest: float  # lowest particle energy
    log_volume: float  # log G_k
    log_evidence: float  # log of the integral of G(E) exp(-E) dE from the level up
    elapsed: float  # seconds


class StopRule:
    """`fires` says whether the ladder may end; `outcome` what that end is called."""

    outcome: Outcome

    def fires(self, standing: Standing) -> bool:
        raise NotImplementedError

    def problem(self) -> str | None:
        """Why the rule could never fire, or None."""
        raise NotImplementedError

    def __or__(self, other: StopRule) -> StopRule:
        return AnyOf((self, other))

    def __and__(self, other: StopRule) -> StopRule:
        return AllOf((self, other))


@dataclass(frozen=True)
class RemainingEvidence(StopRule):
    """Stop when G(E) exp(-U_min), a bound on what lies below, is exp(dlogz) of what was gathered above."""

    dlogz: float = -3.0
    outcome = Outcome.CONVERGED

    def fires(self, standing: Standing) -> bool:
        return standing.log_volume - standing.lowest < self.dlogz + standing.log_evidence

    def problem(self) -> str | None:
        return None if math.isfinite(self.dlogz) else f"dlogz must be a finite number, {self.dlogz} was given"


@dataclass(frozen=True)
class ReachedEnergy(StopRule):
    """Stop at the first level at or below an energy."""

    energy: float
    outcome = Outcome.REACHED_ENERGY

    def fires(self, standing: Standing) -> bool:
        return standing.parameter <= self.energy

    def problem(self) -> str | None:
        return None if math.isfinite(self.energy) else f"the energy must be a finite number, {self.energy} was given"


@dataclass(frozen=True)
class ReachedBeta(StopRule):
    """The natural end of a tempered ladder."""

    beta: float
    outcome = Outcome.REACHED_BETA

    def fires(self, standing: Standing) -> bool:
        return standing.parameter >= self.beta

    def problem(self) -> str | None:
        return None if math.isfinite(self.beta) else f"beta must be finite, {self.beta} was given"


@dataclass(frozen=True)
class LevelLimit(StopRule):
    """Stop after a number of levels."""

    levels: int
    outcome = Outcome.LEVEL_LIMIT

    def fires(self, standing: Standing) -> bool:
        return standing.level + 1 >= self.levels

    def problem(self) -> str | None:
        possible = math.isfinite(self.levels) and self.levels >= 1
        return None if possible else f"the number of levels must be at least 1 and finite, {self.levels} was given"


@dataclass(frozen=True)
class WallTime(StopRule):
    """Stop after a number of seconds, counted from the call."""

    seconds: float
    outcome = Outcome.TIME_LIMIT

    def fires(self, standing: Standing) -> bool:
        return standing.elapsed >= self.seconds

    def problem(self) -> str | None:
        possible = math.isfinite(self.seconds) and self.seconds > 0
        return None if possible else f"the time must be positive and finite, {self.seconds} was given"


@dataclass(frozen=True)
class AnyOf(StopRule):
    """Stop when the first of several rules fires."""

    rules: tuple[StopRule, ...]

    def fires(self, standing: Standing) -> bool:
        return any(rule.fires(standing) for rule in self.rules)

    def problem(self) -> str | None:
        # One impossible rule is a mistake even beside one that can fire.
        return next((said for rule in self.rules if (said := rule.problem())), None)


@dataclass(frozen=True)
class AllOf(StopRule):
    """Stop when all of several rules fire at the same level."""

    rules: tuple[StopRule, ...]

    def fires(self, standing: Standing) -> bool:
        return all(rule.fires(standing) for rule in self.rules)

    def problem(self) -> str | None:
        return next((said for rule in self.rules if (said := rule.problem())), None)


def fired(rule: StopRule, standing: Standing) -> Outcome | None:
    """The outcome of the rule that ends the ladder here, the most trustworthy where several fire, or None."""
    if not rule.fires(standing):
        return None
    if isinstance(rule, AnyOf | AllOf):
        outcomes = [said for part in rule.rules if (said := fired(part, standing)) is not None]
        return next((said for said in outcomes if said.trusted), outcomes[0])
    return rule.outcome


def without_energy(rule: StopRule) -> StopRule:
    """Refuse rules that ask for an energy level, which a tempered ladder does not have."""
    for part in rule.rules if isinstance(rule, AnyOf | AllOf) else (rule,):
        if isinstance(part, RemainingEvidence | ReachedEnergy):
            raise ValueError(
                f"a tempered ladder has no energy levels: it may stop at LevelLimit or WallTime, not {part!r}"
            )
        if isinstance(part, AnyOf | AllOf):
            without_energy(part)
    return rule


def suggested(stop: Mapping[str, float] | None) -> StopRule:
    """The rule a problem suggests as plain data: {"energy": E} or {"dlogz": d}; without one, dlogz = -3."""
    if stop is None:
        return RemainingEvidence()
    match dict(stop):
        case {"energy": energy, **rest} if not rest:
            return ReachedEnergy(float(energy))
        case {"dlogz": dlogz, **rest} if not rest:
            return RemainingEvidence(float(dlogz))
    raise ValueError(f'the stop of a problem is {{"energy": E}} or {{"dlogz": d}}, but this one gives {dict(stop)!r}')
