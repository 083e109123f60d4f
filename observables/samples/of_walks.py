"""Samples of chains: one flat axis for each chain, and the configurations chains start from.

A sample has the base weight 1/w, up to a common factor that exact draws from the prior give (see `bennett`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from observables.samples.base import Couplings, Samples
from quenchphys.ladder import Ladder
from quenchphys.walk import Walk

Array = np.ndarray

BOTTOM = 1e-3  # of the samples: what lies below them was not sampled


@dataclass(frozen=True, eq=False)
class Chain(Samples):
    """One chain of a walk, sweep by sweep."""

    log_w: Array
    """log of the weight w at every sample"""
    prior_log_w: Array
    """log of the weight w at exact draws from the prior"""
    recorded: Mapping[str, Array]
    """energy and every observable"""
    couplings: Couplings
    lowest: float
    """energy below which all chains together hardly sampled anything"""

    @property
    def energy(self) -> Array:
        return self.recorded["energy"]

    def observable(self, name: str) -> Array:
        return self.recorded[name]

    @property
    def bottom(self) -> float:
        return self.lowest


def chains_of(walk: Walk) -> list[Chain]:
    """The chains of a walk, group by group; the prior draws of a group are dealt out to its chains."""
    # (group, chain, sweep), so that the history of a chain lies together
    table = {name: np.moveaxis(walk.data[name].values, 1, 2).copy() for name in ("energy", "log_w", *walk.observables)}
    groups, chains, _ = table["energy"].shape
    prior_log_w = walk.data["prior_log_w"].values
    lowest = float(np.quantile(table["energy"], BOTTOM))
    return [
        Chain(
            log_w=table["log_w"][g, c],
            prior_log_w=prior_log_w[g, c::chains],
            recorded={name: values[g, c] for name, values in table.items() if name != "log_w"},
            couplings=walk.couplings,
            lowest=lowest,
        )
        for g in range(groups)
        for c in range(chains)
    ]


def last_samples(walks: Sequence[Walk]) -> tuple[xr.DataArray, Chain]:
    """Configurations after the last sweep of every part, (draw, ...), and what was recorded of them."""
    fields = [walk.data["last"].stack(draw=("group", "chain")).drop_vars(["draw", "group", "chain"]) for walk in walks]
    ends = [walk.data.isel(sweep=-1) for walk in walks]

    def at_the_end(name: str) -> Array:
        return np.concatenate([end[name].values.ravel() for end in ends])

    recorded = {name: at_the_end(name) for name in ("energy", *walks[0].observables)}
    ends_of_chains = Chain(at_the_end("log_w"), np.empty(0), recorded, walks[0].couplings, -np.inf)
    return xr.concat(fields, dim="draw").transpose("draw", ...), ends_of_chains


def crossings(walks: Sequence[Walk], by: str, inner: Sequence[float]) -> Array:
    """Number of crossings from one phase to the other, (group,), in successive parts of a walk.

    A chain is in a phase while the observable `by` is below the first or above the second value of `inner`.
    """
    value = np.concatenate([walk.data[by].values for walk in walks], axis=1)
    phase = np.where(value < inner[0], -1, np.where(value > inner[1], 1, 0))
    return np.array([sum(np.count_nonzero(np.diff(one[one != 0])) for one in group.T) for group in phase])


def spread_starts(ladder: Ladder, low: float, high: float, groups: int, chains: int, seed: int = 0) -> Array:
    """Configurations of a ladder, (group, chain, ...), at equally spaced levels, with energies between low and high."""
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
    count = groups * chains
    # Neighbours go to different groups, so that each group is spread over all levels.
    place = (np.arange(count) + np.random.default_rng(seed).random()) * len(pictures) / count
    return pictures[place.astype(int)].reshape(chains, groups, *pictures.shape[1:]).swapaxes(0, 1)


def respread(walks: Sequence[Walk], like: Array) -> Array:
    """Last configurations of walks, (group, chain, ...), chosen so that their energies are spread like the given ones."""
    groups, chains, *shape = walks[0].last.shape
    energies = np.concatenate([walk.energy[:, -1].ravel() for walk in walks])
    pictures = np.concatenate([walk.last.reshape(-1, *shape) for walk in walks])
    wanted = np.quantile(like, (np.arange(groups * chains) + 0.5) / (groups * chains))
    nearest = np.abs(energies[:, None] - wanted).argmin(axis=0)
    # Neighbours in energy go to different groups, so that each group is spread over all energies.
    return pictures[nearest].reshape(chains, groups, *shape).swapaxes(0, 1)
