"""Mean field of a uniform configuration: the minima of a potential, and its first-order transition.

A potential here is {power: coefficient} with even powers, V(phi) = sum_n c_n phi^n.  In p = phi^2, with the quadratic
term apart, V = p (mu2/2 + W(p)), W(p) = sum_{n>=4} c_n p^{n/2-1}.  A uniform field therefore has two minima of equal
depth, phi = 0 and phi^2 = p*, at mu2 = -2 W(p*) with p* the minimum of W, provided that W(p*) < 0.  For phi^6:
p* = -lam / (2 eta), mu2 = lam^2 / (2 eta).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Potential = Mapping[int, float]


@dataclass(frozen=True)
class UniformCoexistence:
    """Where a uniform field has two minima of equal depth."""

    mu2: float
    ordered_q: float
    """phi^2 in the ordered minimum"""
    barrier: float
    """height per site of the potential between the two minima"""

    @property
    def q_cut(self) -> float:
        """Half way between the two phases in q = phi^2."""
        return self.ordered_q / 2


def value(potential: Potential, phi: float) -> float:
    """V(phi)"""
    return float(sum(c * phi**n for n, c in potential.items()))


def minima(potential: Potential) -> tuple[float, ...]:
    """Fields phi >= 0 at the local minima of V, ascending."""
    outer = [p for p in _positive_roots(_slope(potential)) if _curvature(potential, p) > 0]
    inner = [0.0] if _origin_is_minimum(potential) else []
    return tuple(inner + [float(np.sqrt(p)) for p in outer])


def lowest(potential: Potential) -> float:
    """The lowest value of V, minus infinity if it has none."""
    wells = minima(potential)
    if not wells:
        return 0.0 if not any(potential.values()) else -np.inf
    return min(value(potential, phi) for phi in wells)


def coexistence(couplings: Potential) -> UniformCoexistence | None:
    """The first-order transition of the powers n >= 4 as mu2 is varied; None if the transition is continuous."""
    per_p = np.zeros(max(couplings, default=2) // 2)  # W(p), ascending powers of p
    for n, c in couplings.items():
        per_p[n // 2 - 1] += c
    at = _positive_roots(np.polynomial.polynomial.polyder(per_p))
    depth, p = min(((float(np.polynomial.polynomial.polyval(q, per_p)), q) for q in at), default=(0.0, 0.0))
    if depth >= 0:
        return None
    potential = {2: -depth, **couplings}
    between = [q for q in _positive_roots(_slope(potential)) if q < p * (1 - 1e-9)]
    barrier = max(value(potential, np.sqrt(q)) for q in between)
    return UniformCoexistence(mu2=-2 * depth, ordered_q=p, barrier=barrier)


def _slope(potential: Potential) -> np.ndarray:
    """dV/dp, ascending powers of p."""
    slope = np.zeros(max(potential) // 2)
    for n, c in potential.items():
        slope[n // 2 - 1] += n / 2 * c
    return slope


def _curvature(potential: Potential, p: float) -> float:
    return float(np.polynomial.polynomial.polyval(p, np.polynomial.polynomial.polyder(_slope(potential))))


def _origin_is_minimum(potential: Potential) -> bool:
    leading = [potential[n] for n in sorted(potential) if potential[n] != 0]
    return bool(leading) and leading[0] > 0


def _positive_roots(ascending: np.ndarray) -> list[float]:
    roots = np.polynomial.Polynomial(np.trim_zeros(ascending, "b") if ascending.any() else [1.0]).roots()
    scale = 1e-7 * np.abs(roots).max(initial=0.0)
    return sorted(float(r.real) for r in roots if abs(r.imag) <= scale and r.real > scale)
