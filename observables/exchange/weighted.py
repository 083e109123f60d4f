"""Every sample of a run with its weight for one target, in the order in which it was sampled."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from observables.estimation.estimator import NEGLIGIBLE, estimate
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from observables.samples.pool import Pool, Source

Array = np.ndarray


@dataclass(frozen=True)
class Weighted:
    """Samples of all blocks (replicas, or chains), one after the other; those without weight are left out."""

    pool: Pool
    recorded: Mapping[str, Array]
    """energy U' at the couplings of the target, and every observable, (n,)"""
    log_weight: Array
    """(n,) sums to B Z over all B blocks"""

    @staticmethod
    def of(source: Source, beta: Any, couplings: Mapping[str, Any], what: str) -> Weighted:
        """The samples of a source; `what` begins the sentence that refuses more than one target."""
        pool = Pool.of(source)
        targets = Targets.single(pool, beta, couplings, what)
        estimate(pool, targets, no_moments)  # refuses what the samples do not support
        parts: list[Mapping[str, Array]] = []
        weights = []
        for samples, base in pool.weighted:
            ((_, energy),) = targets.along(samples)
            log_weight = base + targets.log_t(energy, float(beta))
            order = np.flatnonzero(log_weight > log_weight.max() - NEGLIGIBLE)
            table = {"energy": energy} | {name: samples.observable(name) for name in pool.observables}
            parts.append({name: values[order] for name, values in table.items()})
            weights.append(log_weight[order])
        recorded = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Weighted(pool, recorded, np.concatenate(weights))

    @property
    def share(self) -> Array:
        """Weights that add up to one."""
        weight = np.exp(self.log_weight - self.log_weight.max())
        return weight / weight.sum()

    @property
    def log_z(self) -> float:
        """Logarithm of the mean Z of the blocks."""
        return float(logsumexp(self.log_weight) - np.log(len(self.pool.blocks)))

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the run, and log Z."""
        return self.pool.attrs | {"log_z": self.log_z}

    def resampled(self, count: int, rng: np.random.Generator) -> Array:
        """Indices of `count` samples by systematic resampling: in order, each as often as its weight says, up or down."""
        positions = (rng.uniform() + np.arange(count)) / count
        return np.searchsorted(np.cumsum(self.share), positions).clip(max=len(self.log_weight) - 1)


def library(name: str, purpose: str) -> Any:
    """An optional library; a sentence says how to get it where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise ImportError(
            f"{purpose} needs the library {name}, which cannot be imported ({cause}); it comes with the extra 'exchange', "
            "pip install '.[exchange]'."
        ) from cause
