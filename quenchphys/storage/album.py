"""The configurations a ladder keeps: a bounded number of them, evenly spread over everything offered, and prior draws."""

from __future__ import annotations

import numpy as np

from quenchphys.settings import Settings

CONFIGURATION_LIMIT = 256 << 20  # bytes of configurations kept, all replicas together
FEWEST_DRAWS, SHARE_OF_DRAWS = 64, 8  # prior draws that are kept, and particles kept for each of them
GOLDEN = 0.6180339887498949  # its multiples, modulo 1, are evenly spread however many there are


class Album:
    """A bounded set of configurations: every `stride`-th of those offered, the stride doubling when it is full."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self._offered = 0
        self._index: list[int] = []
        self._kept: list[tuple[np.ndarray, np.ndarray, int]] = []

    def offer(self, level: int, particle: np.ndarray, field: np.ndarray) -> None:
        """Offer the configurations of one level: particle (replica, kept) and field (replica, kept, *shape).

        Both are in the order of the particles' numbers, and copies of a particle have neighbouring numbers.  Each level
        begins elsewhere, so that a stride does not keep the same families from level to level.
        """
        count = particle.shape[1]
        begin = int(level * GOLDEN % 1.0 * count)
        for k in (np.arange(count) + begin) % count:
            if self._offered % self._stride == 0:
                self._index.append(self._offered)
                self._kept.append((particle[:, k], field[:, k].copy(), level))
            self._offered += 1
        while len(self._kept) > self._limit:
            self._stride *= 2
            keep = [i for i, index in enumerate(self._index) if index % self._stride == 0]
            self._index = [self._index[i] for i in keep]
            self._kept = [self._kept[i] for i in keep]

    @staticmethod
    def draws(settings: Settings, room: int) -> int:
        """Number of prior draws to keep of each replica, in a memory with room for so many configurations."""
        wanted = max(FEWEST_DRAWS, settings.configurations // SHARE_OF_DRAWS)
        return min(settings.particles * settings.draws_per_particle, wanted, max(1, room // SHARE_OF_DRAWS))

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
