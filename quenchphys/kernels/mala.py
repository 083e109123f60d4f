"""The Metropolis-adjusted Langevin algorithm, preconditioned by a diagonal scale.

    y' = y + eps^2/2 sigma^2 score(y) + eps sigma eta,   eta ~ N(0, 1)

(Roberts and Tweedie 1996; acceptance 0.574 is optimal in high dimension, Roberts and Rosenthal 1998.)
"""

from __future__ import annotations

from dataclasses import dataclass

import jax

from quenchphys.kernels.base import Move, OneGradientSteps, metropolis
from quenchphys.parallel.random_numbers import Stream
from quenchphys.parallel.reductions import over_coordinates
from quenchphys.smc.density import Density, Point

Array = jax.Array


@dataclass(frozen=True)
class MALA(OneGradientSteps):
    """The Metropolis-adjusted Langevin algorithm, the kernel for hard levels (nu up to 4).

    Parameters
    ----------
    steps
        Steps at each level, each with one gradient.  Default: max(16, sqrt(D) rounded up to a power of two).
    step_size
        A fixed step size, in units of the prior's scale of each coordinate; nothing is tuned then.  Default: tuned.
    target_acceptance
        The acceptance rate that tuning aims at, between 0 and 1.

    Examples
    --------
    >>> qp.quench(model, softness=2, kernel=qp.MALA(steps=32))
    """

    target_acceptance: float = 0.574

    def transition(
        self, stream: Stream, shared: Array, point: Point, density: Density, step_size: Array, scale: Array
    ) -> tuple[Point, Move]:
        noise_stream, accept_stream = stream.split()
        width = step_size * scale
        noise = noise_stream.normal(point.position.shape)
        proposal = density.evaluate(point.position + width * (0.5 * width * density.score(point) + noise))
        # The noise that would lead back: y = y' + width^2/2 score(y') + width * back.
        back = (point.position - proposal.position) / width - 0.5 * width * density.score(proposal)
        log_accept = density.log_change(point, proposal) + 0.5 * over_coordinates((noise - back) * (noise + back))
        return metropolis(accept_stream, log_accept, proposal, point)
