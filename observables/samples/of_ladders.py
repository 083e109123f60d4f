"""Samples of a ladder: prior draws, then all levels, as one flat axis for each replica."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp

from observables.samples.base import Couplings, Samples
from observables.samples.mixture import Mixture
from quenchphys.ladder import Ladder

if TYPE_CHECKING:
    from observables.samples.shared_volumes import SharedVolumes

Array = np.ndarray

ENERGY_BINS = 3000  # at least; as many as levels, so that a bin is narrow compared to the slack
EXAMINED = 300_000  # energies from which the edges of these bins are chosen


class Grid(NamedTuple):
    """Bins of nearly equally many samples, narrow enough that a level's share in the mixture is constant within one."""

    edges: Array  # between the bins
    of_sample: Array  # the bin of every sample; those without weight are somewhere
    energy: Array  # mean energy of the samples in a bin
    weight: Array  # sum of n w in a bin

    def bin(self, energy: Array) -> Array:
        return np.searchsorted(self.edges, energy, side="right").astype(np.int32)


BOTTOM_FRACTION = 0.02  # of the last level's particles


@dataclass(frozen=True, eq=False)
class Replica(Samples):
    """One independent run: K levels of N particles, and M prior draws."""

    level: Array  # (K,) E_k or beta_k
    log_volume: Array  # (K,) as it is used: telescoped, or made self-consistent
    telescoped: Array  # (K,) as it was recorded
    softness: float | None  # None for a tempered ladder
    particle_energy: Array  # (K, N)
    log_weight: Array  # (K, N)
    parent: Array | None  # (K, N)
    prior_energy: Array  # (M,)
    particle_observables: Mapping[str, Array]  # (K, N)
    prior_observables: Mapping[str, Array]  # (M,)
    couplings: Couplings
    self_consistent: bool = False
    live: int | None = None  # live points of nested sampling, of which N die at every level
    shared: SharedVolumes | None = None  # of the groups of a bridge,
    group: int = 0  # of which this is one

    @property
    def log_compression_variance(self) -> float:
        """Variance of log(G_{k+1}/G_k) of nested sampling: the sum of 1/i^2 over i = live, live - 1, ..., N terms."""
        assert self.live is not None
        return float(np.sum(1 / np.arange(self.live - self.shape[1] + 1, self.live + 1, dtype=float) ** 2))

    @property
    def draws(self) -> int:
        return len(self.prior_energy)

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)"""
        return self.particle_energy.shape

    @cached_property
    def mixture(self) -> Mixture:
        log_scale = np.log(self.shape[1]) - self.log_volume
        return Mixture(self.level, log_scale, self.softness, self.draws)

    @cached_property
    def energy(self) -> Array:
        """U of every sample."""
        return np.concatenate([self.prior_energy, self.particle_energy.ravel()])

    @cached_property
    def log_share(self) -> Array:
        """log(n_k w_kj): 0 for a prior draw; -inf for a particle without weight or with an undefined energy.

        The weights of the others are normalised again, because a missing share would look like a smaller volume.
        """
        log_weight = self.log_weight.astype(float)
        log_weight[~np.isfinite(self.particle_energy) | np.isnan(log_weight)] = -np.inf
        log_weight += np.log(self.shape[1]) - logsumexp(log_weight, axis=1, keepdims=True)
        return np.concatenate([np.where(np.isfinite(self.prior_energy), 0.0, -np.inf), log_weight.ravel()])

    @cached_property
    def grid(self) -> Grid:
        sample = self.energy[:: max(1, len(self.energy) // EXAMINED)]
        sample = np.sort(sample[np.isfinite(sample)])
        count = min(len(sample), max(ENERGY_BINS, len(self.level)))
        edges = np.unique(sample[np.linspace(0, len(sample) - 1, count + 1).astype(int)[1:-1]])
        index = np.searchsorted(edges, self.energy, side="right").astype(np.int32)
        share = np.exp(self.log_share)
        weight = np.bincount(index, share, len(edges) + 1)
        live = np.where(share > 0, self.energy, 0.0)
        middle = np.concatenate([edges[:1], 0.5 * (edges[1:] + edges[:-1]), edges[-1:]])
        total = np.bincount(index, share * live, len(edges) + 1)
        return Grid(edges, index, np.divide(total, weight, out=middle.astype(float), where=weight > 0), weight)

    def with_volumes(self, log_volume: Array) -> Replica:
        """The same samples with self-consistent volumes; what does not depend on volumes is kept."""
        moved = dataclasses.replace(self, log_volume=log_volume, self_consistent=True)
        vars(moved).update({name: vars(self)[name] for name in ("energy", "log_share", "grid") if name in vars(self)})
        return moved

    def observable(self, name: str) -> Array:
        if name == "energy":
            return self.energy
        return np.concatenate([self.prior_observables[name], self.particle_observables[name].ravel()])

    @cached_property
    def bottom(self) -> float:
        """The energy below which the last level has only BOTTOM_FRACTION of its weight: the ladder's lower end."""
        energy, log_weight = self.particle_energy[-1], self.log_weight[-1]
        order = np.argsort(energy)
        weight = np.nan_to_num(np.exp(log_weight[order].astype(float)))
        return float(energy[order][np.searchsorted(np.cumsum(weight), BOTTOM_FRACTION * weight.sum())])


def replicas_of(ladder: Ladder) -> list[Replica]:
    """The replicas of a ladder, cut to the levels each of them has."""
    levels, particles, prior = ladder.levels, ladder.particles, ladder.prior
    tempered, nested = ladder.tempered, ladder.method == "nested"
    found = []
    for r in range(levels.sizes["replica"]):
        count = int(levels["level_count"].values[r]) if "level_count" in levels else levels.sizes["level"]
        if count == 0:
            raise ValueError(f"Replica {r} of this ladder has no levels, so there is nothing to estimate from.")
        cut = {name: particles[name].values[r, :count] for name in ("energy", "log_weight")}
        found.append(
            Replica(
                level=levels["beta" if tempered else "energy"].values[r, :count].astype(float),
                log_volume=levels["log_volume"].values[r, :count].astype(float),
                telescoped=levels["log_volume"].values[r, :count].astype(float),
                softness=None if tempered else ladder.softness,
                particle_energy=cut["energy"],
                log_weight=cut["log_weight"],
                parent=particles["parent"].values[r, :count] if "parent" in particles and not nested else None,
                prior_energy=prior["energy"].values[r],
                particle_observables={name: particles[name].values[r, :count] for name in ladder.observables},
                prior_observables={name: prior[name].values[r] for name in ladder.observables},
                couplings=ladder.couplings,
                live=int(ladder.attrs["live_points"]) if nested else None,
            )
        )
    return found
