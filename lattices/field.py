"""A scalar field on a lattice: its free-field prior, its energy and gradient, and the observables recorded of it.

    S[phi] = sum_x [ stiffness/2 * sum_mu (phi_{x+mu} - phi_x)^2 + mu2/2 phi^2 + sum_n c_n phi^n ]     (n even, >= 4)
    prior  = the Gaussian part at mass m0_sq:  precision  stiffness * khat^2 + m0_sq
    U(phi) = sum_x [ (mu2 - m0_sq)/2 phi^2 + sum_n c_n phi^n ]

Couplings are leaves of the JAX tree and the lattice is static, so that another coupling does not compile again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lattices.graph import Graph
from lattices.meanfield.landscape import MeanField, describe
from lattices.torus import Torus

Array = jax.Array

COUPLING_NAMES = {4: "lam", 6: "eta"}
RECORDED_POWERS = (2, 4, 6)
SITES_PER_SOFTNESS = 8
SOFTNESS_LIMITS = (2.0, 256.0)
SITES_PER_BLOCK = 4096  # that are accepted or rejected together: fewer cost frozen walls, more cost shorter steps


@dataclass(frozen=True, eq=False)
class Modes:
    """The coordinates in which the free field is diagonal."""

    lattice: Torus | Graph
    precision: Any

    def to_modes(self, x: Array) -> Array:
        return self.lattice.to_modes(x)

    def from_modes(self, y: Array) -> Array:
        return self.lattice.from_modes(y)


jax.tree_util.register_dataclass(Modes, data_fields=["lattice", "precision"], meta_fields=[])


def _coupling_name(power: int) -> str:
    return COUPLING_NAMES.get(power, f"g{power}")


def flip(x: Array) -> Array:
    """phi -> -phi"""
    return -x


def sum_over_sites(x: Array) -> Array:
    """(n, *shape) -> (n,), as a product with ones: on a CPU faster than any other sum (`benchmarks/speed/stencil.py`)."""
    # The engine sums over coordinates in the same way (quenchphys.parallel.reductions); a lattice must not import the
    # engine, so that the two lines stand here as well.
    rows = x.reshape(x.shape[0], -1)
    return jnp.matmul(rows, jnp.ones(rows.shape[1], x.dtype), precision=jax.lax.Precision.HIGHEST)


def lane_sums(x: Array) -> Array:
    """(*shape, lane) -> (lane,), by a product with ones as well."""
    rows = x.reshape(-1, x.shape[-1])
    return jnp.matmul(jnp.ones(rows.shape[0], x.dtype), rows, precision=jax.lax.Precision.HIGHEST)


@dataclass(frozen=True, eq=False)
class ScalarField:
    """A scalar field with an even potential, ready to be sampled.

    Built by `phi4`, `phi6`, `scalar_field` and `scalar_field_on_graph`, which check their arguments.  The action, the
    prior and the energy are

        S = sum_x [stiffness/2 sum_mu (phi_{x+mu} - phi_x)^2 + mu2/2 phi^2 + sum_n c_n phi^n]
        prior = the Gaussian part at mass m0_sq
        U = sum_x [(mu2 - m0_sq)/2 phi^2 + sum_n c_n phi^n]

    so that Z(beta = 1) is the integral of exp(-S) over the norm of the prior.  A field is a problem for
    `quenchphys.quench`; its couplings are leaves of the JAX tree.

    Parameters
    ----------
    lattice
        A periodic lattice or a graph.
    mu2
        Mass parameter of the action.
    coefficients, powers
        Coefficients c_n of the potential and their powers n, even and at least 4.
    m0_sq
        Squared mass of the prior.
    stiffness
        Factor of the squared differences over links.
    name
        Name that is written into files.

    Examples
    --------
    >>> import jax, lattices
    >>> model = lattices.phi6(L=8, mu2=2.2957)
    >>> x = model.sample_prior(jax.random.key(0), 5)
    >>> x.shape, model.energy_and_grad(x)[0].shape
    ((5, 8, 8), (5,))
    >>> sorted(model.observe(x[0]))[:4]
    ['abs_m', 'link', 'm', 'm2']
    """

    lattice: Torus | Graph
    mu2: float
    coefficients: tuple[float, ...]
    m0_sq: float
    stiffness: float
    powers: tuple[int, ...]
    name: str

    # What is sampled: called inside compiled code.

    @property
    def basis(self) -> Modes:
        eigenvalues = jnp.asarray(self.lattice.eigenvalues, jnp.float32)
        return Modes(self.lattice, self.stiffness * eigenvalues + self.m0_sq)

    def sample_prior(self, key: Array, n: int) -> Array:
        """n exact draws of the free field of mass m0_sq, (n, *shape)."""
        basis = self.basis
        normal = jax.random.normal(key, (n, self.lattice.sites), jnp.float32)
        return basis.from_modes(normal / jnp.sqrt(basis.precision))

    def log_prior(self, x: Array) -> Array:
        """log pi of one configuration, normalised; by links instead of modes, which needs no transform."""
        quadratic = self.stiffness * self.lattice.link_energy(x) + self.m0_sq * (x * x).sum()
        return 0.5 * (jnp.log(self.basis.precision / (2 * math.pi)).sum() - quadratic)

    def log_prior_and_grad(self, x: Array) -> tuple[Array, Array]:
        """log pi (n,) up to a constant and its gradient (n, *shape) of a batch, by links."""
        gradient = -(self.stiffness * self.lattice.laplacian(x) + self.m0_sq * x)
        return 0.5 * sum_over_sites(x * gradient), gradient

    def energy(self, x: Array) -> Array:
        """U of one configuration."""
        return self.energy_and_grad(x[None])[0][0]

    def energy_and_grad(self, x: Array) -> tuple[Array, Array]:
        """U (n,) and dU/dphi (n, *shape) of a batch."""
        potential, slope = self._polynomial(x, (self.mu2 - self.m0_sq) / 2)
        return sum_over_sites(potential), slope

    def site_potential(self, x: Array) -> tuple[Array, Array]:
        """The whole potential of every site, prior included, V = mu2/2 phi^2 + sum_n c_n phi^n, and its slope."""
        return self._polynomial(x, self.mu2 / 2)

    def _polynomial(self, x: Array, quadratic: Any, beta: Any = None) -> tuple[Array, Array]:
        """quadratic phi^2 + beta sum_n c_n phi^n of every site and its slope: one pass, Horner's rule in p = phi^2."""
        p = x * x
        potential = jnp.zeros_like(x)  # u = p (a_2 + p (a_4 + p a_6))
        slope = jnp.zeros_like(x)  # du/dphi = phi (2 a_2 + p (4 a_4 + p 6 a_6))
        for n in range(max((2, *self.powers)), 0, -2):
            coefficient = quadratic if n == 2 else self._coefficient(n) if beta is None else beta * self._coefficient(n)
            potential = potential * p + coefficient
            slope = slope * p + n * coefficient
        return p * potential, x * slope

    def _coefficient(self, n: int) -> Any:
        return self.coefficients[self.powers.index(n)] if n in self.powers else 0.0

    # The same for configurations side by side on the last axis, (*shape, lane), as chains that move on sites have them.

    def lane_action(self, x: Array, beta: Any) -> Array:
        """-log prior + beta U at every site; each link stands at its lower end."""
        potential, _ = self._polynomial(x, self._lane_quadratic(beta), beta)
        return 0.5 * self.stiffness * self.lattice.lane_links(x) + potential

    def lane_force(self, x: Array, beta: Any) -> Array:
        """The gradient of the action."""
        return self.stiffness * self.lattice.lane_laplacian(x) + self._polynomial(x, self._lane_quadratic(beta), beta)[1]

    def lane_energy(self, x: Array) -> Array:
        """U, (lane,)"""
        return lane_sums(self._polynomial(x, (self.mu2 - self.m0_sq) / 2)[0])

    def lane_inside(self, x: Array) -> Array:
        """All configurations are sampled, (lane,)."""
        return jnp.ones(x.shape[-1], bool)

    def lane_sign_couplings(self, x: Array) -> Array:
        """K of every link, (*links, lane): with |phi| fixed the density is exp(K) where the two signs agree, else exp(-K).

        The signs are in the links alone, -stiffness phi_x phi_y, since the potential is even; K is negative here where
        they differ.
        """
        return self.stiffness * self.lattice.lane_products(x)

    def lane_lowest(self, labels: Array, joined: Array) -> Array:
        """The lowest label among a site and those it is joined to."""
        return self.lattice.lane_lowest(labels, joined)

    def _lane_quadratic(self, beta: Any) -> Any:
        return (self.m0_sq + beta * (self.mu2 - self.m0_sq)) / 2

    def lane_observe(self, x: Array) -> dict[str, Array]:
        """The observables of `observe`, each (lane,)."""
        p = x * x
        sums = {f"phi{n}": lane_sums(p ** (n // 2)) for n in self._recorded_powers}
        link = lane_sums(self.lattice.lane_links(x))
        return self._named(sums, lane_sums(x) / self.lattice.sites, link, self.lattice.lane_lowest_power(x))

    def observe(self, x: Array) -> dict[str, Array]:
        """Observables of one configuration, recorded for every particle.

        q, m                 mean phi^2 and mean phi
        abs_m, m2, m4        |m| and powers of m
        phi2, phi4, phi6     sums over sites; higher powers where the potential has them
        link                 sum of squared differences over links
        s_min                structure factor |phi_k|^2 / V at the smallest momenta, for `correlation_length`
        """
        p = x * x
        sums = {f"phi{n}": (p ** (n // 2)).sum() for n in self._recorded_powers}
        return self._named(sums, x.mean(), self.lattice.link_energy(x), self.lattice.lowest_power(x))

    @property
    def _recorded_powers(self) -> list[int]:
        return sorted({*RECORDED_POWERS, *self.powers})

    def _named(self, sums: dict[str, Array], m: Array, link: Array, s_min: Array) -> dict[str, Array]:
        q = sums["phi2"] / self.lattice.sites
        return {"q": q, "m": m, "abs_m": jnp.abs(m), "m2": m**2, "m4": m**4, **sums, "link": link, "s_min": s_min}

    @property
    def symmetries(self) -> tuple:
        return (flip,)

    # What a run must know before it starts: read on the host, where the couplings are numbers.

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lattice.shape

    @property
    def dims(self) -> tuple[str, ...]:
        return self.lattice.dims

    @property
    def blocks(self) -> tuple[int, ...]:
        """Into how many parts each axis is cut, so that a block has about SITES_PER_BLOCK sites; a graph is not cut."""
        if not isinstance(self.lattice, Torus):
            return (1,) * len(self.shape)
        side = round(SITES_PER_BLOCK ** (1 / len(self.shape)))
        return tuple(max(1, length // side) for length in self.shape)

    @property
    def potential(self) -> dict[int, float]:
        """{power: coefficient} of the whole potential of a site, prior included."""
        return {2: float(self.mu2) / 2, **self.interaction}

    @property
    def interaction(self) -> dict[int, float]:
        """{power: coefficient} of the powers n >= 4."""
        return {n: float(c) for n, c in zip(self.powers, self.coefficients, strict=True)}

    @property
    def couplings(self) -> dict[str, tuple[float, str, float]]:
        """{name: (value, observable, factor)}: U contains value * factor * observable, for reweighting."""
        higher = {_coupling_name(n): (c, f"phi{n}", 1.0) for n, c in self.interaction.items()}
        return {"mu2": (float(self.mu2), "phi2", 0.5), **higher}

    def with_coupling(self, name: str, value: float) -> ScalarField:
        """The same field with another value of one of its couplings, by the names of `couplings`."""
        if name == "mu2":
            return replace(self, mu2=value)
        changed = [value if _coupling_name(n) == name else c for n, c in zip(self.powers, self.coefficients, strict=True)]
        return replace(self, coefficients=tuple(changed))

    @property
    def parameters(self) -> dict[str, Any]:
        where = {"shape": list(self.shape)}
        if isinstance(self.lattice, Graph):
            where["links"] = np.asarray(self.lattice.links).tolist()
        return {
            **where,
            "mu2": float(self.mu2),
            "couplings": {str(n): c for n, c in self.interaction.items()},
            "m0_sq": float(self.m0_sq),
            "stiffness": float(self.stiffness),
        }

    @cached_property  # used by stop, phases and every workflow
    def mean_field(self) -> MeanField:
        """What mean-field theory expects of this model."""
        try:
            return describe(
                np.asarray(self.lattice.eigenvalues, float),
                float(self.stiffness),
                float(self.m0_sq),
                float(self.mu2),
                self.interaction,
            )
        except ArithmeticError:
            raise ValueError(
                f"the couplings of this {self.name} are of too different sizes: no phase can be told from "
                f"mu2 = {float(self.mu2):g} and {self.interaction}"
            ) from None

    @property
    def phases(self) -> dict[str, tuple[str, float, float]]:
        """Disordered and ordered, told apart by q, where mean field expects both; empty elsewhere.

        See `MeanField.two_phases` for what decides.
        """
        mean_field = self.mean_field
        cut = mean_field.q_cut
        if cut is None or not mean_field.two_phases:
            return {}
        return {"disordered": ("q", 0.0, cut), "ordered": ("q", cut, math.inf)}

    @property
    def stop(self) -> dict[str, float]:
        """How deep a ladder must go: below the ordered phase if there may be one, else until little of Z is left below."""
        energy = self.mean_field.stop_energy
        return {"below": 1e-4} if energy is None else {"energy": energy}

    @property
    def softness(self) -> float:
        """nu = V/8 between 2 and 256.

        A level is unimodal in U where S'' < beta^2/nu, and S'' falls as 1/V.  For phi^6 at its defaults V = 64 is
        right at 30 and no longer at 100; V/8 stays a factor of four below.  Above 256 nothing was measured.
        """
        low, high = SOFTNESS_LIMITS
        return float(min(max(self.lattice.sites / SITES_PER_SOFTNESS, low), high))


jax.tree_util.register_dataclass(
    ScalarField,
    data_fields=["lattice", "mu2", "coefficients", "m0_sq", "stiffness"],
    meta_fields=["powers", "name"],
)
