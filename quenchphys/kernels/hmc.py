"""Hamiltonian Monte Carlo with a diagonal metric and a random number of leapfrog steps.

With the momentum in units of the scale, p ~ N(0, 1), one leapfrog step of size eps is

    p += eps/2 sigma score(y);   y += eps sigma p;   p += eps/2 sigma score(y)

and the end is accepted with probability min(1, exp(-Delta H)), H = |p|^2/2 - log rho(y).  The number of steps is drawn
anew for each trajectory, the same for all particles, so that no oscillation of the dynamics can resonate with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from quenchphys.density import Density, Point
from quenchphys.kernels.kernel import Move, metropolis
from quenchphys.noise import Stream, uniform

Array = jax.Array


@dataclass(frozen=True)
class HMC:
    """`trajectories` per level, each of `leapfrogs` steps on average (uniform between half and 3/2 of it).

    Without a number of trajectories the ladder begins with six and follows the measured correlations (see `pacing`).
    """

    trajectories: int | None = None
    leapfrogs: int = 6
    step_size: float | None = None
    target_acceptance: float = 0.8

    def transitions(self, dimension: int) -> int:
        return 6 if self.trajectories is None else self.trajectories

    @property
    def adaptive(self) -> bool:
        return self.trajectories is None

    def gradients(self) -> float:
        return float(self.leapfrogs)

    def first_step_size(self, dimension: int) -> float:
        return dimension ** (-1 / 4)

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        momentum_stream, accept_stream = stream.split()
        width = step_size * scale
        start = momentum_stream.normal(point.position.shape)
        shortest = (self.leapfrogs + 1) // 2
        choices = 2 * (self.leapfrogs - shortest) + 1
        length = shortest + jnp.minimum((choices * uniform(shared, (1,))[0]).astype(jnp.int32), choices - 1)

        def leapfrog(_, carry):
            # The two half kicks between neighbouring steps are one full kick.
            position, momentum = carry
            there = density.evaluate(position + width * momentum)
            return there.position, momentum + width * density.score(there)

        momentum = start + 0.5 * width * density.score(point)
        position, momentum = jax.lax.fori_loop(1, length, leapfrog, (point.position, momentum))
        proposal = density.evaluate(position + width * momentum)
        momentum = momentum + 0.5 * width * density.score(proposal)
        kinetic = 0.5 * jnp.sum((start - momentum) * (start + momentum), axis=-1)
        return metropolis(accept_stream, density.log_change(point, proposal) + kinetic, proposal, point)
