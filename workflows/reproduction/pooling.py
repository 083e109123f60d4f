"""Posterior weights by which the paper pools the particles of all levels (its appendix "Pooling the path").

    quenched    q_kj = b_k w_kj,  b_k = G_k exp(-E_k) dE_k              quadrature over the levels
    tempered    q_kj = n w_kj exp(-U_kj) / sum_l exp(-beta_l U_kj) / Z_l    balance heuristic over the stages

Their Kish effective sample size (sum q)^2 / sum q^2 says how concentrated the weights are, and nothing about correlations.
The observables of this project use another, exact pooling; this one is for comparison with the printed numbers.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from observables.samples.of_ladders import Replica

Array = np.ndarray


def pooled_log_weights(replica: Replica) -> Array:
    """log q (K, N), normalised."""
    log_weight = np.where(np.isnan(replica.log_weight), -np.inf, replica.log_weight.astype(float))
    if replica.softness is not None:
        log_q = _log_quadrature(replica)[:, None] + log_weight
    else:
        energy = replica.particle_energy.astype(float)
        log_stage = -replica.telescoped  # log 1/Z_l
        log_q = log_weight - energy - _log_mixture(replica.level, log_stage, energy)
    return log_q - logsumexp(log_q)


def pooled_kish(replica: Replica) -> float:
    """Kish effective sample size over every particle of every level."""
    return float(np.exp(-logsumexp(2 * pooled_log_weights(replica))))


def carrying(replica: Replica) -> float:
    """Kish effective number of levels: that of the total weight of each level."""
    log_level = logsumexp(pooled_log_weights(replica), axis=1)
    return float(np.exp(-logsumexp(2 * log_level)))


def _log_quadrature(replica: Replica) -> Array:
    """log b_k, with dE_k the central difference of the levels."""
    width = -np.gradient(replica.level) if len(replica.level) > 1 else np.ones(1)
    return replica.telescoped - replica.level + np.log(width)


def _log_mixture(beta: Array, log_stage: Array, energy: Array) -> Array:
    """log sum_l exp(log_stage_l - beta_l U), stage by stage, because all of them at once would not fit into memory."""
    total = np.full(energy.shape, -np.inf)
    for one, log_one in zip(beta, log_stage, strict=True):
        total = np.logaddexp(total, log_one - one * energy)
    return total
