"""Self-consistent level volumes: the WHAM solution on the mixture of all levels.

The G_l that maximise the likelihood of all samples, prior draws included, minimise the convex function

    F(log G) = sum_i n_i w_i log D(U_i) + sum_l n_l log G_l,

whose stationary point is G_l = sum_i n_i w_i f_l(U_i)/D(U_i).  The samples enter as a histogram in U, and log G as the
telescoped value plus a correction, linear between at most KNOTS levels: a few Newton steps, however long the ladder.
Telescoping uses each level to reach the next one only; WHAM uses every overlap.  Where the two differ by more than
their errors, the levels in between were not in equilibrium.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.sparse import csr_array, diags_array

from observables.samples.of_ladders import Replica

Array = np.ndarray

KNOTS = 200
NEWTON_STEPS = 50
CONVERGED = 1e-6  # largest change of any log G in a step


class Likelihood:
    """F as a function of the correction at the knots, for one replica."""

    def __init__(self, replica: Replica):
        self.replica = replica
        self.hats = _hats(len(replica.level))  # (K, knots): log G = telescoped + hats @ correction
        met = replica.grid.weight > 0
        self.energy, self.samples = replica.grid.energy[met], replica.grid.weight[met]

    def knots_near(self, levels: slice) -> tuple[int, int]:
        """The range of knots on which these levels depend."""
        knots = self.hats[levels].indices
        return (int(knots.min()), int(knots.max()) + 1) if knots.size else (0, 0)

    def derivatives(self, correction: Array) -> tuple[Array, Array]:
        """Gradient and Hessian: n_l - sum_i n_i w_i p_l, and sum_i n_i w_i (p_l delta_lm - p_l p_m), at the knots."""
        mixture = self.replica.mixture
        mixture = dataclasses.replace(mixture, log_scale=mixture.log_scale - self.hats @ correction)
        gradient = self.replica.shape[1] * np.asarray(self.hats.sum(axis=0)).ravel()
        hessian = np.zeros((len(correction), len(correction)))
        total = np.zeros(len(self.replica.level))
        for rows, near, share in mixture.shares(self.energy):
            total[near] += self.samples[rows] @ share
            some = slice(*self.knots_near(near))
            at_knots = share @ self.hats[near, some].toarray()
            hessian[some, some] -= at_knots.T @ (at_knots * self.samples[rows, None])
        gradient -= self.hats.T @ total
        hessian += (self.hats.T @ diags_array(total) @ self.hats).toarray()
        return gradient, hessian


def self_consistent_volumes(replica: Replica) -> Array:
    """log G of every level, from WHAM."""
    likelihood = Likelihood(replica)
    correction = np.zeros(likelihood.hats.shape[1])
    for _ in range(NEWTON_STEPS):
        gradient, hessian = likelihood.derivatives(correction)
        step = np.linalg.lstsq(hessian, -gradient, rcond=1e-12)[0]
        # Newton's parabola holds where no volume moves by more than a factor e against its neighbours.
        step *= min(1.0, 1.0 / np.abs(np.diff(step, prepend=0.0)).max())
        correction += step
        if np.abs(step).max() < CONVERGED:
            break
    return replica.log_volume + likelihood.hats @ correction


def with_self_consistent_volumes(replica: Replica) -> Replica:
    """The same replica with volumes from WHAM; those of nested sampling are known, and stay as they are.

    To count its samples again would only repeat its choice of walls: G_{k+1}/G_k = 1 - m/N, low by 1/N.
    """
    if replica.live is not None:
        return replica
    volumes = self_consistent_volumes(replica)
    if not np.all(np.isfinite(volumes)):
        raise ValueError("The level volumes cannot be made self-consistent; use Pool(ladder, volumes='telescoped').")
    return replica.with_volumes(volumes)


def _hats(count: int) -> csr_array:
    """Piecewise linear functions on at most KNOTS of the levels, (K, knots)."""
    knots = np.unique(np.linspace(0, count - 1, min(count, KNOTS)).round())
    if len(knots) == 1:
        return csr_array(np.ones((count, 1)))
    return csr_array(make_interp_spline(knots, np.eye(len(knots)), k=1)(np.arange(count)))
