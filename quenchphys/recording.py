"""Where the record of a growing ladder lives: in memory while it is small, in temporary files when it is not.

A `Column` holds one variable as rows (level, replica, ...).  Above `MEMORY_LIMIT` bytes for all columns together the
rows go to unnamed temporary files that are mapped, so that the host's memory stays bounded however long the ladder.
"""

from __future__ import annotations

import tempfile
from typing import IO

import numpy as np

MEMORY_LIMIT = 1 << 30
CONFIGURATION_LIMIT = 256 << 20  # bytes of configurations kept, all replicas together


class Column:
    """A growing array of rows."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []
        self._file: IO[bytes] | None = None
        self._rows = 0

    @property
    def in_memory(self) -> int:
        """Bytes held in memory."""
        return 0 if self._file else sum(block.nbytes for block in self._blocks)

    def extend(self, rows: np.ndarray) -> None:
        self._shape, self._dtype = rows.shape[1:], rows.dtype
        self._rows += len(rows)
        if self._file:
            np.ascontiguousarray(rows).tofile(self._file)
        else:
            self._blocks.append(np.asarray(rows))

    def spill(self) -> None:
        """Move everything to a temporary file, which vanishes with the array mapped onto it."""
        file = self._file = tempfile.TemporaryFile(prefix="quenchphys-")  # noqa: SIM115
        for block in self._blocks:
            np.ascontiguousarray(block).tofile(file)
        self._blocks = []

    def finish(self, rows: int) -> np.ndarray:
        """The first `rows` rows, as (replica, level, ...)."""
        if self._file:
            self._file.flush()
            size = (self._rows, *self._shape)
            array: np.ndarray = np.memmap(self._file, dtype=self._dtype, mode="r+", shape=size)
        else:
            array = np.concatenate(self._blocks)
            self._blocks = []
        return array[:rows].swapaxes(0, 1)


class Record:
    """Named columns that share one limit of memory."""

    def __init__(self, limit: int = MEMORY_LIMIT) -> None:
        self._columns: dict[str, Column] = {}
        self._limit = limit
        self._spilled = False

    def extend(self, **rows: np.ndarray) -> None:
        for name, block in rows.items():
            column = self._columns.setdefault(name, Column())
            if self._spilled and not column._file:
                column.spill()
            column.extend(block)
        if not self._spilled and sum(c.in_memory for c in self._columns.values()) > self._limit:
            self._spilled = True
            for column in self._columns.values():
                column.spill()

    def finish(self, rows: int) -> dict[str, np.ndarray]:
        return {name: column.finish(rows) for name, column in self._columns.items()}


class Album:
    """A bounded set of configurations: every `stride`-th of those offered, the stride doubling when it is full."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self._offered = 0
        self._index: list[int] = []
        self._kept: list[tuple[np.ndarray, np.ndarray, int]] = []

    def offer(self, level: int, particle: np.ndarray, field: np.ndarray) -> None:
        """particle (replica, kept) and field (replica, kept, *shape) of one level."""
        for k in range(particle.shape[1]):
            if self._offered % self._stride == 0:
                self._index.append(self._offered)
                self._kept.append((particle[:, k], field[:, k].copy(), level))
            self._offered += 1
        while len(self._kept) > self._limit:
            self._stride *= 2
            keep = [i for i, index in enumerate(self._index) if index % self._stride == 0]
            self._index = [self._index[i] for i in keep]
            self._kept = [self._kept[i] for i in keep]

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """level (sample,), particle (replica, sample), field (replica, sample, *shape)."""
        level = np.array([k[2] for k in self._kept], dtype=np.int32)
        particle = np.stack([k[0] for k in self._kept], axis=1)
        return level, particle, np.stack([k[1] for k in self._kept], axis=1)
