"""First-order terms of an estimate: what every sample of a replica contributes to log Z and the means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from observables.estimation.moments import Bins, Columns
from observables.estimation.targets import Targets
from observables.samples.of_ladders import Replica

Array = np.ndarray

NEGLIGIBLE = 60.0  # a sample with exp(-60) of all weight moves nothing
NUMBERS_AT_ONCE = 1_000_000  # held in memory at a time


@dataclass(frozen=True)
class Terms:
    """V = W y of the samples of one replica, with y = (1, O - the means at the first target)."""

    targets: Targets
    replica: Replica
    log_base: Array
    energy: Array  # U' of the samples
    values: Columns | Bins
    beta: Array  # (T,)
    log_total: Array  # (T,)
    mean: Array  # (T, m)

    @property
    def shape(self) -> tuple[int, int]:
        """(T, 1 + m)"""
        return len(self.beta), 1 + self.mean.shape[1]

    def weights(self, part: slice) -> Array | None:
        """W (n, T) of some samples, or None where it is negligible."""
        base = self.log_base[part, None] - self.log_total
        log_w = base + self.targets.log_t(self.energy[part, None], self.beta)
        return np.exp(log_w) if log_w.max() > -NEGLIGIBLE else None

    def rows(self, some: Array) -> Array:
        """V (n, T * F) of samples given by their numbers."""
        log_w = self.log_base[some, None] - self.log_total + self.targets.log_t(self.energy[some, None], self.beta)
        y = np.ones((len(some), self.shape[1]))
        if self.values.count:
            y[:, 1:] = np.nan_to_num(self.values.rows(some)) - self.mean[0]
        return (np.exp(log_w)[:, :, None] * y[:, None, :]).reshape(len(some), -1)

    def sums(self, part: slice, weight: Array, group: Array, count: int) -> Array:
        """sum of V over the samples of every group, (count, T * F); weight is W of these samples."""
        if isinstance(self.values, Bins):
            return self._sums_in_bins(self.values.index[part], weight, group, count)
        # A value may be undefined where there is no weight; a mean that is undefined has no error, see `Uncertain`.
        y = np.nan_to_num(self.values.rows(part)) - self.mean[0]
        result = np.empty((count, *self.shape))
        result[:, :, 0] = one_hot(group, count) @ weight
        for f, column in enumerate(y.T, start=1):  # one by one: the products of all would not fit into the cache
            result[:, :, f] = one_hot(group, count, column) @ weight
        return result.reshape(count, -1)

    def _sums_in_bins(self, index: Array, weight: Array, group: Array, count: int) -> Array:
        bins = self.values.count
        result = np.empty((count, *self.shape))
        cell = np.where(index >= 0, group.astype(np.int64) * bins + index, count * bins)
        for t, column in enumerate(weight.T):
            result[:, t, 0] = np.bincount(group, column, count)
            result[:, t, 1:] = np.bincount(cell, column, count * bins + 1)[:-1].reshape(count, bins)
        result[:, :, 1:] -= result[:, :, :1] * self.mean[0]
        return result.reshape(count, -1)

    def about_means(self, sums: Array) -> Array:
        """Sums of V for y = (1, O - the means of each target), (n, T, F), from those about the means of the first."""
        table = sums.reshape(-1, *self.shape).copy()
        table[:, :, 1:] += table[:, :, :1] * (self.mean[0] - self.mean)
        return table

    def chunks(self) -> Iterator[slice]:
        """All samples, in pieces of limited size, whatever their level."""
        rows = max(1, NUMBERS_AT_ONCE // len(self.beta))
        for start in range(0, len(self.energy), rows):
            yield slice(start, min(start + rows, len(self.energy)))


def one_hot(row: Array, count: int, value: Array | None = None) -> csc_array:
    """The sparse matrix (count, n) with one entry in every column."""
    value = np.ones(len(row)) if value is None else value
    return csc_array((value, row, np.arange(len(row) + 1)), shape=(count, len(row)))
