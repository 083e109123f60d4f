"""Canonical walks at several couplings as one set of samples.

Walk k has n_k samples of the density pi(x) w_k(x)/c_k, w_k = exp(-U_k), where U_k is the energy at its couplings.  A
sample of any of them has the base weight

    1/D(x),     D(x) = sum_k n_k w_k(x)/c_k,

whichever walk it is from, and the c_k are those that maximise the likelihood of all samples: they minimise the convex

    F(log c) = sum_i log D(x_i) + sum_k n_k log c_k

(Shirts and Chodera 2008).  F knows ratios of the c_k only; the first is given.

All chains share the c_k.  The jackknife leaves a chain out of them too: to first order in delta_k = log c_k without it -
log c_k, that multiplies the weight of every sample by

    1 + sum_k p_k(x) delta_k,     p_k = (n_k w_k / c_k) / D,

with p_k the probability that the sample is of walk k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from observables.samples.of_walks import Chain

Array = np.ndarray

NEWTON_STEPS = 100
CONVERGED = 1e-8  # largest change of any log c in a step
SHARED = 10.0  # samples that could be of either of two walks: with fewer the ratio of their scales is not known
LONGEST_STEP = 5.0  # of log c: where walks hardly overlap Newton's step is too long


@dataclass(frozen=True, eq=False)
class SharedScales:
    """Base weights of the chains of several walks, and how they change when a block of chains is left out."""

    log_base: list[list[Array]]
    """of every block, one chain of each walk: log(B/D) of the samples, where B is the number of blocks"""
    belongs: list[list[Array]]
    """p_k of the samples, (walk, sample)"""
    delta: Array
    """log c_k without a block minus log c_k, (block, walk)"""


def shared_scales(blocks: Sequence[Sequence[Chain]], log_c: float) -> SharedScales:
    """Weights of blocks with one chain of each walk; `log_c` belongs to the first walk."""
    couplings = [{name: value for name, (value, _, _) in chain.couplings.items()} for chain in blocks[0]]
    order = [chain for walk in zip(*blocks, strict=True) for chain in walk]
    counts = np.array([sum(chain.energy.size for chain in walk) for walk in zip(*blocks, strict=True)], float)
    # w_k at the samples of all chains, (walk, sample)
    log_w = np.stack([np.concatenate([-chain.energy_at(there) for chain in order]) for there in couplings])
    parts = log_w + (np.log(counts) - relative_scales(log_w, counts))[:, None]
    log_d = logsumexp(parts, axis=0)
    belongs = np.exp(parts - log_d)
    ends = np.cumsum([chain.energy.size for chain in order])[:-1]
    bases = np.split(np.log(len(blocks)) + log_c - log_d, ends)
    shares = np.split(belongs, ends, axis=1)
    return SharedScales(
        [bases[b :: len(blocks)] for b in range(len(blocks))],
        [shares[b :: len(blocks)] for b in range(len(blocks))],
        _without_each([shares[b :: len(blocks)] for b in range(len(blocks))]),
    )


def _without_each(shares: Sequence[Sequence[Array]]) -> Array:
    """Newton's step of log c from the solution to that without one block, (block, walk); the first is given."""
    counts = np.array([[share.shape[1] for share in block] for block in shares], float)
    found = np.array([[share.sum(axis=1) for share in block] for block in shares]).sum(axis=1)  # (block, walk)
    products = np.array([sum(share @ share.T for share in block) for block in shares])
    hessian = np.einsum("bk,kl->bkl", found, np.eye(found.shape[1])) - products
    # The logarithms of the n_k in D change with the counts: p_k stays the probability of walk k as long as all walks lose
    # the same share of their samples, which blocks with one chain of each walk do.
    rest = hessian.sum(axis=0) - hessian
    gradient = -(counts - found)  # of F without the block, where that of all blocks vanishes
    step = np.linalg.solve(rest[:, 1:, 1:], -gradient[:, 1:, None])[..., 0]
    return np.concatenate([np.zeros((len(shares), 1)), step], axis=1)


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
            if np.linalg.eigvalsh(hessian[1:, 1:])[0] > SHARED:
                return log_c
            break
    raise ValueError(
        "Walks at several couplings do not overlap: no sample of one could be of another.  Put couplings between them, "
        "closer on larger lattices."
    )
