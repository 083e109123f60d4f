"""The `Kernel` protocol, and what kernels share: the Metropolis step and random trajectory lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from quenchphys.parallel.random_numbers import Stream, uniform
from quenchphys.smc.density import Density, Point, choose

Array = jax.Array

# Nats of log prior that a trajectory may lose: one that loses more has left all that the prior allows.
DIVERGED = 1000.0


class Move(NamedTuple):
    """What a transition reports, one number for each particle.

    Examples
    --------
    >>> moved, move = kernel.transition(stream, shared, point, density, step_size, scale)
    >>> move.acceptance.mean()
    """

    acceptance: Array
    """Acceptance probability."""
    undefined: Array
    """1 where the energy was NaN at a proposal that the prior allows; every proposal without an energy is rejected."""


class Kernel(Protocol):
    """A kernel: a frozen dataclass of its settings, with one transition that leaves the density of a level invariant.

    With `step_size=None` the ladder tunes step and scale from its own particles, at the cost of a bias of order
    1/particles in the volumes.  With a step size given, in units of the prior's scale of each coordinate, nothing is
    tuned: a kernel that knows nothing of the particles it moves makes a prescribed ladder's volumes exactly unbiased.

    A kernel that also has `adaptive = True` leaves the number of transitions to the ladder, which begins with `transitions`
    and then follows the measured correlations (see `quenchphys.tuning.mutation_count`).

    Examples
    --------
    Random-walk Metropolis; `docs/gallery/custom_kernel.py` is the whole program:
    >>> @dataclass(frozen=True)
    ... class RandomWalk:
    ...     step_size: float | None = None
    ...     target_acceptance: float = 0.234
    ...
    ...     def transitions(self, dimension):
    ...         return 64
    ...
    ...     def gradients(self):
    ...         return 1.0
    ...
    ...     def first_step_size(self, dimension):
    ...         return 2.4 / dimension**0.5
    ...
    ...     def transition(self, stream, shared, point, density, step_size, scale):
    ...         noise, accept = stream.split()
    ...         proposal = density.evaluate(point.position + step_size * scale * noise.normal(point.position.shape))
    ...         return metropolis(accept, density.log_change(point, proposal), proposal, point)
    """

    @property
    def step_size(self) -> float | None:
        """The step size, or None to have it tuned."""
        ...

    @property
    def target_acceptance(self) -> float:
        """The acceptance rate that tuning aims at, between 0 and 1."""
        ...

    def transitions(self, dimension: int) -> int:
        """Transitions at one level, for configurations of D = `dimension` numbers."""
        ...

    def gradients(self) -> float:
        """Mean number of gradients in one transition."""
        ...

    def first_step_size(self, dimension: int) -> float:
        """A guess from the scaling theory of the kernel, in units of the scale of a coordinate."""
        ...

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        """Move every particle of a population (particle, D) once.

        Parameters
        ----------
        stream
            Random numbers of each particle's own.
        shared
            A random key that is the same for all replicas, for choices that fix how long they run.
        point
            The particles, with energies and gradients.
        density
            The density of the level, which the transition must leave invariant.
        step_size
            A scalar.
        scale
            (D,), the scale of each coordinate.

        Returns
        -------
        tuple of Point and Move
            The particles after the move, and its acceptance.
        """
        ...


@dataclass(frozen=True)
class OneGradientSteps:
    """Settings of kernels that make many short steps of one gradient each: random walks with a drift along the score."""

    steps: int | None = None
    step_size: float | None = None
    target_acceptance: float = 0.5

    def transitions(self, dimension: int) -> int:
        """As given, or max(16, 2^ceil(log2 sqrt D)): a random walk crosses a D-dimensional shell in about sqrt(D) steps."""
        return self.steps or max(16, 2 ** math.ceil(math.log2(math.sqrt(dimension))))

    def gradients(self) -> float:
        return 1.0

    def first_step_size(self, dimension: int) -> float:
        return dimension ** (-1 / 6)


def metropolis(stream: Stream, log_accept: Array, proposal: Point, point: Point) -> tuple[Point, Move]:
    """Accept each proposal with probability min(1, exp(log_accept)); a NaN is a rejection.

    A trajectory whose steps are too long for the forces it meets runs away until its numbers overflow, and inf - inf is NaN
    in any model: such a move is rejected as every bad one is.  Only where the prior allows the proposal is it the model
    that has no energy there.
    """
    log_u = jnp.log(stream.uniform(log_accept.shape))
    probability = jnp.where(jnp.isnan(log_accept), 0.0, jnp.exp(jnp.minimum(log_accept, 0.0)))
    allowed = proposal.log_prior > point.log_prior - DIVERGED
    undefined = (jnp.isnan(proposal.energy) & allowed).astype(jnp.float32)
    return choose(log_u < log_accept, proposal, point), Move(probability, undefined)


def random_length(shared: Array, mean: int) -> Array:
    """Steps of a trajectory, the same for all particles: uniform between half and 3/2 of the mean."""
    shortest = (mean + 1) // 2
    choices = 2 * (mean - shortest) + 1
    return shortest + jnp.minimum((choices * uniform(shared, (1,))[0]).astype(jnp.int32), choices - 1)
