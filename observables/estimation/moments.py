"""Moments: the values whose weighted sums an answer is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from observables.samples.base import Samples

Array = np.ndarray


@dataclass(frozen=True)
class Columns:
    """Moments as one array of values each, over all samples of a replica."""

    values: Sequence[Array]

    @property
    def count(self) -> int:
        return len(self.values)

    def sums(self, weight: Array, where: Array) -> Array:
        return np.array([weight @ v[where].astype(float) for v in self.values])

    def rows(self, part: slice | Array) -> Array:
        return (
            np.stack([v[part] for v in self.values], axis=1).astype(float)
            if self.values
            else np.empty((part.stop - part.start if isinstance(part, slice) else len(part), 0))
        )


@dataclass(frozen=True)
class Bins:
    """Moments that are indicators of disjoint bins: the bin of every sample, -1 for none."""

    index: Array
    count: int

    def sums(self, weight: Array, where: Array) -> Array:
        index = self.index[where]
        return np.bincount(index[index >= 0], weight[index >= 0], minlength=self.count)

    def rows(self, part: slice | Array) -> Array:
        index = self.index[part]
        rows = np.zeros((len(index), self.count))
        rows[np.flatnonzero(index >= 0), index[index >= 0]] = 1.0
        return rows


Moments = Callable[[Samples, Array], Columns | Bins]  # (samples, U' of each) -> their moments


def no_moments(samples: Samples, energy: Array) -> Columns:
    """For log Z alone."""
    return Columns([])
