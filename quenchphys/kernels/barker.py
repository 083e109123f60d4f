"""The Barker proposal: a random walk in which every coordinate is tilted along the score, robust to steep gradients.

    z = eps sigma eta;  b_j = +1 with probability 1/(1 + exp(-z_j score_j(y))), else -1;  y' = y + b z

(Livingstone and Zanella 2022; acceptance 0.4.)  The proposal density is symmetric but for the sign probabilities, so
log q(y|y') - log q(y'|y) = sum_j log1p(exp(-d_j score_j(y))) - log1p(exp(d_j score_j(y'))), d = y' - y.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from quenchphys.kernels.base import Move, OneGradientSteps, metropolis
from quenchphys.parallel.random_numbers import Stream
from quenchphys.parallel.reductions import over_coordinates
from quenchphys.smc.density import Density, Point

Array = jax.Array


@dataclass(frozen=True)
class Barker(OneGradientSteps):
    """The Barker proposal, for densities with steep gradients.

    Parameters
    ----------
    steps
        Steps at each level, each with one gradient.  Default: as many as `MALA`.
    step_size
        A fixed step size, in units of the prior's scale of each coordinate; nothing is tuned then.  Default: tuned.
    target_acceptance
        The acceptance rate that tuning aims at, between 0 and 1.

    Examples
    --------
    >>> qp.quench(model, softness=2, kernel=qp.Barker())
    """

    target_acceptance: float = 0.4

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        noise_stream, sign_stream, accept_stream = stream.split(3)
        width = step_size * scale
        score = density.score(point)
        jump = width * noise_stream.normal(point.position.shape)
        forward = sign_stream.uniform(jump.shape) < jax.nn.sigmoid(jump * score)
        proposal = density.evaluate(point.position + jnp.where(forward, jump, -jump))
        step = proposal.position - point.position
        back = jax.nn.softplus(-step * score) - jax.nn.softplus(step * density.score(proposal))
        log_accept = density.log_change(point, proposal) + over_coordinates(back)
        return metropolis(accept_stream, log_accept, proposal, point)
