"""Canonical walks at several couplings as one set of samples.

Walk k has n_k samples of the density pi(x) w_k(x)/c_k, w_k = exp(-U_k), where U_k is the energy at its couplings.  A
sample of any of them has the base weight

    1/D(x),     D(x) = sum_k n_k w_k(x)/c_k,

whichever walk it is from, and the c_k are those that maximise the likelihood of all samples: they minimise the convex

    F(log c) = sum_i log D(x_i) + sum_k n_k log c_k

(Shirts and Chodera 2008).  F knows ratios of the c_k only; the first is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from observables.samples.of_walks import Group

Array = np.ndarray

NEWTON_STEPS = 100
CONVERGED = 1e-8  # largest change of any log c in a step
LONGEST_STEP = 5.0  # of log c: where walks hardly overlap Newton's step is too long


def base_weights(groups: Sequence[Group], log_c: float) -> list[Array]:
    """log(1/D) of the samples of each group, one group for each walk; `log_c` belongs to the first."""
    counts = np.array([group.energy.size for group in groups], float)
    couplings = [{name: value for name, (value, _, _) in group.couplings.items()} for group in groups]
    # w_k at the samples of all groups, (walk, sample)
    log_w = np.stack([np.concatenate([-group.energy_at(there) for group in groups]) for there in couplings])
    log_d = logsumexp(log_w + (np.log(counts) - relative_scales(log_w, counts) - log_c)[:, None], axis=0)
    return np.split(-log_d, np.cumsum(counts[:-1]).astype(int))


def relative_scales(log_w: Array, counts: Array) -> Array:
    """log c_k - log c_0 from log w_k at all samples, (walk, sample), and the number of samples of each walk."""
    # Started at the mean difference of neighbours, within each walk: the first term of both exponential averages.
    owner = np.repeat(np.arange(len(counts)), counts.astype(int))
    mean = np.array([log_w[:, owner == k].mean(axis=1) for k in range(len(counts))])  # (walk of the samples, w)
    steps = [0.5 * (mean[k, k + 1] - mean[k, k] + mean[k + 1, k + 1] - mean[k + 1, k]) for k in range(len(counts) - 1)]
    log_c = np.concatenate([[0.0], np.cumsum(steps)])
    for _ in range(NEWTON_STEPS):
        share = log_w + (np.log(counts) - log_c)[:, None]
        share = np.exp(share - logsumexp(share, axis=0))  # probability that a sample is of walk k
        gradient = counts - share.sum(axis=1)
        hessian = np.diag(share.sum(axis=1)) - share @ share.T
        step = np.append(0.0, np.linalg.lstsq(hessian[1:, 1:], -gradient[1:], rcond=None)[0])
        log_c = log_c + step * min(1.0, LONGEST_STEP / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < CONVERGED:
            return log_c
    raise ValueError(
        "Walks at several couplings do not overlap: no sample of one could be of another.  Put couplings between them, "
        "closer on larger lattices."
    )
