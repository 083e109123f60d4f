"""The error of a single nested ladder: the spread of its order-statistic volumes, and of the samples within its shells.

The walls E_0 > E_1 > ... cut the samples into shells of volume G_{s-1} - G_s (G_{-1} = 1, and all of G_{K-1} below the last
wall).  Given their shell samples are independent draws of the prior there, so that an estimate, to first order

    delta F = sum_s sum_{i in s} (V_i - mean of V in s)  +  sum_j c_j (log t_j - E log t_j),

with V as in `genealogy`, and log t_j the independent compressions, log G_k = sum_{j <= k} log t_j.  A larger t_j makes all
shells below its wall larger and the one above it smaller:

    c_j = sum_{s > j} S_s - S_j G_j / (G_{j-1} - G_j),      S_s = sum of V in shell s.

Points of one shell that descend from one survivor are not quite independent; replicas show by how much.
"""

from __future__ import annotations

import numpy as np

from observables.estimation.terms import Terms

Array = np.ndarray

NUMBERS_AT_ONCE = 4_000_000  # held in memory at a time


def shell_variance(part: Terms) -> tuple[Array, Array]:
    """The covariance (T, F, F) of log Z and the means, and the sum of fourth powers (T, F) for its degrees of freedom."""
    replica = part.replica
    assert replica.live is not None
    order, counts = _shells(part)
    sums = np.zeros((len(counts), *part.shape))
    covariance = np.zeros((part.shape[0], part.shape[1], part.shape[1]))
    fourth = np.zeros(part.shape)
    ends = np.cumsum(counts)
    at_once = max(1, NUMBERS_AT_ONCE // (part.shape[0] * part.shape[1]))
    begin = 0
    while begin < len(counts):
        # Whole shells, as many as fit.
        start = ends[begin] - counts[begin]
        end = max(begin + 1, int(np.searchsorted(ends, start + at_once, side="right")))
        some = order[start : ends[end - 1]]
        values = part.about_means(part.rows(some))
        for s in range(begin, end):
            here = values[ends[s] - counts[s] - start : ends[s] - start]
            if not len(here):
                continue
            sums[s] = here.sum(axis=0)
            # Unbiased however few samples a shell has; a single one has no spread of its own.
            scale = np.sqrt(len(here) / max(len(here) - 1, 1))
            apart = scale * (here - here.mean(axis=0))
            covariance += np.einsum("itf,itg->tfg", apart, apart)
            fourth += (apart**4).sum(axis=0)
        begin = end
    for c in compression_slopes(sums, replica.log_volume):
        each = replica.log_compression_variance * c[:, :, None] * c[:, None, :]
        covariance += each
        fourth += np.diagonal(each, axis1=1, axis2=2) ** 2
    return covariance, fourth


def compression_slopes(sums: Array, log_volume: Array) -> Array:
    """c_j (K, T, F) from the sums of V in the shells (K + 1, T, F)."""
    below = sums[::-1].cumsum(axis=0)[::-1][1:]
    # G_j / (G_{j-1} - G_j) = 1/(1/t_j - 1)
    kept = 1 / np.expm1(-np.diff(log_volume, prepend=0.0))
    return below - sums[:-1] * kept[:, None, None]


def _shells(part: Terms) -> tuple[Array, Array]:
    """Samples in the order of their shells, of which the first is above the first wall, and how many each shell has."""
    replica = part.replica
    with np.errstate(invalid="ignore"):
        shell = np.searchsorted(-replica.level, -replica.energy.astype(float), side="left")
    return np.argsort(shell, kind="stable"), np.bincount(shell, minlength=len(replica.level) + 1)
