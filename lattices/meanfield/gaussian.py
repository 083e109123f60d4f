"""Self-consistent Gaussian phases: a uniform mean m and fluctuations of mass M^2, by the variational bound on log Z.

Among all Gaussians of uniform mean m and precision stiffness * khat^2 + M^2 the best bound on log Z(beta),

    log Z >= 1/2 sum_k [log(P0_k/P_k) - P0_k/P_k + 1] - V m0_sq m^2 / 2 - beta <U>,     P0 the prior's precision,

is stationary where  M^2 = <V''(phi)>  and  <V'(phi)> = 0,  V = m0_sq phi^2/2 + beta u(phi) the potential of a site,
phi ~ N(m, s), s = mean_k 1/P_k.  Each phase is one solution.  A free field has one, and it is exact.
For phi^6 at its defaults, L = 40: q = 0.170 and 1.98 where simulations give 0.184 and 1.89.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import comb, prod

import numpy as np
from scipy.optimize import brentq

MASSES = np.geomspace(1e5, 1e-6, 160)  # M^2 is searched from above, because the stiffest solution is the stable one


@dataclass(frozen=True)
class GaussianPhase:
    """One self-consistent solution at one beta.

    Examples
    --------
    >>> import lattices
    >>> phase = lattices.phi6(L=8, mu2=2.2957).mean_field.ordered
    >>> round(phase.abs_m, 3), round(phase.q, 3)
    (1.373, 1.966)
    """

    mass_sq: float
    variance: float
    abs_m: float
    energy: float
    """<U>"""
    log_z: float
    """the bound on log Z, for one sign of m"""

    @property
    def q(self) -> float:
        """<phi^2> = m^2 + variance"""
        return self.abs_m**2 + self.variance


@dataclass(frozen=True)
class GaussianField:
    """A field with the energy U = sum_x u(phi_x) over a free-field prior of mass m0_sq."""

    eigenvalues: np.ndarray
    """of minus the Laplacian, (sites,)"""
    stiffness: float
    m0_sq: float
    potential: Mapping[int, float]
    """u, {power: coefficient}"""

    def disordered(self, beta: float = 1.0) -> GaussianPhase | None:
        """The solution with m = 0."""
        return self._solve(beta, lambda variance: 0.0)

    def ordered(self, beta: float = 1.0) -> GaussianPhase | None:
        """The solution with the largest |m| > 0, None where there is none."""
        return self._solve(beta, lambda variance: self._ordered_mean_sq(beta, variance))

    def energy_std(self, phase: Callable[[float], GaussianPhase | None], beta: float = 1.0) -> float:
        """Standard deviation of U in a phase (`ordered` or `disordered`): Var U = -d<U>/dbeta."""
        step = 1e-3 * beta
        low, high = phase(beta - step), phase(beta + step)
        if low is None:
            low, step = phase(beta), step / 2
        assert low is not None and high is not None, "a phase that is stable at beta is stable at larger beta"
        return float(np.sqrt(max((low.energy - high.energy) / (2 * step), 0.0)))

    def _whole_potential(self, beta: float) -> dict[int, float]:
        whole = {n: beta * c for n, c in self.potential.items()}
        whole[2] = whole.get(2, 0.0) + self.m0_sq / 2
        return whole

    def _precision(self, mass_sq: float) -> np.ndarray:
        return self.stiffness * self.eigenvalues + mass_sq

    def _solve(self, beta: float, mean_sq) -> GaussianPhase | None:
        whole = self._whole_potential(beta)

        def excess(mass_sq: float) -> float | None:
            variance = float(np.mean(1 / self._precision(mass_sq)))
            p = mean_sq(variance)
            if p is None:
                return None
            return sum(c * n * (n - 1) * mean_power(n - 2, p, variance) for n, c in whole.items()) - mass_sq

        above = MASSES[0]
        for mass_sq in MASSES:
            here = excess(mass_sq)
            if here is None:
                return None
            if here >= 0:
                return self._phase(beta, mean_sq, brentq(excess, mass_sq, above) if mass_sq < above else mass_sq)
            above = mass_sq
        return None

    def _phase(self, beta: float, mean_sq, mass_sq: float) -> GaussianPhase:
        precision, prior = self._precision(mass_sq), self._precision(self.m0_sq)
        variance = float(np.mean(1 / precision))
        p = mean_sq(variance)
        sites = len(precision)
        energy = sites * sum(c * mean_power(n, p, variance) for n, c in self.potential.items())
        entropy = 0.5 * np.sum(np.log(prior / precision) - prior / precision + 1)
        log_z = entropy - 0.5 * sites * self.m0_sq * p - beta * energy
        return GaussianPhase(mass_sq, variance, float(np.sqrt(p)), float(energy), float(log_z))

    def _ordered_mean_sq(self, beta: float, variance: float) -> float | None:
        """Largest p = m^2 > 0 with <V'>/m = 0, a polynomial in p."""
        whole = self._whole_potential(beta)
        slope = np.zeros(max(whole) // 2)
        for n, c in whole.items():
            for pairs in range(n // 2):
                slope[n // 2 - 1 - pairs] += n * c * comb(n - 1, 2 * pairs) * pairings(pairs) * variance**pairs
        roots = np.polynomial.Polynomial(np.trim_zeros(slope, "b")).roots()
        real = roots.real[(np.abs(roots.imag) < 1e-9 * (1 + np.abs(roots.real))) & (roots.real > 0)]
        return float(real.max()) if real.size else None


def pairings(pairs: int) -> int:
    """<z^(2 pairs)> of a standard normal: (2 pairs - 1)!!"""
    return prod(range(2 * pairs - 1, 0, -2))


def mean_power(n: int, mean_sq: float, variance: float) -> float:
    """<phi^n> for even n and phi ~ N(m, variance)."""
    return sum(comb(n, 2 * j) * pairings(j) * variance**j * mean_sq ** (n // 2 - j) for j in range(n // 2 + 1))
