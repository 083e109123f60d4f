"""One phase of a scalar field, seen from the Gaussian field that is closest to it.

A phase has a uniform mean v (0 if it is disordered) and fluctuations of some mass M.  The Gaussian field with both,

    S_0 = sum_x [stiffness/2 sum_mu (phi_{x+mu} - phi_x)^2 + M^2/2 (phi - v)^2],

is sampled exactly and its norm is known.  As a problem for the engine it is the prior, and the energy is what is missing
from it to the action S, which is a sum over sites because the links cancel:

    D = S - S_0 - V d = sum_x [V(phi_x) - M^2/2 (phi_x - v)^2 - d].

The constant d, about the mean of D per site, keeps D small, so that single precision suffices on any lattice.
The phase is a part of all configurations, cut out by q and, where there are two signs, by the sign of m:

    Z_phase = multiplicity * Z_0 e^(-V d) * <e^-D; inside>_0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lattices.field import Modes, ScalarField, lane_sums
from lattices.meanfield.gaussian import GaussianPhase, mean_power

Array = jax.Array


@dataclass(frozen=True, eq=False)
class PhaseField:
    """A phase of a scalar field as a problem: a Gaussian prior around its mean, and the rest of the action as energy.

    Built by `phase_fields`.

    Parameters
    ----------
    field
        The whole model.
    mean, mass_sq
        v and M^2 of the Gaussian field.
    shift
        d, the constant that is taken out of the energy of every site.
    low, high
        The phase is low <= q < high,
    signed
        and m > 0: one of two phases that differ by their sign.
    name
        What it is called in files.

    Examples
    --------
    >>> import lattices
    >>> ordered = lattices.phase_fields(lattices.phi6(L=16, mu2=2.2866))["ordered"]
    >>> round(ordered.mean, 2), ordered.multiplicity
    (1.37, 2)
    """

    field: ScalarField
    mean: float
    mass_sq: float
    shift: float
    low: float
    high: float
    signed: bool
    name: str

    # The problem: called inside compiled code.

    @property
    def _modes(self) -> Modes:
        eigenvalues = jnp.asarray(self.field.lattice.eigenvalues, jnp.float32)
        return Modes(self.field.lattice, self.field.stiffness * eigenvalues + self.mass_sq)

    def sample_prior(self, key: Array, n: int) -> Array:
        """n exact draws of the Gaussian field, (n, *shape)."""
        modes = self._modes
        normal = jax.random.normal(key, (n, self.field.lattice.sites), jnp.float32)
        return self.mean + modes.from_modes(normal / jnp.sqrt(modes.precision))

    def log_prior(self, x: Array) -> Array:
        """-S_0 of one configuration."""
        return -0.5 * (self.field.stiffness * self.field.lattice.link_energy(x) + 2 * self._gaussian(x)[0].sum())

    def energy(self, x: Array) -> Array:
        """D of one configuration."""
        return self._rest(x)[0].sum()

    def observe(self, x: Array) -> dict[str, Array]:
        """What the field observes, and its energy U under the name `potential`."""
        return {**self.field.observe(x), "potential": self.field.energy(x)}

    # The same for configurations side by side on the last axis, (*shape, lane), as the chains of a bridge have them.

    def lane_action(self, x: Array, beta: Any) -> Array:
        """S_0 + beta D at every site; each link stands at its lower end."""
        links = 0.5 * self.field.stiffness * self.field.lattice.lane_links(x)
        return links + self._gaussian(x)[0] + beta * self._rest(x)[0]

    def lane_force(self, x: Array, beta: Any) -> Array:
        """d(S_0 + beta D)/dphi"""
        return self.field.stiffness * self.field.lattice.lane_laplacian(x) + self._gaussian(x)[1] + beta * self._rest(x)[1]

    def lane_energy(self, x: Array) -> Array:
        """D, (lane,)"""
        return lane_sums(self._rest(x)[0])

    def lane_observe(self, x: Array) -> dict[str, Array]:
        """The observables of `observe`, each (lane,)."""
        return {**self.field.lane_observe(x), "potential": self.field.lane_energy(x)}

    def lane_inside(self, x: Array) -> Array:
        """Whether a configuration belongs to the phase, (lane,)."""
        q = lane_sums(x * x) / self.field.lattice.sites
        inside = (q >= self.low) & (q < self.high)
        return inside & (lane_sums(x) > 0) if self.signed else inside

    def _gaussian(self, x: Array) -> tuple[Array, Array]:
        """M^2/2 (phi - v)^2 at every site and its slope."""
        away = x - self.mean
        return 0.5 * self.mass_sq * away * away, self.mass_sq * away

    def _rest(self, x: Array) -> tuple[Array, Array]:
        """V - M^2/2 (phi - v)^2 - d at every site and its slope."""
        potential, slope = self.field.site_potential(x)
        gaussian, pull = self._gaussian(x)
        return potential - gaussian - self.shift, slope - pull

    # What a run must know before it starts: read on the host.

    @property
    def blocks(self) -> tuple[int, ...]:
        """Into how many parts each axis is cut for local trajectories."""
        return self.field.blocks

    @property
    def multiplicity(self) -> int:
        """Phases that differ by their sign only."""
        return 2 if self.signed else 1

    @property
    def log_scale(self) -> float:
        """log of multiplicity * Z_0 e^(-V d) over the norm of the field's own prior."""
        eigenvalues = np.asarray(self.field.lattice.eigenvalues, float)
        stiffness = float(self.field.stiffness)
        prior, precision = stiffness * eigenvalues + float(self.field.m0_sq), stiffness * eigenvalues + float(self.mass_sq)
        norm = 0.5 * float(np.log(prior / precision).sum())
        # The chains have the constant in single precision.
        return math.log(self.multiplicity) + norm - len(eigenvalues) * float(np.float32(self.shift))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.field.shape

    @property
    def dims(self) -> tuple[str, ...]:
        return self.field.dims

    @property
    def couplings(self) -> dict[str, tuple[float, str, float]]:
        """Those of the field: D is linear in them as U is."""
        return self.field.couplings

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            **self.field.parameters,
            "mean": float(self.mean),
            "mass_sq": float(self.mass_sq),
            "low": float(self.low),
            "high": None if math.isinf(self.high) else float(self.high),
            "signed": self.signed,
            "log_scale": self.log_scale,
        }

    def at(self, field: ScalarField) -> PhaseField:
        """The same Gaussian and the same cut for a field with other couplings."""
        moved = replace(self, field=field)
        return replace(moved, shift=_mean_rest(field, self.mean, self.mass_sq))


