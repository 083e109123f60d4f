"""The interface of samples: what the estimator needs to know about one independent run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Array = np.ndarray
Couplings = Mapping[str, tuple[float, str, float]]  # {name: (value, observable, factor)}


class Samples:
    """One flat axis of samples: a replica of a ladder, or a chain of a walk."""

    couplings: Couplings

    @property
    def energy(self) -> Array:
        """U of every sample."""
        raise NotImplementedError

    def observable(self, name: str) -> Array:
        """An observable, or "energy", of every sample."""
        raise NotImplementedError

    @property
    def bottom(self) -> float:
        """The energy below which hardly anything was sampled."""
        raise NotImplementedError

    def energy_at(self, couplings: Mapping[str, float]) -> Array:
        """U' = U + sum (new - old) * factor * observable, of every sample."""
        energy = self.energy.astype(float)
        for name, new in couplings.items():
            old, observable, factor = self.couplings[name]
            if new != old:
                energy += (new - old) * factor * self.observable(observable).astype(float)
        return energy
