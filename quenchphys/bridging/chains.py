"""Chains of one problem at many values of beta, side by side in tiles of lanes.

A tile holds LANES chains of different groups at one beta, (*shape, lane).  Device calls always have the same shape, so that
another number of betas does not compile again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from quenchphys.kernels.block_hmc import BlockHMC, Chances, Moved
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.loops import map_rows
from quenchphys.parallel.processes import to_host
from quenchphys.parallel.random_numbers import key_of
from quenchphys.problem import ProblemView

Array = jax.Array

LANES = 8  # chains side by side in one tile
TILES = 8  # in one device call, shared among as many devices as divide their number
SWEEPS = 16  # trajectories in one device call
DRAWS = 64  # exact draws from the prior in one device call, for each group
TUNING_GAIN = 0.3
FIRST_STEP = 0.1


class Seen(NamedTuple):
    """What is recorded of a trajectory: (lane,), and numbers of the tile."""

    energy: Array
    observables: dict[str, Array]
    acceptance: Array
    left: Array
    gradients: Array


class Programs:
    """Compiled once for the shapes; betas, seed and couplings are arguments."""

    def __init__(self, kernel: BlockHMC, mesh: Mesh):
        own, all_of_it = PartitionSpec("replica"), PartitionSpec()

        def spread(function: Any, ins: tuple, outs: Any) -> Any:
            return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False))

        def begin(problem: ProblemView, keys: Array) -> Array:
            def tile(key: Array) -> Array:
                return jnp.moveaxis(problem.sample_prior(key, LANES), 0, -1)

            return map_rows(tile, keys)

        def run(problem: ProblemView, keys: Array, x: Array, beta: Array, step: Array, steps: Array, tune: Array) -> tuple:
            def tile(row: tuple) -> tuple:
                key, x, beta, step, steps = row

                def sweep(carry: tuple[Array, Array], chances: Chances) -> tuple:
                    x, step = carry
                    moved = kernel.transition(problem.problem, chances, x, beta, step, steps)  # type: ignore[arg-type]
                    better = step * jnp.exp(TUNING_GAIN * (moved.acceptance - kernel.target_acceptance))
                    return (moved.x, jnp.where(tune, better, step)), measured(problem, moved)

                chances = kernel.chances(problem.problem, key, SWEEPS, LANES)  # type: ignore[arg-type]
                last, seen = jax.lax.scan(sweep, (x, step), chances)  # type: ignore[var-annotated]
                return *last, seen

            return map_rows(tile, (keys, x, beta, step, steps))

        def draw(problem: ProblemView, keys: Array) -> tuple:
            def tile(key: Array) -> tuple:
                x = jnp.moveaxis(problem.sample_prior(key, DRAWS), 0, -1)
                energy = problem.problem.lane_energy(x)  # type: ignore[attr-defined]
                inside = problem.problem.lane_inside(x)  # type: ignore[attr-defined]
                return jnp.where(inside, energy, jnp.inf), problem.problem.lane_observe(x)  # type: ignore[attr-defined]

            return map_rows(tile, keys)

        self.begin = spread(begin, (all_of_it, own), own)
        self.run = spread(run, (all_of_it, own, own, own, own, own, all_of_it), (own, own, own))
        self.draw = jax.jit(draw)


def measured(problem: ProblemView, moved: Moved) -> Seen:
    """What is recorded after a trajectory."""
    chains: Any = problem.problem
    return Seen(
        chains.lane_energy(moved.x), chains.lane_observe(moved.x), moved.acceptance, moved.left, moved.gradients
    )


@cache
def programs(kernel: BlockHMC, mesh: Mesh) -> Programs:
    keep_compiled_programs()
    return Programs(kernel, mesh)


class Draws(NamedTuple):
    """Exact draws from the prior, (group, draw)."""

    energy: np.ndarray
    """Infinite outside the phase."""
    observables: dict[str, np.ndarray]

    def joined(self, more: Draws) -> Draws:
        """These and more of them."""
        return jax.tree.map(lambda one, other: np.concatenate([one, other], axis=1), self, more)


class Samples(NamedTuple):
    """What chains recorded at every beta: energies and observables (level, group, sweep), and means (level,)."""

    energy: np.ndarray
    observables: dict[str, np.ndarray]
    acceptance: np.ndarray
    left: np.ndarray

    @staticmethod
    def joined(parts: Sequence[Samples]) -> Samples:
        """Device calls one after the other."""
        return Samples(
            np.concatenate([part.energy for part in parts], axis=-1),
            {name: np.concatenate([part.observables[name] for part in parts], axis=-1) for name in parts[0].observables},
            np.mean([part.acceptance for part in parts], axis=0),
            np.mean([part.left for part in parts], axis=0),
        )


class Chains:
    """Chains of a problem at some betas, groups of them at each, advanced in device calls of one shape."""

    def __init__(self, problem: ProblemView, kernel: BlockHMC, groups: int, seed: int, mesh: Mesh):
        self.program = programs(kernel, mesh)
        self.problem = problem.as_argument()
        self.groups = groups
        self.key = key_of(seed)
        self.kernel = kernel
        self.calls = 0
        self.gradients = 0
        self.beta = np.zeros(0, np.float32)
        self.step = np.zeros(0, np.float32)

    @property
    def level_unit(self) -> int:
        """Device calls are full if the number of levels is a multiple of this."""
        return TILES // math.gcd(TILES, self.groups // LANES)

    def draw(self) -> Draws:
        """Exact draws for every group; refused if most of them are not in the phase."""
        draws = Draws(*to_host(self.program.draw(self.problem, self._keys(self.groups))))
        if (inside := np.isfinite(draws.energy).mean()) < 0.5:
            raise ValueError(
                f"only {inside:.0%} of the draws from the prior are inside the phase; the two do not belong together"
            )
        return draws

    @property
    def step_sizes(self) -> np.ndarray:
        """Mean step size at every beta."""
        return self.step[: self.tiles].reshape(-1, self.groups // LANES).mean(axis=1)

    def start(self, betas: np.ndarray) -> None:
        """Begin at these betas, with exact draws from the prior and, where there was a run before, its step sizes."""
        before = self.beta, self.step
        beta = np.repeat(betas.astype(np.float32), self.groups // LANES)
        self.tiles = len(beta)
        self.beta = np.pad(beta, (0, -self.tiles % TILES), mode="edge")  # tiles that fill the last call, and do not count
        step = np.interp(self.beta, *before) if len(before[0]) else np.full(len(self.beta), FIRST_STEP)
        self.step, self.steps = step.astype(np.float32), np.full(len(self.beta), self.kernel.steps, np.int32)
        keys = self._keys(len(self.beta))
        self.x = [self.program.begin(self.problem, keys[some]) for some in self._chunks()]

    def lengthen(self, factors: np.ndarray) -> None:
        """Make trajectories at every beta longer by a factor, (level,)."""
        longer = np.repeat(factors, self.groups // LANES)
        self.steps *= np.pad(longer, (0, len(self.beta) - self.tiles), mode="edge").astype(np.int32)

    def advance(self, tune: bool) -> Samples:
        """SWEEPS trajectories of every chain."""
        keys, chunks = self._keys(len(self.beta)), self._chunks()
        # All calls are made before one of them is waited for: a processor with several cores runs as many of them at a time.
        calls = [
            self.program.run(
                self.problem, keys[some], x, self.beta[some], self.step[some], self.steps[some], np.bool_(tune)
            )
            for some, x in zip(chunks, self.x, strict=True)
        ]
        self.x = [x for x, _, _ in calls]
        for some, (_, step, _) in zip(chunks, calls, strict=True):
            self.step[some] = to_host(step)
        found = [to_host(seen) for _, _, seen in calls]
        self.gradients += LANES * sum(int(seen.gradients.sum()) for seen in found)
        # (tile, sweep, lane) and (tile, sweep)
        seen = jax.tree.map(lambda *parts: np.concatenate(parts)[: self.tiles], *found)
        levels = self.tiles * LANES // self.groups

        def by_group(value: np.ndarray) -> np.ndarray:
            return np.swapaxes(value, 1, 2).reshape(levels, self.groups, SWEEPS)

        observables = {name: by_group(value) for name, value in seen.observables.items()}
        means = (value.reshape(levels, -1).mean(axis=1) for value in (seen.acceptance, seen.left))
        return Samples(by_group(seen.energy), observables, *means)

    def last(self) -> np.ndarray:
        """Configurations at the last beta, (group, *shape)."""
        first = self.tiles - self.groups // LANES
        calls = range(first // TILES, (self.tiles - 1) // TILES + 1)
        x = np.concatenate([to_host(self.x[call]) for call in calls])
        x = x[first - calls[0] * TILES : self.tiles - calls[0] * TILES]
        return np.moveaxis(x, -1, 1).reshape(self.groups, *x.shape[1:-1])

    def _chunks(self) -> list[slice]:
        return [slice(at, at + TILES) for at in range(0, len(self.beta), TILES)]

    def _keys(self, count: int) -> Array:
        self.calls += 1
        return jax.random.split(jax.random.fold_in(self.key, self.calls), count)