jax.tree_util.register_dataclass(
    PhaseField,
    data_fields=["field", "mean", "mass_sq", "shift", "low", "high"],
    meta_fields=["signed", "name"],
)


def phase_fields(model: ScalarField) -> dict[str, PhaseField]:
    """The two phases of a model at a first-order transition, each from its own self-consistent Gaussian.

    Parameters
    ----------
    model
        A scalar field for which mean field expects two phases, on any lattice.

    Returns
    -------
    dict
        "disordered" and "ordered", as problems for `quenchphys.bridge`.

    Examples
    --------
    >>> phases = lattices.phase_fields(lattices.phi6(L=40, mu2=2.2839))
    >>> ladder = qp.bridge(phases["ordered"])
    """
    found = model.mean_field
    if found.q_cut is None:
        raise ValueError(
            f"{model.name} with mu2 = {float(model.mu2):g} and {model.interaction} has no first-order transition: its "
            "potential never has two equal minima, so that there are no two phases"
        )
    gaussians = {"disordered": found.disordered, "ordered": found.ordered}
    for name, gaussian in gaussians.items():
        if gaussian is None or (gaussian.q < found.q_cut) != (name == "disordered"):
            raise ValueError(
                f"no Gaussian field is near the {name} phase of {model.name} at mu2 = {float(model.mu2):g}: "
                f"the phase is unstable there; choose mu2 closer to the transition"
            )
    cut = found.q_cut
    assert found.disordered is not None and found.ordered is not None
    return {
        "disordered": _phase(model, found.disordered, 0.0, cut, "disordered"),
        "ordered": _phase(model, found.ordered, cut, math.inf, "ordered"),
    }


def _phase(model: ScalarField, gaussian: GaussianPhase, low: float, high: float, name: str) -> PhaseField:
    mean, mass_sq = gaussian.abs_m, gaussian.mass_sq
    shift = _mean_rest(model, mean, mass_sq)
    return PhaseField(model, mean, mass_sq, shift, low, high, mean > 0, f"{model.name} {name}")


def _mean_rest(model: ScalarField, mean: float, mass_sq: float) -> float:
    """Mean of V - M^2/2 (phi - v)^2 at a site of the Gaussian field."""
    eigenvalues = np.asarray(model.lattice.eigenvalues, float)
    variance = float(np.mean(1 / (float(model.stiffness) * eigenvalues + mass_sq)))
    potential = sum(c * mean_power(n, mean**2, variance) for n, c in model.potential.items())
    return potential - 0.5 * mass_sq * variance
