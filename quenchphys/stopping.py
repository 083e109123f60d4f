"""When a ladder may end: small rules, combined by `|` (whichever fires first) and `&` (all of them).

quench(problem, stop=RemainingEvidence(-3) | LevelLimit(5000))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln, logsumexp

from quenchphys.outcome import Outcome


class Standing(NamedTuple):
    """Where one replica stands after a level."""

    level: int
    parameter: float  # E_k, or beta_k of a tempered ladder
    energy: np.ndarray  # U of the particles that carry weight
    log_weight: np.ndarray  # their log w, sum w = 1
    log_volume: float  # log G_k
    log_integral: Mapping[float, float]  # {beta: log of the integral of G(E) exp(-beta E) dE from the level up}
    softness: float
    elapsed: float  # seconds


class StopRule:
    """`remaining` says how far the end is, in units of its own: the ladder may end once it is not above zero.

    `outcome` is what that end is called.
    """

    outcome: Outcome

    def remaining(self, standing: Standing) -> float:
        raise NotImplementedError

    def problem(self) -> str | None:
        """Why the rule could never fire, or None."""
        raise NotImplementedError

    def betas(self) -> frozenset[float]:
        """Inverse temperatures at which the rule asks for the evidence."""
        return frozenset()

    def fires(self, standing: Standing) -> bool:
        return self.remaining(standing) <= 0

    def __or__(self, other: StopRule) -> StopRule:
        return AnyOf((self, other))

    def __and__(self, other: StopRule) -> StopRule:
        return AllOf((self, other))


@dataclass(frozen=True)
class RemainingEvidence(StopRule):
    """Stop when G(E) exp(-U_min), a bound on what lies below, is exp(dlogz) of what was gathered above."""

    dlogz: float = -3.0
    outcome = Outcome.CONVERGED

    def remaining(self, standing: Standing) -> float:
        return standing.log_volume - standing.energy.min() - self.dlogz - standing.log_integral[1.0]

    def betas(self) -> frozenset[float]:
        return frozenset({1.0})

    def problem(self) -> str | None:
        return None if math.isfinite(self.dlogz) else f"dlogz must be a finite number, {self.dlogz} was given"


@dataclass(frozen=True)
class EvidenceBelow(StopRule):
    """Stop when the part of Z(beta) below the level is a small share of what lies above.

    With exp(-beta U) = beta^(nu+1)/Gamma(nu+1) int (E - U)_+^nu exp(-beta E) dE, the part of Z(beta) from below E is

        Z_below = E_pi[exp(-beta U) P(nu+1, beta (E - U))] = G(E) sum_j w_j exp(-beta U_j) P(nu+1, beta s_j) / s_j^nu

    (s = E - U, P the regularised lower incomplete gamma function).  It is an estimate from the population, not a bound: a
    phase that lies below the population is not in it.
    """

    share: float = 1e-3
    beta: float = 1.0
    outcome = Outcome.CONVERGED

    def remaining(self, standing: Standing) -> float:
        nu, slack = standing.softness, standing.parameter - standing.energy
        with np.errstate(divide="ignore"):
            log_part = np.log(gammainc(nu + 1, self.beta * slack)) - nu * np.log(slack) - self.beta * standing.energy
        below = standing.log_volume + logsumexp(standing.log_weight + log_part)
        above = standing.log_integral[self.beta] + (nu + 1) * math.log(self.beta) - gammaln(nu + 1)
        return float(below - above - math.log(self.share))

    def betas(self) -> frozenset[float]:
        return frozenset({self.beta})

    def problem(self) -> str | None:
        if not 0 < self.share < 1:
            return f"the share must lie between 0 and 1, {self.share} was given"
        return None if 0 < self.beta < math.inf else f"beta must be positive and finite, {self.beta} was given"


@dataclass(frozen=True)
class ReachedEnergy(StopRule):
    """Stop at the first level at or below an energy."""

    energy: float
    outcome = Outcome.REACHED_ENERGY

    def remaining(self, standing: Standing) -> float:
        return standing.parameter - self.energy

    def problem(self) -> str | None:
        return None if math.isfinite(self.energy) else f"the energy must be a finite number, {self.energy} was given"


@dataclass(frozen=True)
class ReachedBeta(StopRule):
    """The natural end of a tempered ladder."""

    beta: float
    outcome = Outcome.REACHED_BETA

    def remaining(self, standing: Standing) -> float:
        return self.beta - standing.parameter

    def problem(self) -> str | None:
        return None if math.isfinite(self.beta) else f"beta must be finite, {self.beta} was given"


@dataclass(frozen=True)
class LevelLimit(StopRule):
    """Stop after a number of levels."""

    levels: int
    outcome = Outcome.LEVEL_LIMIT

    def remaining(self, standing: Standing) -> float:
        return self.levels - standing.level - 1

    def problem(self) -> str | None:
        possible = math.isfinite(self.levels) and self.levels >= 1
        return None if possible else f"the number of levels must be at least 1 and finite, {self.levels} was given"


@dataclass(frozen=True)
class WallTime(StopRule):
    """Stop after a number of seconds, counted from the call."""

    seconds: float
    outcome = Outcome.TIME_LIMIT

    def remaining(self, standing: Standing) -> float:
        return self.seconds - standing.elapsed

    def problem(self) -> str | None:
        possible = math.isfinite(self.seconds) and self.seconds > 0
        return None if possible else f"the time must be positive and finite, {self.seconds} was given"


@dataclass(frozen=True)
class Several(StopRule):
    """Rules put together."""

    rules: tuple[StopRule, ...]

    def betas(self) -> frozenset[float]:
        return frozenset().union(*(rule.betas() for rule in self.rules))

    def problem(self) -> str | None:
        # One impossible rule is a mistake even beside one that can fire.
        return next((said for rule in self.rules if (said := rule.problem())), None)


@dataclass(frozen=True)
class AnyOf(Several):
    """Stop when the first of several rules fires."""

    def remaining(self, standing: Standing) -> float:
        """What the first rule, the one meant to end the ladder, says; zero once any fires."""
        return 0.0 if any(rule.fires(standing) for rule in self.rules) else self.rules[0].remaining(standing)


@dataclass(frozen=True)
class AllOf(Several):
    """Stop when all of several rules fire at the same level."""

    def remaining(self, standing: Standing) -> float:
        """What the first rule that does not fire says."""
        return next((rest for rule in self.rules if not (rest := rule.remaining(standing)) <= 0), 0.0)


def fired(rule: StopRule, standing: Standing) -> Outcome | None:
    """The outcome of the rule that ends the ladder here, the most trustworthy where several fire, or None."""
    if not rule.fires(standing):
        return None
    if isinstance(rule, Several):
        outcomes = [said for part in rule.rules if (said := fired(part, standing)) is not None]
        return next((said for said in outcomes if said.trusted), outcomes[0])
    return rule.outcome


def without_energy(rule: StopRule) -> StopRule:
    """Refuse rules that ask for an energy level, which a tempered ladder does not have."""
    for part in rule.rules if isinstance(rule, Several) else (rule,):
        if isinstance(part, RemainingEvidence | EvidenceBelow | ReachedEnergy):
            raise ValueError(
                f"a tempered ladder has no energy levels: it may stop at LevelLimit or WallTime, not {part!r}"
            )
        if isinstance(part, Several):
            without_energy(part)
    return rule


def suggested(stop: Mapping[str, float] | None) -> StopRule:
    """The rule a problem suggests as plain data: {"energy": E}, {"below": share} or {"dlogz": d}; else dlogz = -3."""
    if stop is None:
        return RemainingEvidence()
    match dict(stop):
        case {"energy": energy, **rest} if not rest:
            return ReachedEnergy(float(energy))
        case {"below": share, **rest} if not rest:
            return EvidenceBelow(float(share))
        case {"dlogz": dlogz, **rest} if not rest:
            return RemainingEvidence(float(dlogz))
    raise ValueError(
        f'the stop of a problem is {{"energy": E}}, {{"below": share}} or {{"dlogz": d}}, but this one gives {dict(stop)!r}'
    )
