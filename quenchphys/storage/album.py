"""The configurations a ladder keeps: a bounded number of them, evenly spread over everything offered."""

from __future__ import annotations

import numpy as np

CONFIGURATION_LIMIT = 256 << 20  # bytes of configurations kept, all replicas together


class Album:
    """A bounded set of configurations: every `stride`-th of those offered, the stride doubling when it is full."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self._offered = 0
        self._index: list[int] = []
        self._kept: list[tuple[np.ndarray, np.ndarray, int]] = []

    def offer(self, level: int, particle: np.ndarray, field: np.ndarray) -> None:
        """Offer the configurations of one level: particle (replica, kept) and field (replica, kept, *shape)."""
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

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays."""
        level, particle, field = self.finish()
        counts = np.array([self._stride, self._offered])
        return {"counts": counts, "index": np.array(self._index), "level": level, "particle": particle, "field": field}

    @staticmethod
    def resume(limit: int, state: dict[str, np.ndarray]) -> Album:
        """The album that `state` was taken of."""
        album = Album(limit)
        album._stride, album._offered = (int(n) for n in state["counts"])
        album._index = [int(i) for i in state["index"]]
        fields = zip(
            np.moveaxis(state["particle"], 1, 0), np.moveaxis(state["field"], 1, 0), state["level"], strict=True
        )
        album._kept = [(particle.copy(), field.copy(), int(level)) for particle, field, level in fields]
        return album
