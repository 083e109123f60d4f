"""Stop rules: when a ladder may end, combined by `|` (whichever fires first) and `&` (all of them).

quench(problem, stop=RemainingEvidence(-3) | LevelLimit(5000))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from quenchphys.outcome import Outcome
from quenchphys.smc.tails import log_lower_tail


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
    """Base of all rules: a ladder may end once `remaining` is not above zero, with the `outcome` of the rule.

    `a | b` fires when either rule does, `a & b` when both do.
    """

    outcome: Outcome

    def remaining(self, standing: Standing) -> float:
        """How far the end is, in units of the rule's own.

        Parameters
        ----------
        standing
            Where a replica stands after a level.

        Returns
        -------
        float
            Not above zero once the ladder may end.
        """
        raise NotImplementedError

    def fault(self) -> str | None:
        """Why the rule could never fire, in words; None if it can."""
        raise NotImplementedError

    def betas(self) -> frozenset[float]:
        """Inverse temperatures at which the rule needs the evidence."""
        return frozenset()

    def fires(self, standing: Standing) -> bool:
        """Whether the ladder may end here."""
        return self.remaining(standing) <= 0

    def __or__(self, other: StopRule) -> StopRule:
        return AnyOf((self, other))

    def __and__(self, other: StopRule) -> StopRule:
        return AllOf((self, other))


@dataclass(frozen=True)
class RemainingEvidence(StopRule):
    """Stop when G(E) exp(-U_min), a bound on what lies below, is exp(dlogz) of what was gathered above.

    Parameters
    ----------
    dlogz
        Log of the share of Z(1) that may be missing.  It must be very negative where a phase of small volume and low energy
        is still to come.

    Examples
    --------
    >>> qp.quench(model, stop=qp.RemainingEvidence(-5))
    """

    dlogz: float = -3.0
    outcome = Outcome.CONVERGED

    def remaining(self, standing: Standing) -> float:
        return standing.log_volume - standing.energy.min() - self.dlogz - standing.log_integral[1.0]

    def betas(self) -> frozenset[float]:
        return frozenset({1.0})

    def fault(self) -> str | None:
        return None if math.isfinite(self.dlogz) else f"dlogz must be a finite number, {self.dlogz} was given"


@dataclass(frozen=True)
class EvidenceBelow(StopRule):
    """Stop when the part of Z(beta) below the level is a small share of what lies above.

    With exp(-beta U) = beta^(nu+1)/Gamma(nu+1) int (E - U)_+^nu exp(-beta E) dE, the part of Z(beta) from below E is

        Z_below = E_pi[exp(-beta U) P(nu+1, beta (E - U))] = G(E) sum_j w_j exp(-beta U_j) P(nu+1, beta s_j) / s_j^nu

    (s = E - U, P the regularised lower incomplete gamma function).  It is an estimate from the population, not a bound: a
    phase that lies below the population is not in it.

    Parameters
    ----------
    share
        Largest Z_below / Z_above at which the ladder may end, between 0 and 1.
    beta
        Inverse temperature, positive; the coldest one that will be asked for.

    Examples
    --------
    >>> qp.quench(model, stop=qp.EvidenceBelow(1e-4, beta=1.2))
    """

    share: float = 1e-3
    beta: float = 1.0
    outcome = Outcome.CONVERGED

    def remaining(self, standing: Standing) -> float:
        nu, slack = standing.softness, standing.parameter - standing.energy
        with np.errstate(divide="ignore"):
            log_part = log_lower_tail(nu, self.beta * slack) - xlogy(nu, slack) - self.beta * standing.energy
        below = standing.log_volume + logsumexp(standing.log_weight + log_part)
        above = standing.log_integral[self.beta] + (nu + 1) * math.log(self.beta) - gammaln(nu + 1)
        return float(below - above - math.log(self.share))

    def betas(self) -> frozenset[float]:
        return frozenset({self.beta})

    def fault(self) -> str | None:
        if not 0 < self.share < 1:
            return f"the share must lie between 0 and 1, {self.share} was given"
        return None if 0 < self.beta < math.inf else f"beta must be positive and finite, {self.beta} was given"


@dataclass(frozen=True)
class ReachedEnergy(StopRule):
    """Stop at the first level at or below an energy.

    Parameters
    ----------
    energy
        The energy E to reach.

    Examples
    --------
    >>> qp.quench(model, stop=qp.ReachedEnergy(-120.0))
    """

    energy: float
    outcome = Outcome.REACHED_ENERGY

    def remaining(self, standing: Standing) -> float:
        return standing.parameter - self.energy

    def fault(self) -> str | None:
        return None if math.isfinite(self.energy) else f"the energy must be a finite number, {self.energy} was given"


@dataclass(frozen=True)
class ReachedBeta(StopRule):
    """Stop at an inverse temperature: the natural end of a tempered ladder, which `temper` sets itself.

    Parameters
    ----------
    beta
        The last inverse temperature.

    Examples
    --------
    >>> ReachedBeta(1.0) | WallTime(600)
    """

    beta: float
    outcome = Outcome.REACHED_BETA

    def remaining(self, standing: Standing) -> float:
        return self.beta - standing.parameter

    def fault(self) -> str | None:
        return None if math.isfinite(self.beta) else f"beta must be finite, {self.beta} was given"


@dataclass(frozen=True)
class LevelLimit(StopRule):
    """Stop after a number of levels.

    Parameters
    ----------
    levels
        At least 1.

    Examples
    --------
    >>> qp.quench(model, stop=qp.RemainingEvidence(-3) | qp.LevelLimit(5000))
    """

    levels: int
    outcome = Outcome.LEVEL_LIMIT

    def remaining(self, standing: Standing) -> float:
        return self.levels - standing.level - 1

    def fault(self) -> str | None:
        possible = math.isfinite(self.levels) and self.levels >= 1
        return None if possible else f"the number of levels must be at least 1 and finite, {self.levels} was given"


@dataclass(frozen=True)
class WallTime(StopRule):
    """Stop after a number of seconds, counted from the call; time before a resumed checkpoint counts as well.

    Parameters
    ----------
    seconds
        Positive.

    Examples
    --------
    >>> qp.quench(model, stop=qp.RemainingEvidence(-3) | qp.WallTime(3600))
    """

    seconds: float
    outcome = Outcome.TIME_LIMIT

    def remaining(self, standing: Standing) -> float:
        return self.seconds - standing.elapsed

    def fault(self) -> str | None:
        possible = math.isfinite(self.seconds) and self.seconds > 0
        return None if possible else f"the time must be positive and finite, {self.seconds} was given"


@dataclass(frozen=True)
class CombinedRule(StopRule):
    """Base of rules made of rules."""

    rules: tuple[StopRule, ...]

    def betas(self) -> frozenset[float]:
        return frozenset().union(*(rule.betas() for rule in self.rules))

    def fault(self) -> str | None:
        # One impossible rule is a mistake even beside one that can fire.
        return next((fault for rule in self.rules if (fault := rule.fault())), None)


@dataclass(frozen=True)
class AnyOf(CombinedRule):
    """Stop when the first of several rules fires: `a | b`."""

    def remaining(self, standing: Standing) -> float:
        """What remains by the first rule, the one meant to end the ladder; zero once any rule fires."""
        return 0.0 if any(rule.fires(standing) for rule in self.rules) else self.rules[0].remaining(standing)


@dataclass(frozen=True)
class AllOf(CombinedRule):
    """Stop when all of several rules fire at the same level: `a & b`."""

    def remaining(self, standing: Standing) -> float:
        """What remains by the first rule that does not fire."""
        return next((rest for rule in self.rules if not (rest := rule.remaining(standing)) <= 0), 0.0)


def fired(rule: StopRule, standing: Standing) -> Outcome | None:
    """How the ladder ends here.

    Parameters
    ----------
    rule
        Any rule, also a combined one.
    standing
        Where a replica stands after a level.

    Returns
    -------
    Outcome or None
        The outcome of the rule that fires, a trusted one where several fire; None if the ladder goes on.
    """
    if not rule.fires(standing):
        return None
    if isinstance(rule, CombinedRule):
        outcomes = [outcome for part in rule.rules if (outcome := fired(part, standing)) is not None]
        return next((outcome for outcome in outcomes if outcome.trusted), outcomes[0])
    return rule.outcome


def without_energy(rule: StopRule) -> StopRule:
    """The rule itself, refused if it needs energy levels, which a tempered ladder does not have."""
    for part in rule.rules if isinstance(rule, CombinedRule) else (rule,):
        if isinstance(part, RemainingEvidence | EvidenceBelow | ReachedEnergy):
            raise ValueError(
                f"a tempered ladder has no energy levels, so it can stop at LevelLimit or WallTime, but not at {part!r}"
            )
        if isinstance(part, CombinedRule):
            without_energy(part)
    return rule


def suggested(stop: Mapping[str, float] | None) -> StopRule:
    """The stop rule that a problem suggests as plain data.

    Parameters
    ----------
    stop
        {"energy": E}, {"below": share of Z} or {"dlogz": d}; None if the problem suggests nothing.

    Returns
    -------
    StopRule
        `ReachedEnergy`, `EvidenceBelow` or `RemainingEvidence`; for None RemainingEvidence(-3).

    Examples
    --------
    >>> suggested({"below": 1e-3})
    EvidenceBelow(share=0.001, beta=1.0)
    """
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
