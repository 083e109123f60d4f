"""Which samples does an answer rest on?  Ladders become replicas, replicas become independent blocks.

Every sample carries its base weight, log(n_k w_kj / D), so that exp(base) t(x) is its weight for any target pi(x) t(x).

A block is a set of replicas that together give one estimate.  Replicas of one problem are a block each.  Ladders run
at different couplings are dealt out so that every block has at least one replica of each; D is then the sum of theirs,
each at its own energy.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from observables.samples.of_ladders import Couplings, Replica, Samples, replicas_of
from observables.samples.wham import with_self_consistent_volumes
from quenchphys.ladder import Ladder

Array = np.ndarray


@dataclass(frozen=True)
class Pool:
    """All samples of one or several ladders of the same problem, ready to be asked.

    Every function of `observables` takes a ladder, several, or a `Pool`; a pool built once saves the volumes and the
    table of D when many questions are asked.

    volumes: "self-consistent" (WHAM), which uses every overlap of levels, or "telescoped", as the run measured them.
    """

    ladders: Sequence[Ladder]
    volumes: str
    blocks: Sequence[Sequence[Any]] = field(init=False)  # Replica, or other Samples
    log_base: list[list[Array]] = field(init=False)

    def __init__(self, ladders: Ladder | Sequence[Ladder], volumes: str = "self-consistent"):
        if volumes not in ("self-consistent", "telescoped"):
            raise ValueError(f"volumes must be 'self-consistent' or 'telescoped', but {volumes!r} was given.")
        ladders = [ladders] if isinstance(ladders, Ladder) else list(ladders)
        strangers = [type(ladder).__name__ for ladder in ladders if not isinstance(ladder, Ladder)]
        if strangers or not ladders:
            raise TypeError(
                f"A ladder or a list of ladders is needed, but {strangers[0] if strangers else '[]'} was given."
            )
        _check_same_problem(ladders)
        object.__setattr__(self, "ladders", ladders)
        replicas = [replica for ladder in ladders for replica in replicas_of(ladder)]
        if volumes == "self-consistent":
            replicas = [with_self_consistent_volumes(replica) for replica in replicas]
        object.__setattr__(self, "volumes", volumes)
        object.__setattr__(self, "blocks", _deal(replicas))
        object.__setattr__(self, "log_base", [_base_weights(block) for block in self.blocks])

    @classmethod
    def of_samples(
        cls, ladders: Sequence[Ladder], blocks: Sequence[Sequence[Samples]], log_base: list[list[Array]], volumes: str
    ) -> Pool:
        """Samples with these base weights, which the ladders of their problem may stand for."""
        pool = object.__new__(cls)
        for name, value in (("ladders", ladders), ("volumes", volumes), ("blocks", blocks), ("log_base", log_base)):
            object.__setattr__(pool, name, value)
        return pool

    @staticmethod
    def of(source: Ladder | Sequence[Ladder] | Pool) -> Pool:
        return source if isinstance(source, Pool) else Pool(source)

    @property
    def replicas(self) -> list[Any]:
        return [replica for block in self.blocks for replica in block]

    @property
    def of_ladders(self) -> bool:
        """Whether the samples have levels and ancestors; those of walkers have not."""
        return all(isinstance(replica, Replica) for replica in self.replicas)

    @staticmethod
    def of_levels(source: Ladder | Sequence[Ladder] | Pool, question: str) -> Pool:
        """A pool for a question that only ladders answer."""
        pool = Pool.of(source)
        if not pool.of_ladders:
            raise TypeError(f"{question} is a question to ladders: walkers have no levels.")
        return pool

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
        return attrs | {"ladders": len(self.ladders), "replicas": len(self.replicas), "volumes": self.volumes}


def _check_same_problem(ladders: Sequence[Ladder]) -> None:
    first = ladders[0]
    for other in ladders[1:]:
        if _identity(other) != _identity(first):
            raise ValueError(
                "Only ladders of the same problem, which differ in their couplings alone, can be pooled, but "
                f"{first.attrs.get('problem')!r} and {other.attrs.get('problem')!r} with the parameters "
                f"{first.attrs.get('parameters')} and {other.attrs.get('parameters')} were given."
            )


def _identity(ladder: Ladder) -> tuple[Any, ...]:
    """What pooled ladders have in common: the prior and the meaning of the couplings, not their values."""
    parameters = json.loads(ladder.attrs.get("parameters", "{}"))
    fixed = {name: value for name, value in parameters.items() if name not in (*ladder.couplings, "couplings")}
    meaning = {name: (observable, factor) for name, (_, observable, factor) in ladder.couplings.items()}
    return ladder.attrs.get("problem"), ladder.attrs.get("dimension"), fixed, ladder.observables, meaning


def _deal(replicas: list[Replica]) -> list[list[Replica]]:
    """Independent blocks, each with at least one replica of every set of couplings."""
    kinds: dict[tuple[tuple[str, float], ...], list[Replica]] = {}
    for replica in replicas:
        kinds.setdefault(tuple((k, v[0]) for k, v in sorted(replica.couplings.items())), []).append(replica)
    count = min(len(kind) for kind in kinds.values())
    return [[replica for kind in kinds.values() for replica in kind[b::count]] for b in range(count)]


def _base_weights(block: Sequence[Replica]) -> list[Array]:
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


Source = Ladder | Sequence[Ladder] | Pool  # what every function of `observables` takes
