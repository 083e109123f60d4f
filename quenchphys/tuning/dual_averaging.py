"""Dual averaging: the step size that has a wanted acceptance rate, while the level stays the same.

Nesterov (2009) in the form of Hoffman and Gelman (2014), section 3.2, with their constants.  With h the wanted acceptance
rate minus the measured one in the t-th update,

    H_t = (1 - 1/(t + 10)) H_t-1 + h/(t + 10),     log eps_t+1 = mu - sqrt(t)/0.05 H_t,     mu = log(10 eps_1),

and the answer is an average of log eps_t in which the t-th has the weight t^-3/4.  The results are those of blackjax, bit
for bit (`tests/quenchphys/tuning/test_tuning.py`), without the time it takes to import (`benchmarks/speed/second_start.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

DELAY, GAMMA, KAPPA = 10, 0.05, 0.75


class DualAveraging(NamedTuple):
    """State of the search for one step size eps; the field names are those of blackjax."""

    log_x: Any  # log eps to try next
    log_x_avg: Any  # average of log eps, the answer
    step: Any  # t
    avg_error: Any  # H
    mu: Any

    @staticmethod
    def around(step_size: Any) -> DualAveraging:
        """Begin at a first guess eps_1."""
        return DualAveraging(jnp.log(step_size), 0.0, 1, 0.0, jnp.log(10 * step_size))

    def update(self, error: Any) -> DualAveraging:
        """Take in one measurement: the acceptance rate was too small by `error`."""
        t, share = self.step + DELAY, self.step**-KAPPA
        avg_error = (1 - 1 / t) * self.avg_error + error / t
        return DualAveraging(
            log_x=self.mu - jnp.sqrt(self.step) / GAMMA * avg_error,
            log_x_avg=share * self.log_x + (1 - share) * self.log_x_avg,
            step=self.step + 1,
            avg_error=avg_error,
            mu=self.mu,
        )

    @property
    def step_size(self) -> Any:
        """The step size found so far."""
        return jnp.exp(self.log_x_avg)
