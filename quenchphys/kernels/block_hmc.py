"""Hamiltonian Monte Carlo with one acceptance test for each block of a periodic lattice.

The error of a trajectory is extensive, so on a large lattice a single test asks for ever shorter steps.  But an action with
neighbours only is a sum of independent parts once the first row of every block is held fixed: each block then has its own
energy, its own test, and a step size that does not depend on the size of the lattice.  The lattice is shifted at random
before every trajectory, so that no site is held fixed for long.

Configurations lie side by side on the last axis, (*shape, lane), so that neighbours are whole rows of a SIMD register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.kernels.minimum_norm import OUTER
from quenchphys.parallel.random_numbers import fold, normal, split, uniform

Array = jax.Array

JITTER = 0.2  # of the step size, from trajectory to trajectory, against periodic orbits


class LocalAction(Protocol):
    """What a problem offers whose action couples neighbouring sites only; arrays are (*shape, lane)."""

    @property
    def blocks(self) -> tuple[int, ...]:
        """Into how many blocks each axis is cut; all ones for a lattice that is not periodic along its axes."""
        ...

    def lane_action(self, x: Array, beta: Any) -> Array:
        """The action at every site, each link at its lower end: -log of the density at beta."""
        ...

    def lane_force(self, x: Array, beta: Any) -> Array:
        """The gradient of the action."""
        ...

    def lane_energy(self, x: Array) -> Array:
        """The energy that beta multiplies, (lane,)."""
        ...

    def lane_inside(self, x: Array) -> Array:
        """Whether a configuration belongs to what is sampled, (lane,)."""
        ...


class Moved(NamedTuple):
    """Configurations after a trajectory, and what it did."""

    x: Array
    acceptance: Array
    """Mean acceptance probability of blocks and lanes."""
    left: Array
    """Share of lanes whose trajectory left the region and was taken back."""


@dataclass(frozen=True)
class BlockHMC:
    """Trajectories of `steps` minimum-norm steps of two gradients each.

    Parameters
    ----------
    steps
        Steps of a trajectory.
    target_acceptance
        The acceptance rate of a block that tuning aims at.

    Examples
    --------
    >>> qp.bridge(phase, kernel=BlockHMC(steps=8))
    """

    steps: int = 8
    target_acceptance: float = 0.9

    def gradients(self) -> float:
        return 2.0 * self.steps

    def transition(self, problem: LocalAction, key: Array, x: Array, beta: Array, step_size: Array) -> Moved:
        """One trajectory of every lane of (*shape, lane); leaves exp(-action) inside the region invariant."""
        blocks = Blocks(x.shape[:-1], problem.blocks)
        shifting, kicking, testing, jittering = split(key, 4)
        x = blocks.shifted(shifting, x)
        momentum = normal(kicking, x.shape) * blocks.free
        step = step_size * (1 + JITTER * (2 * uniform(jittering, (1,))[0] - 1))

        def kicked(x: Array, momentum: Array, share: float) -> Array:
            return momentum - share * step * blocks.free * problem.lane_force(x, beta)

        def drift_kick_drift(x: Array, momentum: Array) -> tuple[Array, Array]:
            x = x + 0.5 * step * momentum
            momentum = kicked(x, momentum, 1 - 2 * OUTER)
            return x + 0.5 * step * momentum, momentum

        def one(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            # The outer kicks of neighbouring steps are one.
            x, momentum = drift_kick_drift(*carry)
            return x, kicked(x, momentum, 2 * OUTER)

        carry = (x, kicked(x, momentum, OUTER))
        proposed, final = drift_kick_drift(*jax.lax.fori_loop(1, self.steps, one, carry))
        final = kicked(proposed, final, OUTER)
        # Differences at every site before the sum: energies of a large lattice have no digits left for them.
        change = problem.lane_action(proposed, beta) - problem.lane_action(x, beta)
        change = blocks.total(change + 0.5 * (final - momentum) * (final + momentum))
        probability = jnp.where(jnp.isnan(change), 0.0, jnp.exp(jnp.minimum(-change, 0.0)))
        accepted = computed_once(uniform(testing, change.shape) < probability)
        moved = jnp.where(blocks.spread(accepted), proposed, x)
        inside = problem.lane_inside(moved)
        return Moved(jnp.where(inside, moved, x), probability.mean(), 1.0 - inside.mean())


def computed_once(accepted: Array) -> Array:
    """The same truth values (..., lane), as a product with the unit matrix.

    The compiler fuses a test into the loop over sites that uses it, and would compute its random number again at every site,
    which takes longer than the whole trajectory; products of matrices are never fused.
    """
    return jnp.matmul(accepted.astype(jnp.float32), np.eye(accepted.shape[-1], dtype=np.float32)) > 0.5


@dataclass(frozen=True)
class Blocks:
    """A periodic lattice cut into `counts` parts along each axis, with the first row of every part held fixed."""

    shape: tuple[int, ...]
    counts: tuple[int, ...]

    def _parts(self, axis: int) -> list[np.ndarray]:
        return np.array_split(np.arange(self.shape[axis]), self.counts[axis])

    @property
    def free(self) -> np.ndarray:
        """(*shape, 1): 0 at the sites held fixed, else 1; an axis in one part has none."""
        free = np.ones((*self.shape, 1), np.float32)
        for axis, count in enumerate(self.counts):
            if count > 1:
                free[(slice(None),) * axis + ([part[0] for part in self._parts(axis)],)] = 0
        return free

    def shifted(self, key: Array, x: Array) -> Array:
        """The lattice moved by a random number of sites along every axis that is cut."""
        for axis, count in enumerate(self.counts):
            if count > 1:
                amount = (self.shape[axis] * uniform(fold(key, axis), (1,))[0]).astype(jnp.int32)
                x = jnp.roll(x, amount, axis)
        return x

    def total(self, x: Array) -> Array:
        """Sums over blocks, (*counts, lane)."""
        for axis in range(len(self.shape)):
            member = np.zeros((self.counts[axis], self.shape[axis]), np.float32)
            for number, part in enumerate(self._parts(axis)):
                member[number, part] = 1
            x = jnp.moveaxis(jnp.tensordot(member, x, axes=(1, axis), precision=jax.lax.Precision.HIGHEST), 0, axis)
        return x

    def spread(self, x: Array) -> Array:
        """The value of its block at every site, (*counts, lane) -> (*shape, lane)."""
        for axis in range(len(self.shape)):
            lengths = np.array([len(part) for part in self._parts(axis)])
            x = jnp.repeat(x, lengths, axis, total_repeat_length=self.shape[axis])
        return x
