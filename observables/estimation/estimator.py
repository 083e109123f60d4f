"""The average over any target: the balance heuristic over all levels and prior draws of a ladder.

For a target pi(x) t(x), sample j of level k has the weight

    W_kj = n_k w_kj t(x_kj) / D(U_kj),     D(U) = sum_l n_l f_l(U) / G_l,     t = exp(-beta U')

and Z = sum W, <O> = sum W O / sum W.  A sample of a walk has the weight c t(x) / (n w(U)) instead.  Blocks are averaged
as Z = mean of Z_b, so that log Z is the logarithm of a mean and a mean weighs every block by its Z_b.  Where blocks share
their volumes G, or the scales of walks at several couplings, these change with the blocks that are left out, see
`shared_volumes` and `several_couplings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from observables.estimation.moments import Bins, Columns, Moments
from observables.estimation.targets import Targets
from observables.samples.of_ladders import Replica
from observables.samples.pool import Pool

Array = np.ndarray

ESS_FLOOR = 100.0  # an answer resting on fewer effective samples is refused
NEGLIGIBLE = 40.0  # a sample with exp(-40) of the largest weight changes nothing
BOTTOM_SHARE = 0.25  # more of a target than this on so few particles means that it lies below the ladder


@dataclass(frozen=True)
class Estimate:
    """log Z and the means of the moments, block by block: the raw material of every answer."""

    pool: Pool
    targets: Targets
    moments: Moments
    log_z: Array  # (B, T)
    mean: Array  # (B, T, m)
    ess: Array  # (T,) Kish: (sum W)^2 / sum W^2
    bottom_share: Array  # (T,) weight on energies the last levels hardly reach
    response: Array | None = None  # (B, T, K, 1 + m): change of Z and of Z <O> over Z with each of K shared parameters
    shift: Array | None = None  # (B, K): how far the shared parameters move without a block
    absolute: bool = True  # whether log Z is used; a normalised distribution does not depend on the scale of a walk

    def pooled(self, blocks: Sequence[int] | None = None) -> tuple[Array, Array]:
        """log of the mean Z (T,) and the means (T, m), from all blocks or some of them."""
        keep = list(range(len(self.log_z))) if blocks is None else list(blocks)
        log_z = logsumexp(self.log_z[keep], axis=0) - np.log(len(keep))
        weight = np.exp(self.log_z[keep] - logsumexp(self.log_z[keep], axis=0))
        return log_z, np.einsum("bt,btm->tm", weight, self.mean[keep])

    def without(self, block: int) -> tuple[Array, Array]:
        """log Z and the means without one block, for the jackknife.

        A chain that was longer in the first phase met more prior draws too, so it is left out together with its share in
        the absolute scale.
        """
        keep = [b for b in range(len(self.log_z)) if b != block]
        log_z, mean = self.pooled(keep)
        if self.response is not None and self.shift is not None:
            weight = np.exp(self.log_z[keep] - logsumexp(self.log_z[keep], axis=0))
            change = np.einsum("k,bt,btkm->tm", self.shift[block], weight, self.response[keep], optimize=True)
            ratio = 1 + change[:, 0]
            log_z, mean = log_z + np.log(ratio), (mean + change[:, 1:]) / ratio[:, None]
        scale = self.pool.scale
        return (log_z if scale is None or not self.absolute else log_z + (scale.without[block] - scale.log_c)), mean


def estimate(pool: Pool, targets: Targets, moments: Moments, check: bool = True) -> Estimate:
    """Every target and moment from every block; with `check`, targets that the samples do not support are refused."""
    points = targets.points
    shape = (len(pool.blocks), len(points))
    log_z, log_z2, bottom = np.full(shape, -np.inf), np.full(shape, -np.inf), np.zeros(shape)
    mean: Array | None = None
    response: Array | None = None
    for b, (block, log_bases) in enumerate(zip(pool.blocks, pool.log_base, strict=True)):
        total: list[list[Array]] = [[] for _ in points]
        for number, (samples, log_base) in enumerate(zip(block, log_bases, strict=True)):
            for some, energy in targets.along(samples):
                values = moments(samples, energy)
                for t in some:
                    log_w = log_base + targets.log_t(energy, points[t]["beta"])
                    top = log_w.max()
                    where = np.flatnonzero(log_w > top - NEGLIGIBLE)
                    weight = np.exp(log_w[where] - top)
                    below = weight[samples.energy[where] < samples.bottom].sum()
                    parts = [weight.sum(), (weight**2).sum(), below, *values.sums(weight, where)]
                    if isinstance(samples, Replica) and samples.shared is not None:
                        parts += _moved_sums(pool, samples, values, weight, where)
                    elif pool.scales is not None:
                        for belongs in pool.scales.belongs[b][number]:
                            change = weight * belongs[where]
                            parts += [change.sum(), *values.sums(change, where)]
                    total[t].append(np.concatenate([[top], parts]))
                count = values.count
        for t, rows in enumerate(total):
            table = np.array(rows)
            scale = np.exp(table[:, 0] - table[:, 0].max())
            z = (scale * table[:, 1]).sum()
            log_z[b, t] = table[:, 0].max() + np.log(z)
            log_z2[b, t] = 2 * table[:, 0].max() + np.log((scale**2 * table[:, 2]).sum())
            bottom[b, t] = (scale * table[:, 3]).sum() / z
            if mean is None:
                mean = np.zeros((*shape, count))
                if table.shape[1] > 4 + count:
                    response = np.zeros((*shape, (table.shape[1] - 4 - count) // (1 + count), 1 + count))
            mean[b, t] = scale @ table[:, 4 : 4 + count] / z
            if response is not None:
                response[b, t] = (scale @ table[:, 4 + count :] / z).reshape(response.shape[2:])
    assert mean is not None
    ess = np.exp(2 * logsumexp(log_z, axis=0) - logsumexp(log_z2, axis=0))
    share = (np.exp(log_z - logsumexp(log_z, axis=0)) * bottom).sum(axis=0)
    shift = None
    if response is not None:
        shift = np.eye(len(pool.blocks)) if pool.scales is None else pool.scales.delta
    found = Estimate(pool, targets, moments, log_z, mean, ess, bottom_share=share, response=response, shift=shift)
    if check:
        refuse_unsupported(found)
    return found


def _moved_sums(pool: Pool, samples: Replica, values: Columns | Bins, weight: Array, where: Array) -> list[float]:
    """Changes of sum W and of every sum W O of these samples, for each block that the volumes may miss."""
    sums: list[float] = []
    for replica in pool.replicas:
        if replica.shared is not samples.shared or samples.shared is None:
            sums += [0.0] * (1 + values.count)
            continue
        change = weight * samples.shared.of_group(replica.group, samples.energy[where])
        sums += [change.sum(), *values.sums(change, where)]
    return sums


def refuse_unsupported(found: Estimate) -> None:
    """Refuse targets below the energies that were sampled, and those on too few effective samples."""
    for t, point in enumerate(found.targets.points):
        where = ", ".join(f"{name} = {value:g}" for name, value in point.items())
        if found.bottom_share[t] > BOTTOM_SHARE:
            raise ValueError(
                f"The samples do not reach low enough for {where}: {found.bottom_share[t]:.0%} of this target lies below "
                f"nearly all of their energies (at most {BOTTOM_SHARE:.0%} is allowed); run a deeper ladder."
            )
        if not found.ess[t] >= ESS_FLOOR:
            raise ValueError(
                f"The samples do not support {where}: the answer would rest on {found.ess[t]:.3g} effective samples, "
                f"and at least {ESS_FLOOR:g} are needed; run a ladder nearer to it, or one with more particles."
            )
