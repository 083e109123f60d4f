"""The two families of densities a ladder descends, soft energy levels and temperatures, and the choice of the next one.

A family is a set of unnormalised densities pi(x) f_p(U(x)), one for each value p of its parameter:

    soft levels   f_E(U)    = (E - U)_+^nu      the quenched path; nu = 0 is the hard wall of nested sampling
    temperatures  f_beta(U) = exp(-beta U)      the tempered path

and G_p = E_pi[f_p(U)] is the volume of a level (G_beta = Z(beta)).  All formulas use the slack s = E - U or
differences of energies, never a difference of two large logarithms, because U is extensive and s is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from quenchphys.smc.population import effective_size, kept_share

Array = jax.Array

HALVINGS = 40  # of a bracket: float32 has 24 bits, the rest is for brackets far wider than the step
# Energies above it count as infinite: float32 ends at 3e38, and gradients and differences must fit as well.
LARGEST_ENERGY = 1e30


def bisect(
    is_above: Callable[[Array], Array], low: Array, high: Array, middle: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Narrow the bracket (low, high) around a root, on the device.

    `is_above(x)` says whether x lies above the root; `middle(low, high)` is where a bracket is cut: `arithmetic_mean`, or
    `geometric_mean` for a root whose order of magnitude is unknown.
    """

    def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        cut = middle(low, high)
        above = is_above(cut)
        return jnp.where(above, low, cut), jnp.where(above, cut, high)

    return jax.lax.fori_loop(0, HALVINGS, halve, (low, high))


def arithmetic_mean(low: Array, high: Array) -> Array:
    return 0.5 * (low + high)


def geometric_mean(low: Array, high: Array) -> Array:
    return jnp.sqrt(low) * jnp.sqrt(high)  # the product itself may not fit into float32


class Family(Protocol):
    """Functions of energies U (particle,) and of the level parameter (scalar), both float32."""

    def slope(self, energy: Array, parameter: Array) -> Array:
        """d log f / dU: the force of a level is slope * grad U."""
        ...

    def log_change(self, energy: Array, proposed: Array, parameter: Array) -> Array:
        """log f(U') - log f(U) at one level, for a Metropolis step from U to U'."""
        ...

    def log_factor(self, energy: Array, parameter: Array) -> Array:
        """log f."""
        ...

    def log_ratio(self, energy: Array, parameter: Array, new: Array) -> Array:
        """log r = log f_new(U) - log f_parameter(U), the incremental weight."""
        ...

    def first(self, energy: Array, size: float) -> Array:
        """The first parameter, at which prior draws have the effective sample size `size`."""
        ...

    def next(self, energy: Array, log_weight: Array, parameter: Array, target: Array) -> Array:
        """The next parameter: the step to it keeps the share `target` of the effective size."""
        ...


class SoftLevels(NamedTuple):
    """f_E(U) = (E - U)_+^nu, nu > -1."""

    softness: Any

    def slope(self, energy: Array, parameter: Array) -> Array:
        return -self.softness / (parameter - energy)

    def log_change(self, energy: Array, proposed: Array, parameter: Array) -> Array:
        # s' = s + U - U'; a proposal on or beyond the wall has zero density.
        return self._log_power(energy - proposed, parameter - proposed, parameter - energy, proposed < parameter)

    def log_ratio(self, energy: Array, parameter: Array, new: Array) -> Array:
        # s' = s + E' - E; zero outside either level, exactly.
        alive = (energy < parameter) & (energy < new)
        return self._log_power(new - parameter, new - energy, parameter - energy, alive)

    def log_factor(self, energy: Array, parameter: Array) -> Array:
        alive = energy < parameter
        slack = jnp.where(alive, parameter - energy, 1.0)
        return jnp.where(alive, self.softness * jnp.log(slack), -jnp.inf)

    def first(self, energy: Array, size: float) -> Array:
        # However heavy the tail of the energies: a level at the n-th lowest draw keeps fewer than n, and one far above the
        # 2n-th lowest weighs at least 2n of them alike.
        ascending, count = jnp.sort(energy), jnp.sum(energy < jnp.inf)
        lowest, n = ascending[0], int(size)
        tiny = 1e-9 * (1.0 + jnp.abs(lowest))  # where many draws have the lowest energy
        near = ascending[jnp.minimum(n, count) - 1] - lowest + tiny
        far = 100.0 * (1.0 + jnp.abs(self.softness)) * (ascending[jnp.minimum(2 * n, count) - 1] - lowest + tiny)

        def size_suffices(height: Array) -> Array:
            return effective_size(self.log_factor(energy, lowest + height)) >= size

        _, height = bisect(size_suffices, near, far, geometric_mean)
        return lowest + height

    def next(self, energy: Array, log_weight: Array, parameter: Array, target: Array) -> Array:
        lowest = jnp.min(jnp.where(log_weight > -jnp.inf, energy, jnp.inf))

        def keeps_enough(new: Array) -> Array:
            return kept_share(log_weight, self.log_ratio(energy, parameter, new)) >= target

        _, new = bisect(keeps_enough, lowest, parameter, arithmetic_mean)
        return new

    def _log_power(self, change: Array, new: Array, old: Array, alive: Array) -> Array:
        """nu log(s'/s) for slacks s, s' and their difference, each rounded once; minus infinity where not alive.

        log1p((s' - s)/s) is exact to rounding where s' is near s, and the logarithm of the quotient where it is much less.
        """
        change, new, old = (jnp.where(alive, a, b) for a, b in ((change, 0.0), (new, 1.0), (old, 1.0)))
        relative = change / old
        log = jnp.where(relative < -0.5, jnp.log(new / old), jnp.log1p(relative))
        return jnp.where(alive, self.softness * log, -jnp.inf)


LEAST_STEP = 1e-30  # in beta, of what is left: energies may be as large as LARGEST_ENERGY


class Temperatures(NamedTuple):
    """f_beta(U) = exp(-beta U) for 0 < beta <= last."""

    last: Any

    def slope(self, energy: Array, parameter: Array) -> Array:
        return -jnp.broadcast_to(parameter, energy.shape)

    def log_change(self, energy: Array, proposed: Array, parameter: Array) -> Array:
        return parameter * (energy - proposed)

    def log_ratio(self, energy: Array, parameter: Array, new: Array) -> Array:
        return jnp.where(energy < jnp.inf, (parameter - new) * energy, -jnp.inf)

    def log_factor(self, energy: Array, parameter: Array) -> Array:
        return self.log_ratio(energy, jnp.zeros(()), parameter)

    def first(self, energy: Array, size: float) -> Array:
        share = size / energy.shape[0]
        return self.next(energy, jnp.zeros_like(energy), jnp.zeros(()), jnp.asarray(share, energy.dtype))

    def next(self, energy: Array, log_weight: Array, parameter: Array, target: Array) -> Array:
        def keeps_enough(new: Array) -> Array:
            return kept_share(log_weight, self.log_ratio(energy, parameter, new)) >= target

        # The step in beta may be many orders of magnitude smaller than 1, so the step itself is bisected, in its logarithm.
        rest = self.last - parameter
        step, _ = bisect(lambda step: ~keeps_enough(parameter + step), LEAST_STEP * rest, rest, geometric_mean)
        return jnp.where(keeps_enough(self.last), self.last, parameter + step)
