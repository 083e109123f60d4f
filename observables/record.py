"""Which samples does an estimate rest on?  Ladders become replicas of flat samples, replicas become independent blocks.

The samples of a replica are its prior draws followed by its levels, first to last, as one flat axis.  Every sample
carries its base weight, log(n_k w_kj / D), so that exp(base) t(x) is its weight for any target pi(x) t(x).

A block is a set of replicas that together give one estimate.  Replicas of one problem are a block each.  Ladders run
at different couplings are dealt out so that every block has at least one replica of each; D is then the sum of theirs,
each at its own energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from observables.mixture import Mixture
from quenchphys.ladder import Ladder

Array = np.ndarray
Couplings = Mapping[str, tuple[float, str, float]]  # {name: (value, observable, factor)}


@dataclass(frozen=True)
class Replica:
    """One independent run: K levels of N particles, and M prior draws."""

    level: Array  # (K,) E_k or beta_k
    log_volume: Array  # (K,)
    softness: float | None  # None for a tempered ladder
    particle_energy: Array  # (K, N)
    log_weight: Array  # (K, N)
    parent: Array | None  # (K, N)
    prior_energy: Array  # (M,)
    particle_observables: Mapping[str, Array]  # (K, N)
    prior_observables: Mapping[str, Array]  # (M,)
    couplings: Couplings
    self_consistent: bool = False  # whether the volumes were refined, which changes what their errors depend on

    @property
    def draws(self) -> int:
        return len(self.prior_energy)

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)"""
        return self.particle_energy.shape  # type: ignore[return-value]

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
        """log(n_k w_kj): 0 for a prior draw; -inf for a particle without weight or with an undefined energy."""
        log_share = np.concatenate([np.zeros(self.draws), self.log_weight.ravel().astype(float) + np.log(self.shape[1])])
        log_share[~np.isfinite(self.energy) | np.isnan(log_share)] = -np.inf
        return log_share

    def observable(self, name: str) -> Array:
        if name == "energy":
            return self.energy
        return np.concatenate([self.prior_observables[name], self.particle_observables[name].ravel()])

    def energy_at(self, couplings: Mapping[str, float]) -> Array:
        """U' = U + sum (new - old) * factor * observable, of every sample."""
        energy = self.energy.astype(float)
        for name, new in couplings.items():
            old, observable, factor = self.couplings[name]
            if new != old:
                energy += (new - old) * factor * self.observable(observable).astype(float)
        return energy


@dataclass(frozen=True)
class Pool:
    """All samples of one or several ladders of the same problem, ready to be asked.

    Every function of `observables` takes a ladder, several, or a `Pool`; a pool built once saves the table of D when
    many questions are asked.
    """

    ladders: Sequence[Ladder]
    blocks: list[list[Replica]] = field(init=False)
    log_base: list[list[Array]] = field(init=False)

    def __init__(self, ladders: Ladder | Sequence[Ladder]):
        ladders = [ladders] if isinstance(ladders, Ladder) else list(ladders)
        if not ladders or not all(isinstance(ladder, Ladder) for ladder in ladders):
            raise TypeError(f"A ladder or a list of ladders is needed, but {type(ladders[0] if ladders else ladders).__name__} was given.")
        _check_same_problem(ladders)
        object.__setattr__(self, "ladders", ladders)
        object.__setattr__(self, "blocks", _deal([r for ladder in ladders for r in replicas_of(ladder)]))
        object.__setattr__(self, "log_base", [_base_weights(block) for block in self.blocks])

    @staticmethod
    def of(source: Ladder | Sequence[Ladder] | Pool) -> Pool:
        return source if isinstance(source, Pool) else Pool(source)

    @property
    def replicas(self) -> list[Replica]:
        return [replica for block in self.blocks for replica in block]

    @property
    def observables(self) -> list[str]:
        return self.ladders[0].observables

    @property
    def couplings(self) -> Couplings:
        """Those of the first ladder: what a target has where nothing else is asked."""
        return self.ladders[0].couplings

    @property
    def attrs(self) -> dict[str, Any]:
        """What a result repeats from its ladders."""
        attrs = {k: v for k, v in self.ladders[0].attrs.items() if isinstance(v, str | int | float | bool)}
        return attrs | {"ladders": len(self.ladders), "replicas": len(self.replicas)}


def replicas_of(ladder: Ladder) -> list[Replica]:
    """The replicas of a ladder, cut to the levels each of them has."""
    levels, particles, prior = ladder.levels, ladder.particles, ladder.prior
    quenched = ladder.method == "quench"
    found = []
    for r in range(levels.sizes["replica"]):
        count = int(levels["level_count"].values[r]) if "level_count" in levels else levels.sizes["level"]
        if count == 0:
            raise ValueError(f"Replica {r} of this ladder has no levels, so there is nothing to estimate from.")
        cut = {name: particles[name].values[r, :count] for name in ("energy", "log_weight")}
        found.append(
            Replica(
                level=levels["energy" if quenched else "beta"].values[r, :count].astype(float),
                log_volume=levels["log_volume"].values[r, :count].astype(float),
                softness=ladder.softness if quenched else None,
                particle_energy=cut["energy"],
                log_weight=cut["log_weight"],
                parent=particles["parent"].values[r, :count] if "parent" in particles else None,
                prior_energy=prior["energy"].values[r],
                particle_observables={name: particles[name].values[r, :count] for name in ladder.observables},
                prior_observables={name: prior[name].values[r] for name in ladder.observables},
                couplings=ladder.couplings,
                self_consistent=ladder.attrs.get("volumes") == "self-consistent",
            )
        )
    return found


def _check_same_problem(ladders: Sequence[Ladder]) -> None:
    first = ladders[0]
    for other in ladders[1:]:
        same = other.attrs.get("problem") == first.attrs.get("problem") and other.observables == first.observables
        if not same or set(other.couplings) != set(first.couplings):
            raise ValueError(
                "Only ladders of the same problem, with the same observables and couplings, can be pooled, but "
                f"{first.attrs.get('problem')!r} and {other.attrs.get('problem')!r} were given."
            )


def _deal(replicas: list[Replica]) -> list[list[Replica]]:
    """Independent blocks, each with at least one replica of every set of couplings."""
    kinds: dict[tuple[tuple[str, float], ...], list[Replica]] = {}
    for replica in replicas:
        kinds.setdefault(tuple((k, v[0]) for k, v in sorted(replica.couplings.items())), []).append(replica)
    count = min(len(kind) for kind in kinds.values())
    return [[replica for kind in kinds.values() for replica in kind[b::count]] for b in range(count)]


def _base_weights(block: list[Replica]) -> list[Array]:
    """log(n_k w_kj) - log D of every sample of every replica, with D summed over the replicas of the block."""
    weights = []
    for replica in block:
        log_d = np.full(replica.energy.shape, -np.inf)
        for other in block:
            energy = replica.energy
            if other.couplings != replica.couplings:
                energy = replica.energy_at({name: value for name, (value, _, _) in other.couplings.items()})
            np.logaddexp(log_d, other.mixture.log_density(energy), out=log_d)
        weights.append(np.where(np.isfinite(replica.log_share), replica.log_share - log_d, -np.inf))
    return weights
