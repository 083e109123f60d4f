"""Analytic targets, with exact answers: a Gaussian, a first-order transition (spike and slab), two separate modes.

All have the prior pi = N(0, 1_D) and a Gaussian mixture exp(-U) as likelihood (paper, appendix "Problem definitions"):

    gaussian     exp(-U) = exp(-|x|^2/(2 sigma^2)),  sigma = 0.5
    spike_slab   exp(-U) = h_1 exp(-|x|^2/(2 sigma_1^2)) + h_2 exp(-|x|^2/(2 sigma_2^2)),  sigma = 1 and 0.1, with h_2 such
                 that the spike carries 90% of Z
    bimodal      exp(-U) = sum over +- of exp(-sum_j (x_j -+ 1)^2/(2 sigma_j^2)),  sigma_j from 0.01 to 1 in equal ratios

With tau^2 = sigma^2/(1 + sigma^2) a component of height h has evidence h tau^D exp(-mu^2/(2 (1 + sigma^2))).
Exact numbers are computed on the host in float64.  Targets are static to the compiler: equal ones share one program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, optimize, special, stats

from quenchphys.parallel.reductions import over_coordinates
from quenchphys.targets.prior import StandardNormal

Array = jax.Array


class _Target(StandardNormal):
    """What the three targets share beside the prior: their names in files."""

    name: ClassVar[str]

    @property
    def dims(self) -> tuple[str, ...]:
        return ("coordinate",)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"dim": self.dim}


class _Radial(_Target):
    """Targets whose energy depends on s = |x|^2 alone, which is chi^2_D under the prior."""

    def radial_energy(self, s: Any, xp: Any = jnp) -> Any:
        """U as a function of s, by the array module `xp`."""
        raise NotImplementedError

    def energy(self, x: Array) -> Array:
        return self.radial_energy(jnp.sum(x * x))

    def energy_and_grad(self, x: Array) -> tuple[Array, Array]:
        """U (n,) and dU/dx = 2 x dU/ds (n, D) of a batch."""
        energy, slope = jax.vmap(jax.value_and_grad(self.radial_energy))(over_coordinates(x * x))
        return energy, 2 * slope[:, None] * x

    def _radius_squared(self, energy: float) -> float:
        """s_E with U(s_E) = E; U grows with s."""
        if energy <= float(self.radial_energy(0.0, np)):
            return 0.0
        high = 1.0
        while self.radial_energy(high, np) < energy:
            high *= 2
        return optimize.brentq(lambda s: self.radial_energy(s, np) - energy, 0.0, high, xtol=1e-14, rtol=1e-14)

    def log_volume(self, energy: float, softness: float = 2.0) -> float:
        """log G_nu(E), G_nu(E) = integral over 0 < s < s_E of chi^2_D(s) (E - U(s))^nu ds, by quadrature in log s."""
        end = self._radius_squared(energy)
        if end == 0.0:
            return -math.inf

        def log_integrand(u: np.ndarray) -> np.ndarray:
            # s = s_E / (1 + exp(-u)): both ends of the interval at infinity, where the integrand vanishes smoothly.
            s = end * special.expit(u)
            slack = np.maximum(energy - self.radial_energy(s, np), 1e-300)
            jacobian = np.log(s) + special.log_expit(-u)
            return stats.chi2.logpdf(s, self.dim) + softness * np.log(slack) + jacobian

        return _log_integral(log_integrand, -60.0, 60.0)

    def log_z_at(self, beta: float) -> float:
        """log Z(beta), by quadrature over s."""
        return _log_integral(
            lambda u: stats.chi2.logpdf(np.exp(u), self.dim) - beta * self.radial_energy(np.exp(u), np) + u, -80.0, 12.0
        )


@jax.tree_util.register_static
@dataclass(frozen=True)
class Gaussian(_Radial):
    """A Gaussian likelihood of width sigma: no transition, everything in closed form.

    Examples
    --------
    >>> target = qp.targets.gaussian(10)
    >>> round(target.log_z, 3)
    -8.047
    """

    dim: int
    sigma: float = 0.5
    name: ClassVar[str] = "gaussian"

    def radial_energy(self, s: Any, xp: Any = jnp) -> Any:
        return s / (2 * self.sigma**2)

    def observe(self, x: Array) -> dict[str, Array]:
        return {"r2": jnp.sum(x * x)}

    @property
    def log_z(self) -> float:
        """log Z(1), exact."""
        return self.log_z_at(1.0)

    def log_z_at(self, beta: float) -> float:
        """Z(beta) = (1 + beta/sigma^2)^(-D/2)."""
        return -0.5 * self.dim * math.log1p(beta / self.sigma**2)

    def moments(self) -> dict[str, float]:
        """Posterior means of the observables."""
        return {"r2": self.dim * self.sigma**2 / (1 + self.sigma**2)}


@jax.tree_util.register_static
@dataclass(frozen=True)
class SpikeSlab(_Radial):
    """A broad and a narrow Gaussian at the origin: a first-order transition whose barrier grows with D.

    Examples
    --------
    >>> target = qp.targets.spike_slab(10)
    >>> round(target.log_z, 3)
    -1.163
    """

    dim: int
    slab: float = 1.0
    spike: float = 0.1
    spike_share: float = 0.9
    name: ClassVar[str] = "spike_slab"

    @property
    def _log_height(self) -> float:
        """log h_2 for h_1 = 1: h_2 tau_2^D = share/(1 - share) h_1 tau_1^D."""
        odds = math.log(self.spike_share / (1 - self.spike_share))
        return odds + self.dim * (_log_tau(self.slab) - _log_tau(self.spike))

    def radial_energy(self, s: Any, xp: Any = jnp) -> Any:
        return -xp.logaddexp(-s / (2 * self.slab**2), self._log_height - s / (2 * self.spike**2))

    def observe(self, x: Array) -> dict[str, Array]:
        """r2, and `spike`, the share of the spike in exp(-U) at x."""
        s = jnp.sum(x * x)
        odds = self._log_height - s / (2 * self.spike**2) + s / (2 * self.slab**2)
        return {"r2": s, "spike": jax.nn.sigmoid(odds)}

    @property
    def stop(self) -> dict[str, float]:
        return {"dlogz": -2.5 * self.dim - 20}

    @property
    def phases(self) -> dict[str, tuple[str, float, float]]:
        return {"slab": ("spike", -math.inf, 0.5), "spike": ("spike", 0.5, math.inf)}

    @property
    def log_z(self) -> float:
        """log Z(1), exact."""
        return self.dim * _log_tau(self.slab) - math.log(1 - self.spike_share)

    def moments(self) -> dict[str, float]:
        """Posterior means of the observables."""
        tau2 = [self.dim * math.exp(2 * _log_tau(width)) for width in (self.slab, self.spike)]
        return {"r2": (1 - self.spike_share) * tau2[0] + self.spike_share * tau2[1], "spike": self.spike_share}


@jax.tree_util.register_static
@dataclass(frozen=True)
class Bimodal(_Target):
    """Two equal, strongly anisotropic modes at +-1 in every coordinate, far apart for any local move.

    Examples
    --------
    >>> target = qp.targets.bimodal(10)
    >>> round(target.log_z, 3)
    -27.455
    """

    dim: int
    narrowest: float = 0.01
    widest: float = 1.0
    name: ClassVar[str] = "bimodal"

    def _precisions(self) -> np.ndarray:
        """w_j = 1/sigma_j^2."""
        return np.geomspace(self.narrowest, self.widest, self.dim) ** -2.0

    # With A = 1/2 sum w x^2, B = sum w x and c = 1/2 sum w:  U = A + c - log(2 cosh B).
    def energy(self, x: Array) -> Array:
        w = jnp.asarray(self._precisions(), jnp.float32)
        # Written around each mode, because A + c and log cosh B are large and nearly cancel.
        near, far = (0.5 * jnp.sum(w * (x - sign) ** 2) for sign in (1.0, -1.0))
        return -jnp.logaddexp(-near, -far)

    def observe(self, x: Array) -> dict[str, Array]:
        """`mode`: the share of the mode at +1 in exp(-U) at x."""
        return {"mode": jax.nn.sigmoid(2 * jnp.sum(jnp.asarray(self._precisions(), jnp.float32) * x))}

    @property
    def stop(self) -> dict[str, float]:
        return {"dlogz": -2.5 * self.dim - 20}

    @property
    def log_z(self) -> float:
        """log Z(1), exact."""
        return float(self._log_z(np.array(1.0 + 0j)).real)

    def log_z_at(self, beta: float) -> float:
        """log Z(beta), exact."""
        return float(self._log_z(np.array(beta + 0j)).real)

    def moments(self) -> dict[str, float]:
        """Posterior means of the observables: each mode carries half."""
        return {"mode": 0.5}

    def _log_z(self, beta: np.ndarray) -> np.ndarray:
        """log Z(beta) for complex beta, Re beta > 0.

        Under the tilt exp(-beta A) the coordinates are Gaussian of precision 1 + beta w, and B ~ N(0, v) with
        v = sum w^2/(1 + beta w).  Hence Z = exp(-beta c) prod (1 + beta w)^-1/2 E_B[(2 cosh B)^beta], and with
        2 cosh B = exp|B| (1 + exp(-2|B|)) the expectation is exp(beta^2 v/2) erfc(-beta sqrt(v/2)) plus a correction
        from |B| of order one.
        """
        w = self._precisions()
        b = beta[..., None]
        v = np.sum(w**2 / (1 + b * w), axis=-1)
        # exp(z^2) erfc(-z) = exp(z^2) (2 - erfc(z)) with z = beta sqrt(v/2); everything is kept relative to exp(z^2).
        z = beta * np.sqrt(v / 2)
        tame = special.wofz(1j * z)  # exp(z^2) erfc(z)
        u, weight = _nodes(40.0)  # of |B|
        tilt = -((u - b * v[..., None]) ** 2) / (2 * v[..., None])
        extra = np.exp(tilt + b * np.log1p(np.exp(-2 * u))) - np.exp(tilt)
        correction = 2 * np.sum(weight * extra, axis=-1) / np.sqrt(2 * np.pi * v)
        log_mean = z**2 + np.log(2 + correction - tame * np.exp(-(z**2)))
        return -beta * 0.5 * np.sum(w) - 0.5 * np.sum(np.log1p(b * w), axis=-1) + log_mean

    def log_volume(self, energy: float, softness: float = 2.0) -> float:
        """log G_nu(E), by Laplace inversion of Gamma(nu+1) beta^-(nu+1) Z(beta) along a line through the saddle."""

        def exponent(beta: np.ndarray) -> np.ndarray:
            return self._log_z(beta) + beta * energy - (softness + 1) * np.log(beta)

        def along(log_beta: float) -> float:
            return float(exponent(np.array(math.exp(log_beta) + 0j)).real)

        found = optimize.minimize_scalar(along, bounds=(-25.0, 25.0), method="bounded", options={"xatol": 1e-10})
        saddle, height = math.exp(found.x), found.fun
        step = 1e-3 * saddle
        curvature = (along(math.log(saddle + step)) - 2 * height + along(math.log(saddle - step))) / step**2
        # The trapezium rule on a decaying analytic integrand converges geometrically.
        t = np.arange(800) * (0.1 / math.sqrt(curvature))
        values = np.exp(exponent(saddle + 1j * t) - height).real
        total = (np.sum(values) - 0.5 * values[0]) * (t[1] - t[0])
        return height + math.log(total / math.pi) + special.gammaln(softness + 1)


def _log_tau(sigma: float) -> float:
    """log of tau, tau^2 = sigma^2/(1 + sigma^2)."""
    return 0.5 * (2 * math.log(sigma) - math.log1p(sigma**2))


def _log_integral(log_f: Any, low: float, high: float) -> float:
    """log of the integral of exp(log_f) over [low, high]: a coarse grid finds where it matters, a fine one integrates."""
    for points in (20_001, 8001):
        grid = np.linspace(low, high, points)
        values = log_f(grid)
        top = np.max(values)
        counts = np.flatnonzero(values > top - 60)
        low, high = grid[max(counts[0] - 1, 0)], grid[min(counts[-1] + 1, points - 1)]
    return float(top + math.log(integrate.simpson(np.exp(values - top), x=grid)))


@cache
def _nodes(end: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, end]."""
    node, weight = np.polynomial.legendre.leggauss(100)
    return 0.5 * end * (node + 1), 0.5 * end * weight


