"""Hamiltonian Monte Carlo with one acceptance test for each block of a periodic lattice.

The error of a trajectory is extensive, so on a large lattice a single test asks for ever shorter steps.  But an action with
neighbours only is a sum of independent parts once the first row of every block is held fixed: each block then has its own
energy, its own test, and a step size that does not depend on the size of the lattice.  The lattice is shifted before every
trajectory, so that no site is held fixed for long; by the same amount each time, because a random one would cost as much as
the trajectory.  Trajectories have random lengths: with a fixed one, waves whose period it is would come back to where they
were (Neal 2011, Handbook of Markov Chain Monte Carlo, section 5.4.2).

Configurations lie side by side on the last axis, (*shape, lane), so that neighbours are whole rows of a SIMD register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.kernels.minimum_norm import OUTER
from quenchphys.parallel.random_numbers import normal, split, uniform

Array = jax.Array

JITTER = 0.2  # of the step size, from trajectory to trajectory
SHIFT = 0.382  # of a block, from trajectory to trajectory: the golden section, so that walls come to all places
SHORTEST = 0.5  # length of a trajectory relative to the mean; the longest is 1.5


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

    def lane_observe(self, x: Array) -> dict[str, Array]:
        """What is recorded, as by `observe` of one configuration, each (lane,)."""
        ...


class Chances(NamedTuple):
    """The random numbers of trajectories but for their momenta, drawn before the loop over trajectories.

    Drawn inside, each would be drawn anew for every site that reads it: the compiler makes one expression of all.
    """

    step: Array
    """The step size relative to the tuned one."""
    length: Array
    """The number of steps relative to the mean."""
    test: Array
    """Uniform numbers for the acceptance of blocks, (*counts, lane)."""
    momentum: Array
    """Key of the momenta."""


class Moved(NamedTuple):
    """Configurations after a trajectory, and what it did."""

    x: Array
    acceptance: Array
    """Mean acceptance probability of blocks and lanes."""
    left: Array
    """Share of lanes whose trajectory left the region and was taken back."""
    gradients: Array
    """Of every lane."""


@dataclass(frozen=True)
class BlockHMC:
    """Trajectories of about `steps` minimum-norm steps of two gradients each.

    Parameters
    ----------
    steps
        Mean number of steps of a trajectory, unless the sampler finds a better one.
    target_acceptance
        The acceptance rate of a block that tuning aims at.

    Examples
    --------
    >>> qp.bridge(phase, kernel=BlockHMC(steps=8))
    """

    steps: int = 8
    target_acceptance: float = 0.9

    def gradients(self) -> float:
        """Of a trajectory of mean length."""
        return 2.0 * self.steps + 1

    def chances(self, problem: LocalAction, key: Array, count: int, lanes: int) -> Chances:
        """The random numbers of `count` trajectories, one after the other along the first axis."""
        kicking, testing, jittering = split(key, 3)
        step, length = uniform(jittering, (2, count))
        return Chances(
            1 + JITTER * (2 * step - 1),
            SHORTEST + 2 * (1 - SHORTEST) * length,
            uniform(testing, (count, *problem.blocks, lanes)),
            split(kicking, count),
        )

    def transition(
        self, problem: LocalAction, chances: Chances, x: Array, beta: Array, step_size: Array, steps: Any
    ) -> Moved:
        """One trajectory of every lane of (*shape, lane), of about `steps` steps; leaves exp(-action) inside the region
        invariant."""
        blocks = Blocks(x.shape[:-1], problem.blocks)
        x = blocks.shifted(x)
        momentum = normal(chances.momentum, x.shape) * blocks.free
        step = step_size * chances.step
        last = 2 * jnp.maximum(jnp.round(steps * chances.length).astype(jnp.int32), 1)

        # One kick in each turn of the loop: two of them in one expression, and the compiler would compute the first again
        # for every neighbour that the second one reads.
        def one(part: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, momentum = carry
            kick = jnp.where(part % 2 == 1, 1 - 2 * OUTER, 2 * OUTER)  # the outer kicks of neighbouring steps are one
            kick = jnp.where((part == 0) | (part == last), OUTER, kick).astype(x.dtype)
            drift = jnp.where(part == last, 0.0, 0.5).astype(x.dtype)
            momentum = momentum - kick * step * blocks.free * problem.lane_force(x, beta)
            return x + drift * step * momentum, momentum

        proposed, final = jax.lax.fori_loop(0, last + 1, one, (x, momentum))
        # Differences at every site before the sum: energies of a large lattice have no digits left for them.
        change = problem.lane_action(proposed, beta) - problem.lane_action(x, beta)
        change = blocks.total(change + 0.5 * (final - momentum) * (final + momentum))
        probability = jnp.where(jnp.isnan(change), 0.0, jnp.exp(jnp.minimum(-change, 0.0)))
        accepted = chances.test < probability
        moved = jnp.where(blocks.spread(accepted), proposed, x)
        inside = problem.lane_inside(moved)
        return Moved(jnp.where(inside, moved, x), probability.mean(), 1.0 - inside.mean(), last + 1)


@dataclass(frozen=True)
class Blocks:
    """A periodic lattice cut into `counts` parts along each axis, with the first row of every part held fixed."""

    shape: tuple[int, ...]
    counts: tuple[int, ...]

    def _parts(self, axis: int) -> list[np.ndarray]:
        return np.array_split(np.arange(self.shape[axis]), self.counts[axis])

    @property
    def free(self) -> np.ndarray:
        """0 at the sites held fixed, else 1, (*shape, 1) or, along an axis in one part, which has none, broadcast."""
        lengths = [length if count > 1 else 1 for length, count in zip(self.shape, self.counts, strict=True)]
        free = np.ones((*lengths, 1), np.float32)
        for axis, count in enumerate(self.counts):
            if count > 1:
                free[(slice(None),) * axis + ([part[0] for part in self._parts(axis)],)] = 0
        return free

    def shifted(self, x: Array) -> Array:
        """The lattice moved by a share of the length of a block along every axis that is cut."""
        for axis, count in enumerate(self.counts):
            if count > 1:
                x = jnp.roll(x, max(1, round(SHIFT * self.shape[axis] / count)), axis)
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
        """The value of its block at every site, (*counts, lane) -> (*shape, lane); an axis in one part keeps length 1."""
        for axis, count in enumerate(self.counts):
            if count > 1:  # a single part is broadcast where it is used
                ones = [jax.lax.slice_in_dim(x, number, number + 1, axis=axis) for number in range(count)]
                lengths = [len(part) for part in self._parts(axis)]
                x = jnp.concatenate([jnp.repeat(*both, axis) for both in zip(ones, lengths, strict=True)], axis)
        return x
