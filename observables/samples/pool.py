"""The samples an answer rests on: ladders become replicas, walks become chains, both become independent blocks.

Every sample carries its base weight, so that exp(base) t(x) is its weight for any target pi(x) t(x): log(n_k w_kj / D) in
a ladder, log(c / (n w)) in a walk with n samples a chain, where c is the absolute scale (see `bennett`).

A block is a set of independent samples that can be left out.  Replicas of one problem are a block each, and so are single
chains: a walk has many, so that their scatter is known well (16 groups of them would know an error to a fifth only).
Ladders run at different couplings are dealt out so that every block has at least one replica of each; D is then the sum of
theirs, each at its own energy.  Canonical walks at different couplings have one chain of each in a block, see
`several_couplings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from observables.samples.base import Couplings, Samples
from observables.samples.bennett import Scale, scale_of
from observables.samples.kept import self_consistent_replicas
from observables.samples.of_ladders import Replica, replicas_of
from observables.samples.of_walks import Chain, chains_of
from observables.samples.several_couplings import SharedScales, shared_scales
from quenchphys.ladder import Ladder
from quenchphys.run import Run
from quenchphys.walk import Walk, joined

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Pool:
    """All samples of ladders or of a walk, with their weights.

    Every function of `observables` takes a ladder, a walk, several of them, or a `Pool`; a pool built once saves the
    volumes, the table of D and the absolute scale when several observables are wanted.

    Parameters
    ----------
    source : Ladder, Walk, or a sequence of either
        Ladders of the same problem, whose couplings may differ; or a walk, whole or in its successive parts.  The couplings
        of canonical walks may differ too.
    volumes : str
        Volumes of the levels of ladders: "self-consistent" (WHAM), which uses every overlap of levels, or "telescoped",
        as the run measured them.  Those of a nested ladder are known from order statistics; a walk has none.

    Examples
    --------
    >>> pool = observables.Pool([first, second])
    >>> observables.thermodynamics(pool, beta=[0.5, 1.0])
    >>> observables.partition_function(observables.Pool(ladder, volumes="telescoped"))
    >>> observables.phase_weights(observables.Pool(walk))
    """

    source: Ladder | Walk | Sequence[Ladder] | Sequence[Walk]
    volumes: str = "self-consistent"

    def __post_init__(self) -> None:
        if self.volumes not in ("self-consistent", "telescoped"):
            raise ValueError(f"volumes must be 'self-consistent' or 'telescoped', but {self.volumes!r} was given.")
        runs = self._given
        kinds = {type(run) for run in runs}
        if not runs or not (all(issubclass(kind, Ladder) for kind in kinds) or all(issubclass(k, Walk) for k in kinds)):
            given = ", ".join(sorted(kind.__name__ for kind in kinds)) or "an empty list"
            raise TypeError(f"A ladder, a walk, or a list of either is needed, but {given} was given.")
        check = _check_parts if self.walks else _check_same_problem
        check(runs)
        self.log_base  # noqa: B018 - found now, so that samples which have no weights are refused here

    @staticmethod
    def of(source: Source) -> Pool:
        """The pool of a source, or the source itself if it is a pool."""
        return source if isinstance(source, Pool) else Pool(source)

    @staticmethod
    def of_levels(source: Source, question: str) -> Pool:
        """A pool of ladders, for a question about levels."""
        pool = Pool.of(source)
        if not pool.of_ladders:
            raise TypeError(f"{question} needs ladders: the chains of a walk have no levels.")
        return pool

    # Where the samples come from.

    @cached_property
    def _given(self) -> list[Any]:
        return [self.source] if isinstance(self.source, Run) else list(self.source)

    @property
    def ladders(self) -> list[Ladder]:
        """The ladders; none for a walk."""
        return [run for run in self._given if isinstance(run, Ladder)]

    @property
    def walks(self) -> list[Walk]:
        """The parts of a walk; none for ladders."""
        return [run for run in self._given if isinstance(run, Walk)]

    @property
    def of_ladders(self) -> bool:
        """Whether the samples have levels and ancestors; those of chains have not."""
        return not self.walks

    @property
    def run(self) -> Run:
        """The first run: its couplings are those of a target where no others are given."""
        return self._given[0]

    @property
    def observables(self) -> list[str]:
        """Names of the recorded observables."""
        return self.run.observables

    @property
    def couplings(self) -> Couplings:
        """Couplings of the first run."""
        return self.run.couplings

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes that a result takes over from its runs."""
        attrs = {k: v for k, v in self.run.attrs.items() if isinstance(v, str | int | float | bool)}
        if self.of_ladders:
            return attrs | {"ladders": len(self.ladders), "replicas": len(self.replicas), "volumes": self.volumes}
        return attrs | {"parts": len(self.walks), "groups": len(self.together), "chains": len(self.blocks)}

    # The samples and their weights.

    @cached_property
    def blocks(self) -> Sequence[Sequence[Samples]]:
        """Independent sets of samples."""
        if self.walks:
            return [list(block) for block in zip(*self._chains, strict=True)]
        # Samples of several couplings are weighed by all of them, of which shared volumes know nothing.
        one_coupling = all(ladder.couplings == self.couplings for ladder in self.ladders)

        def made(ladder: Ladder) -> list[Replica]:
            if self.volumes == "telescoped":
                return replicas_of(ladder)
            several = ladder.levels.sizes["replica"] > 1
            return self_consistent_replicas(ladder, shared=ladder.method == "bridge" and several and one_coupling)

        return _deal([replica for ladder in self.ladders for replica in made(ladder)])

    @cached_property
    def log_base(self) -> list[list[Array]]:
        """Base weights of the samples of every block."""
        if self.scale is not None:
            log_c = self.scale.log_c
            if self.scales is not None:
                return self.scales.log_base
            return [[-chain.log_w + log_c - np.log(chain.log_w.size)] for chain in self.chains]
        return [_base_weights([replica for replica in block if isinstance(replica, Replica)]) for block in self.blocks]

    @cached_property
    def chains(self) -> list[Chain]:
        """The chains of a walk, of all its couplings one after the other; none for ladders."""
        return [chain for chains in self._chains for chain in chains]

    @cached_property
    def _chains(self) -> list[list[Chain]]:
        """The chains at each set of couplings."""
        return [chains_of(joined(parts)) for parts in _by_couplings(self.walks)]

    @property
    def together(self) -> list[range]:
        """Numbers of the blocks that give an answer of their own together: the chains of a group, or single replicas."""
        size = self.walks[0].data.sizes["chain"] if self.walks else 1
        return [range(first, first + size) for first in range(0, len(self.blocks), size)]

    @cached_property
    def scale(self) -> Scale | None:
        """The absolute scale of a walk, at the first of its couplings; None for ladders, whose volumes are absolute."""
        return scale_of(self._chains[0]) if self.walks else None

    @cached_property
    def scales(self) -> SharedScales | None:
        """What walks at several couplings share; None for anything else."""
        if len(self._chains) < 2 or self.scale is None:
            return None
        return shared_scales(list(zip(*self._chains, strict=True)), self.scale.log_c)

    @property
    def weighted(self) -> Iterator[tuple[Samples, Array]]:
        """Every set of samples with its base weights."""
        for block, bases in zip(self.blocks, self.log_base, strict=True):
            yield from zip(block, bases, strict=True)

    @property
    def samples(self) -> list[Samples]:
        """Every replica, or every chain."""
        return [samples for block in self.blocks for samples in block]

    @property
    def replicas(self) -> list[Replica]:
        """The replicas of ladders; none for a walk."""
        return [samples for samples in self.samples if isinstance(samples, Replica)]

    def check_one_coupling(self, question: str) -> None:
        """Refuse walks at several couplings, whose samples have no weight of their own, where that is asked for."""
        if len(self._chains) > 1:
            raise TypeError(f"{question} needs a single walk; walks at {len(self._chains)} couplings were given.")

    def check_recorded(self, name: str) -> None:
        """Refuse an observable that was not recorded."""
        if name not in ("energy", *self.observables):
            known = ", ".join(["energy", *self.observables])
            raise ValueError(f"No observable {name!r} was recorded; there are: {known}.")

    def check_defined(self, name: str, purpose: str) -> None:
        """Refuse an observable that is NaN for some samples with weight: they would silently count as something else."""
        if name not in self._undefined:
            weighed = [(samples.observable(name), np.isfinite(base)) for samples, base in self.weighted]
            undefined = sum(int(np.isnan(values[some]).sum()) for values, some in weighed)
            self._undefined[name] = undefined / max(1, sum(int(some.sum()) for _, some in weighed))
        if self._undefined[name] > 0:
            raise ValueError(
                f"{name} of {self.run.problem} is undefined (NaN) for {self._undefined[name]:.2g} of the samples, so it "
                f"cannot {purpose}; observables must be defined for every configuration."
            )

    @cached_property
    def _undefined(self) -> dict[str, float]:
        """Shares of samples with weight for which an observable is NaN, as far as they were asked for."""
        return {}