def _dimension(dim: Any) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise ValueError(f"the dimension of a target must be a whole number of at least 1; {dim!r} was given")
    return int(dim)


def gaussian(dim: int) -> Gaussian:
    """A Gaussian likelihood of width 0.5 under a standard normal prior.

    Parameters
    ----------
    dim
        Dimension D, at least 1.

    Returns
    -------
    Gaussian
        A problem with the exact answers `log_z`, `log_z_at(beta)`, `log_volume(energy, softness)` and `moments()`.

    Examples
    --------
    >>> target = qp.targets.gaussian(10)
    >>> round(target.log_z, 3)  # -5 log 5
    -8.047
    """
    return Gaussian(_dimension(dim))


def spike_slab(dim: int) -> SpikeSlab:
    """A spike of width 0.1, with 90% of the evidence, in a slab of width 1: a first-order transition.

    Parameters
    ----------
    dim
        Dimension D, at least 1; the barrier grows with it.

    Returns
    -------
    SpikeSlab
        A problem with the exact answers `log_z`, `log_z_at(beta)`, `log_volume(energy, softness)` and `moments()`.

    Examples
    --------
    >>> target = qp.targets.spike_slab(10)
    >>> ladder = qp.quench(target, particles=200)
    >>> exact = target.log_z
    """
    return SpikeSlab(_dimension(dim))


def bimodal(dim: int) -> Bimodal:
    """Two modes of equal weight at +-1 in every coordinate, with widths from 0.01 to 1.

    Parameters
    ----------
    dim
        Dimension D, at least 1.

    Returns
    -------
    Bimodal
        A problem with the exact answers `log_z`, `log_z_at(beta)`, `log_volume(energy, softness)` and `moments()`.

    Examples
    --------
    >>> qp.targets.bimodal(8).moments()
    {'mode': 0.5}
    """
    return Bimodal(_dimension(dim))
