"""Hamiltonian Monte Carlo with the minimum-norm integrator of second order, for long trajectories.

With z = y/sigma, p ~ N(0, 1) and F = sigma score, one step of size eps has two gradients:

    p += lambda eps F;   z += eps/2 p;   p += (1 - 2 lambda) eps F;   z += eps/2 p;   p += lambda eps F

The leading error of such a step has two parts; this lambda makes the sum of their squares smallest (Omelyan, Mryglod and
Folk 2003).
"""

from __future__ import annotations

from dataclasses import dataclass

import jax

from quenchphys.kernels.base import Move, metropolis, random_length
from quenchphys.parallel.random_numbers import Stream
from quenchphys.parallel.reductions import over_coordinates
from quenchphys.smc.density import Density, Point

Array = jax.Array

OUTER = 0.1931833275037836  # lambda


@dataclass(frozen=True)
class MinimumNorm:
    """Hamiltonian Monte Carlo with the minimum-norm integrator, for long trajectories.

    Parameters
    ----------
    steps
        Mean number of steps of a trajectory, of two gradients each; the number is uniform between half and 3/2 of it.
    trajectories
        Trajectories at each level.
    step_size
        A fixed step size, in units of the prior's scale of each coordinate; nothing is tuned then.  Default: tuned.
    target_acceptance
        The acceptance rate that tuning aims at, between 0 and 1.

    Examples
    --------
    >>> qp.quench(model, softness=64, kernel=qp.MinimumNorm(steps=8))
    """

    steps: int = 4
    trajectories: int = 6
    step_size: float | None = None
    target_acceptance: float = 0.8

    def transitions(self, dimension: int) -> int:
        return self.trajectories

    def gradients(self) -> float:
        return 2.0 * self.steps

    def first_step_size(self, dimension: int) -> float:
        return 2 * dimension ** (-1 / 4)

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        momentum_stream, accept_stream = stream.split()
        start = momentum_stream.normal(point.position.shape)
        length = random_length(shared, self.steps)
        half, kick = 0.5 * step_size * scale, step_size * scale

        def kicked(momentum, point, share):
            return momentum + share * kick * density.score(point)

        def drift_kick_drift(position, momentum):
            position = position + half * momentum
            momentum = kicked(momentum, density.evaluate(position), 1 - 2 * OUTER)
            return position + half * momentum, momentum

        def step(_, carry):
            # The outer kicks of neighbouring steps are one.
            position, momentum = drift_kick_drift(*carry)
            return position, kicked(momentum, density.evaluate(position), 2 * OUTER)

        carry = (point.position, kicked(start, point, OUTER))
        position, momentum = drift_kick_drift(*jax.lax.fori_loop(1, length, step, carry))
        proposal = density.evaluate(position)
        momentum = kicked(momentum, proposal, OUTER)
        kinetic = 0.5 * over_coordinates((start - momentum) * (start + momentum))
        return metropolis(accept_stream, density.log_change(point, proposal) + kinetic, proposal, point)
