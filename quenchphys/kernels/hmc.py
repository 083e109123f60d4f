"""Hamiltonian Monte Carlo with a diagonal metric, in which the free field moves exactly, and random trajectory lengths.

In units of the scale, z = y/sigma and p ~ N(0, 1), the Hamiltonian is an oscillator for every coordinate and the rest:

    H = sum_j (p_j^2 + omega_j^2 z_j^2)/2 + W(z),     omega_j^2 = sigma_j^2 (precision_j - smallest precision),

with the prior's precision in a basis that makes it diagonal: on a lattice the oscillators are what the links cost.  One
step of size eps is, with F = -grad W = sigma score + omega^2 z,

    p += eps/2 F;   (z, p) turned by the oscillators for a time eps;   p += eps/2 F

and without such a basis, or where all coordinates are alike, omega = 0 and it is the leapfrog step.  Its errors come from W
alone (`benchmarks/speed/free_motion.py` measures the gain).  The end is accepted with probability min(1, exp(-Delta H)).
The number of steps is drawn anew for each trajectory, the same for all particles, so that no oscillation can resonate with
it.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from quenchphys.kernels.base import Move, metropolis, random_length
from quenchphys.parallel.random_numbers import Stream
from quenchphys.parallel.reductions import over_coordinates
from quenchphys.smc.density import Density, Point

Array = jax.Array


@dataclass(frozen=True)
class HMC:
    """Hamiltonian Monte Carlo, the kernel for soft levels and temperatures.

    Parameters
    ----------
    trajectories
        Trajectories at each level.  Default: the ladder begins with six and follows the measured correlations (see
        `quenchphys.tuning.mutation_count`).
    leapfrogs
        Mean number of steps of a trajectory; the number is uniform between half and 3/2 of it.
    step_size
        A fixed step size, in units of the prior's scale of each coordinate; nothing is tuned then.  Default: tuned.
    target_acceptance
        The acceptance rate that tuning aims at, between 0 and 1.

    Examples
    --------
    >>> qp.quench(model, kernel=qp.HMC(trajectories=4, leapfrogs=12))
    """

    trajectories: int | None = None
    leapfrogs: int = 8
    step_size: float | None = None
    target_acceptance: float = 0.8

    def transitions(self, dimension: int) -> int:
        return 6 if self.trajectories is None else self.trajectories

    @property
    def adaptive(self) -> bool:
        """Whether the ladder chooses the number of trajectories."""
        return self.trajectories is None

    def gradients(self) -> float:
        return float(self.leapfrogs)

    def first_step_size(self, dimension: int) -> float:
        return dimension ** (-1 / 4)

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        momentum_stream, accept_stream = stream.split()
        start = momentum_stream.normal(point.position.shape)
        length = random_length(shared, self.leapfrogs)

        frequency = scale * jnp.sqrt(density.stiffness)
        angle = step_size * frequency
        stays = jnp.cos(angle)
        onward = scale * step_size * jnp.sinc(angle / jnp.pi)  # sigma sin(omega eps)/omega
        back = frequency * jnp.sin(angle) / scale
        kick, recall = step_size * scale, step_size * frequency**2 / scale

        def drift(position, momentum):
            return stays * position + onward * momentum, stays * momentum - back * position

        def kicked(momentum, point, share):
            return momentum + share * (kick * density.score(point) + recall * point.position)

        def step(_, carry):
            # The two half kicks between neighbouring steps are one full kick.
            position, momentum = drift(*carry)
            return position, kicked(momentum, density.evaluate(position), 1.0)

        carry = (point.position, kicked(start, point, 0.5))
        position, momentum = drift(*jax.lax.fori_loop(1, length, step, carry))
        proposal = density.evaluate(position)
        momentum = kicked(momentum, proposal, 0.5)
        kinetic = 0.5 * over_coordinates((start - momentum) * (start + momentum))
        return metropolis(accept_stream, density.log_change(point, proposal) + kinetic, proposal, point)
