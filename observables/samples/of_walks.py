"""What do walkers say?  A ladder gives them a weight that makes them walk, they give back samples in equilibrium.

The energies a ladder sampled have the density g(U) D(U), D the mixture of its levels (see `mixture`): about as many at each
as its levels are dense, which is where U is hard to cross.  Walkers with the weight w = D meet energies as often.  Between
two phases w is D, beyond them log w goes on straight, so that they end in canonical tails.

A sample of walkers has the base weight 1/w up to a common factor, which `absolute` finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from observables.samples.of_ladders import Couplings, Samples
from observables.samples.pool import Pool, Source
from quenchphys.ladder import Ladder

Array = np.ndarray

NODES = 600  # of the weight
BOTTOM = 1e-3  # of the samples: what lies below them was not sampled


def flat_weight(ladder: Source, low: float, high: float) -> tuple[Array, Array]:
    """Energies from `low` to `high`, and log D of the ladder there: the weight for `quenchphys.multicanonical`."""
    energy = np.linspace(low, high, NODES)
    return energy, np.logaddexp.reduce([r.mixture.log_density(energy) for r in Pool.of(ladder).replicas], axis=0)


@dataclass(frozen=True, eq=False)
class Walked(Samples):
    """One group of walkers: what it saw, as one flat axis of samples."""

    log_w: Array
    prior_log_w: Array
    """of exact draws from the prior"""
    seen: Mapping[str, Array]
    couplings: Couplings

    @property
    def energy(self) -> Array:
        return self.seen["energy"]

    def observable(self, name: str) -> Array:
        return self.seen[name]

    @cached_property
    def bottom(self) -> float:
        return float(np.quantile(self.energy, BOTTOM))


def walked(ladder: Ladder, walks: Sequence[xr.Dataset]) -> Pool:
    """A pool of what walkers saw, one block for each of their groups, to be asked like one of ladders.

    `ladder` is one of the same problem at the same couplings.  Z is known up to a factor: see `absolute`.
    """
    names = ["energy", "log_w", "prior_log_w", *ladder.observables]
    table = {name: np.concatenate([walk[name].values for walk in walks], axis=1) for name in names}
    groups = []
    for g in range(len(table["energy"])):
        own = {name: values[g].ravel() for name, values in table.items()}
        groups.append(Walked(own.pop("log_w"), own.pop("prior_log_w"), own, ladder.couplings))
    return Pool.of_samples([ladder], [[group] for group in groups], [[-group.log_w] for group in groups], "walked")


def crossings(walks: Sequence[xr.Dataset], by: str, inner: Sequence[float]) -> Array:
    """How often walkers of each group went from one phase to the other, (group,).

    A walker is in a phase below the first or above the second of the values `inner` of an observable.
    """
    value = np.concatenate([walk[by].values for walk in walks], axis=1)
    phase = np.where(value < inner[0], -1, np.where(value > inner[1], 1, 0))
    return np.array([sum(np.count_nonzero(np.diff(one[one != 0])) for one in group.T) for group in phase])


def spread_starts(ladder: Ladder, low: float, high: float, groups: int, walkers: int, seed: int = 0) -> Array:
    """Configurations of a ladder, (group, walker, ...), at levels equally far apart, with energies between the two."""
    fields = ladder.configurations["field"].values
    levels, particles = (ladder.configurations[name].values for name in ("level", "particle"))
    energies = ladder.particles["energy"].values
    found = []
    for r in range(len(fields)):
        there = levels[r] >= 0
        level = levels[r][there]
        energy = energies[r, level, particles[r][there]]
        inside = (energy > low) & (energy < high)
        found.append((level[inside], fields[r][there][inside]))
    order = np.argsort(np.concatenate([level for level, _ in found]), kind="stable")
    pictures = np.concatenate([field for _, field in found])[order]
    if len(pictures) == 0:
        raise ValueError(f"The ladder kept no configuration with an energy between {low:.6g} and {high:.6g}.")
    count = groups * walkers
    # Every group gets its own comb over all levels.
    place = (np.arange(count) + np.random.default_rng(seed).random()) * len(pictures) / count
    return pictures[place.astype(int)].reshape(walkers, groups, *pictures.shape[1:]).swapaxes(0, 1)


def respread(walks: Sequence[xr.Dataset], like: Array) -> Array:
    """Configurations with which walks ended, (group, walker, ...), with energies spread like the given ones."""
    last = walks[0]["last"]
    groups, walkers = last.shape[:2]
    energies = np.concatenate([walk["energy"].values[:, -1].ravel() for walk in walks])
    pictures = np.concatenate([walk["last"].values.reshape(-1, *last.shape[2:]) for walk in walks])
    wanted = np.quantile(like, (np.arange(groups * walkers) + 0.5) / (groups * walkers))
    nearest = np.abs(energies[:, None] - wanted).argmin(axis=0)
    # Neighbours in energy go to different groups, so that each has its own comb over all of them.
    return pictures[nearest].reshape(walkers, groups, *last.shape[2:]).swapaxes(0, 1)