def _check_same_problem(ladders: Sequence[Ladder]) -> None:
    first = ladders[0]
    for other in ladders[1:]:
        if _identity(other) != _identity(first):
            raise ValueError(
                "Only ladders of the same problem, which differ in their couplings alone, can be pooled, but "
                f"{first.problem!r} and {other.problem!r} with the parameters {first.parameters} and {other.parameters} "
                "were given."
            )
    _check_different([(ladder.couplings, draws) for ladder in ladders for draws in ladder.prior["energy"].values], ladders)


def _check_different(drawn: Sequence[tuple[Couplings, Array]], ladders: Sequence[Ladder]) -> None:
    """Refuse replicas with the same prior draws: their errors are not independent, whatever their seeds are called."""
    owner = [number for number, ladder in enumerate(ladders) for _ in range(ladder.prior.sizes["replica"])]
    seen: dict[tuple[str, bytes], int] = {}
    for number, (couplings, draws) in zip(owner, drawn, strict=True):
        first = seen.setdefault((repr(sorted(couplings.items())), draws.tobytes()), number)
        if first != number:
            raise ValueError(
                f"Ladders {first} and {number} of the pool are the same run (seeds {ladders[first].attrs.get('seed')} and "
                f"{ladders[number].attrs.get('seed')}, the same draws): counted twice, it would only seem to have a smaller "
                "error; pool ladders of different seeds."
            )


