"""A whole lattice moving as one site: first and second order transitions with exact answers by quadrature.

    prior x ~ N(0, 1),     U(x) = V (mu2/2 x^2 + lam x^4 + eta x^6),     V = L^2

All sizes share one compiled program, because V and the couplings are leaves of the JAX tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, optimize


@dataclass(frozen=True, eq=False)
class OneSite:
    volume: Any
    mu2: Any
    lam: Any
    eta: Any
    name = "one site"
    softness = 4.0
    symmetries = (jnp.negative,)
    shape = (1, 1)

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 1, 1))

    def log_prior(self, x):
        return -0.5 * (x * x).sum()

    def energy(self, x):
        p = (x * x).sum()
        return self.volume * (self.mu2 / 2 * p + self.lam * p**2 + self.eta * p**3)

    def observe(self, x):
        m, p = x.sum(), (x * x).sum()
        sums = {"phi2": self.volume * p, "phi4": self.volume * p**2, "phi6": self.volume * p**3}
        return {"q": p, "m": m, "abs_m": jnp.abs(m), "m2": m**2, "m4": m**4, **sums}

    @property
    def couplings(self):
        return {
            "mu2": (float(self.mu2), "phi2", 0.5),
            "lam": (float(self.lam), "phi4", 1.0),
            "eta": (float(self.eta), "phi6", 1.0),
        }

    @property
    def parameters(self):
        return {"volume": float(self.volume), "mu2": float(self.mu2), "lam": float(self.lam), "eta": float(self.eta)}

    @property
    def phases(self):
        return {"disordered": ("q", 0.0, CUT), "ordered": ("q", CUT, math.inf)} if float(self.lam) < 0 else {}

    @property
    def stop(self):
        if float(self.lam) >= 0:
            return {"below": 1e-4}
        lowest = optimize.minimize_scalar(lambda x: float(energy(self, x)), bounds=(0.5, 3.0), method="bounded").fun
        return {"energy": float(lowest) + 1.0}


jax.tree_util.register_dataclass(OneSite, data_fields=["volume", "mu2", "lam", "eta"], meta_fields=[])

CUT = 0.6


def one_site(L, mu2, lam=-1.0, eta=0.5):
    """The family: its first-order transition is near mu2 = 1 for a large volume."""
    return OneSite(float(L) ** 2, mu2, lam, eta)


def energy(problem, x):
    p = np.asarray(x) ** 2
    return problem.volume * (problem.mu2 / 2 * p + problem.lam * p**2 + problem.eta * p**3)


def averages(problem, function, beta=1.0):
    """<f(x)> and log Z by quadrature."""
    x = np.linspace(-9, 9, 400_001)
    u = energy(problem, x)
    weight = np.exp(-(x**2) / 2 - beta * u + beta * u.min())
    z = integrate.trapezoid(weight, x)
    return integrate.trapezoid(weight * function(x), x) / z, math.log(z / math.sqrt(2 * math.pi)) - beta * u.min()


def log_odds(problem):
    share, _ = averages(problem, lambda x: (x**2 >= CUT).astype(float))
    return math.log(share / (1 - share))


def coexistence_mu2(L, share=0.5, **couplings):
    wanted = math.log(share / (1 - share))
    return optimize.brentq(lambda mu2: log_odds(one_site(L, mu2, **couplings)) - wanted, 0.2, 2.0, xtol=1e-10)


def binder(problem):
    (m2, _), (m4, _) = averages(problem, lambda x: x**2), averages(problem, lambda x: x**4)
    return 1 - m4 / (3 * m2**2)