def _check_parts(walks: Sequence[Walk]) -> None:
    """Parts of one walk have the same chains, and the same weight at the same couplings; canonical ones may have others."""
    first = walks[0]
    if not all(walk.energy.size for walk in walks):
        raise ValueError(
            f"The walk of {first.problem!r} has no sweeps, as one that is only to be continued: nothing was sampled yet."
        )
    canonical = all(walk.attrs.get("method") == "canonical" for walk in walks)
    for other in walks[1:]:
        same = _identity(other) == _identity(first) and (canonical or other.couplings == first.couplings)
        same = same and other.last.shape == first.last.shape
        if canonical and same:  # the weight follows from the couplings
            continue
        if not same or not all(np.array_equal(a, b) for a, b in zip(first.weight, other.weight, strict=True)):
            raise ValueError(
                "Only successive parts of one walk, or canonical walks that differ in their couplings alone, can be pooled: "
                "the problem, its couplings, the chains and the weight of all parts must be the same, but walks of "
                f"{first.problem!r} and {other.problem!r} that differ were given."
            )
    if len({walk.energy.tobytes() for walk in walks}) < len(walks):
        raise ValueError(
            f"The same part of a walk of {first.problem!r} was given twice: it would only seem to have a smaller error; "
            "give every part once."
        )


def _by_couplings(walks: Sequence[Walk]) -> list[list[Walk]]:
    """Parts of the same couplings together, in the order of the first of each."""
    sets: dict[str, list[Walk]] = {}
    for walk in walks:
        sets.setdefault(repr(sorted(walk.couplings.items())), []).append(walk)
    return list(sets.values())


def _identity(run: Run) -> tuple[Any, ...]:
    """What pooled runs have in common: the prior and the meaning of the couplings, not their values."""
    fixed = {name: value for name, value in run.parameters.items() if name not in (*run.couplings, "couplings")}
    meaning = {name: (observable, factor) for name, (_, observable, factor) in run.couplings.items()}
    return run.problem, run.dimension, fixed, run.observables, meaning


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


Source = Ladder | Walk | Sequence[Ladder] | Sequence[Walk] | Pool  # what every function of `observables` takes
