"""Chains in equilibrium at every step between a prior and its target: `bridge`.

Between a Gaussian prior pi_0 and a phase close to it, the densities

    rho_k(x) = pi_0(x) exp(-beta_k U(x)) [x inside the phase],     0 < beta_1 < ... < beta_K = 1

never meet a transition.  At each of them chains run until they have forgotten their start, so nothing lags behind, as it
would on a ladder that passes every beta once.  All samples together, with exact draws from the prior, give Z by the same
estimator as everywhere.  Samples at neighbouring betas must overlap: the betas are placed at equal steps of the length

    Lambda = int_0^1 std_beta(U) dbeta,

of about a standard deviation each, which also is the allocation of samples with the smallest error of log Z: N independent
samples in all give Lambda/sqrt(N).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.sharding import Mesh, PartitionSpec

from quenchphys.consistency import check
from quenchphys.console.interruption import Interrupted, interruptible_alone
from quenchphys.kernels.block_hmc import BlockHMC
from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.loops import map_rows
from quenchphys.parallel.processes import any_of, to_host
from quenchphys.parallel.random_numbers import key_of
from quenchphys.problem import ProblemView, view
from quenchphys.settings import check_schedule, check_seed, check_whole
from quenchphys.smc.loop import contained
from quenchphys.storage.attributes import kernel_as_json, problem_attributes, software_attributes
from quenchphys.storage.schema import LADDER, LADDER_FORMAT, labelled

Array = jax.Array

LANES = 8  # chains side by side in one tile
SWEEPS = 16  # trajectories in one device call
DRAWS = 64  # exact draws from the prior, for each group
TILES = 8  # of a device in one call
PILOTS = 3  # short runs that place the betas
SPACING = 1.0  # standard deviations of U between neighbouring betas, at most
LONGEST = 400.0  # Lambda, beyond which the prior is not near the phase
TUNING_GAIN = 0.3
FIRST_STEP = 0.1
FEWEST_CALLS = 4  # of SWEEPS trajectories, before an error is believed
LEAVING = 1e-3  # share of trajectories that leave the phase, from which it is no phase of its own
LEAST_ACCEPTANCE = 0.3
DRIFT = 1e-4  # probability of as large a difference between early and late samples, below which chains still drift


class Seen(NamedTuple):
    """What is recorded of a trajectory: (lane,), and numbers of the tile."""

    energy: Array
    observables: dict[str, Array]
    acceptance: Array
    left: Array


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

        def run(problem: ProblemView, keys: Array, x: Array, beta: Array, step: Array, tune: Array) -> tuple:
            def tile(row: tuple) -> tuple:
                key, x, beta, step = row

                def sweep(carry: tuple[Array, Array], key: Array) -> tuple:
                    x, step = carry
                    moved = kernel.transition(problem.problem, key, x, beta, step)  # type: ignore[arg-type]
                    better = step * jnp.exp(TUNING_GAIN * (moved.acceptance - kernel.target_acceptance))
                    return (moved.x, jnp.where(tune, better, step)), measured(problem, moved)

                (x, step), seen = jax.lax.scan(sweep, (x, step), jax.random.split(key, SWEEPS))
                return x, step, seen

            return map_rows(tile, (keys, x, beta, step))

        def draw(problem: ProblemView, keys: Array) -> tuple:
            def tile(key: Array) -> tuple:
                x = jnp.moveaxis(problem.sample_prior(key, DRAWS), 0, -1)
                energy = problem.problem.lane_energy(x)  # type: ignore[attr-defined]
                inside = problem.problem.lane_inside(x)  # type: ignore[attr-defined]
                return jnp.where(inside, energy, jnp.inf), jax.vmap(problem.observe, -1)(x)

            return map_rows(tile, keys)

        self.begin = spread(begin, (all_of_it, own), own)
        self.run = spread(run, (all_of_it, own, own, own, own, all_of_it), (own, own, own))
        self.draw = jax.jit(draw)


def measured(problem: ProblemView, moved: Any) -> Seen:
    energy = problem.problem.lane_energy(moved.x)  # type: ignore[attr-defined]
    return Seen(energy, jax.vmap(problem.observe, -1)(moved.x), moved.acceptance, moved.left)


@cache
def programs(kernel: BlockHMC, mesh: Mesh) -> Programs:
    keep_compiled_programs()
    return Programs(kernel, mesh)


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

    def __init__(self, problem: ProblemView, kernel: BlockHMC, groups: int, seed: int, devices: Any):
        self.mesh = mesh_for(1024, 1, devices)
        self.program = programs(kernel, self.mesh)
        self.problem = problem.as_argument()
        self.groups = groups
        self.chunk = TILES * self.mesh.devices.size
        self.key = key_of(seed)
        self.calls = 0
        self.trajectories = 0

    @property
    def level_unit(self) -> int:
        """Levels come in multiples of this, so that device calls are full."""
        return max(1, self.chunk * LANES // self.groups)

    def draw(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Energies, infinite outside the phase, and observables of exact draws, (group, draw)."""
        return to_host(self.program.draw(self.problem, self._keys(self.groups)))

    def start(self, betas: np.ndarray) -> None:
        """Begin at these betas, with exact draws from the prior."""
        self.beta = np.repeat(betas.astype(np.float32), self.groups // LANES)
        self.step = np.full(len(self.beta), FIRST_STEP, np.float32)
        keys = self._keys(len(self.beta))
        self.x = [self.program.begin(self.problem, keys[some]) for some in self._chunks()]

    def advance(self, tune: bool) -> Samples:
        """SWEEPS trajectories of every chain."""
        keys, found = self._keys(len(self.beta)), []
        for number, some in enumerate(self._chunks()):
            arguments = keys[some], self.x[number], self.beta[some], self.step[some], np.bool_(tune)
            self.x[number], step, seen = self.program.run(self.problem, *arguments)
            self.step[some] = to_host(step)
            found.append(to_host(seen))
        self.trajectories += SWEEPS * len(self.beta) * LANES
        seen = jax.tree.map(lambda *parts: np.concatenate(parts), *found)  # (tile, sweep, lane) and (tile, sweep)
        levels = len(self.beta) * LANES // self.groups

        def by_group(value: np.ndarray) -> np.ndarray:
            return np.swapaxes(value, 1, 2).reshape(levels, self.groups, SWEEPS)

        observables = {name: by_group(value) for name, value in seen.observables.items()}
        means = (value.reshape(levels, -1).mean(axis=1) for value in (seen.acceptance, seen.left))
        return Samples(by_group(seen.energy), observables, *means)

    def last(self) -> np.ndarray:
        """Configurations at the last beta, (group, *shape)."""
        tiles = self.groups // LANES
        x = np.concatenate([to_host(part) for part in self.x[-(-(-tiles // self.chunk)) :]])[-tiles:]
        return np.moveaxis(x, -1, 1).reshape(self.groups, *x.shape[1:-1])

    def _chunks(self) -> list[slice]:
        return [slice(at, at + self.chunk) for at in range(0, len(self.beta), self.chunk)]

    def _keys(self, count: int) -> Array:
        self.calls += 1
        return jax.random.split(jax.random.fold_in(self.key, self.calls), count)


def lengths(betas: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """int_0^beta std(U) dbeta at 0 and at every beta, by trapezoids; `deviation` is std(U) there."""
    return np.concatenate([[0.0], np.cumsum(0.5 * (deviation[1:] + deviation[:-1]) * np.diff(betas, prepend=0.0))])


def log_volumes(betas: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """log G = -int_0^beta <U> dbeta at every beta, from <U> and its slope -Var U at 0 and at every beta (last axis)."""
    width = np.diff(betas, prepend=0.0)
    trapezoid = 0.5 * (mean[..., 1:] + mean[..., :-1])
    correction = width * (variance[..., 1:] - variance[..., :-1]) / 12
    return -np.cumsum(width * (trapezoid + correction), axis=-1)


def placed(chains: Chains, draws: np.ndarray) -> tuple[np.ndarray, float]:
    """Betas at equal steps of Lambda, and Lambda, from short runs at betas that are moved after each of them."""
    inside = draws[np.isfinite(draws)]
    betas = np.linspace(0, 1, chains.level_unit + 1)[1:]
    for _ in range(PILOTS):
        chains.start(betas)
        chains.advance(tune=True)
        deviation = chains.advance(tune=True).energy.std(axis=(1, 2))
        length = lengths(betas, np.concatenate([[inside.std()], deviation]))
        count = chains.level_unit * math.ceil(length[-1] / SPACING / chains.level_unit)
        if not length[-1] < LONGEST:
            raise ValueError(
                f"the bridge from the prior to its target is {length[-1]:.3g} standard deviations long, more than {LONGEST:g}: "
                "the prior is not near the phase"
            )
        known = np.concatenate([[0.0], betas])
        betas = np.interp(np.linspace(0, length[-1], len(betas) + 1), length, known)[1:]
    final = np.interp(np.linspace(0, length[-1], count + 1), length, known)[1:]
    final[-1] = 1.0
    return final, float(length[-1])


def bridge(
    problem: Any,
    *,
    error: float = 0.1,
    betas: Sequence[float] | None = None,
    groups: int = 16,
    sweeps: int | None = None,
    most_sweeps: int = 100_000,
    warm_up: int = 32,
    kernel: BlockHMC | None = None,
    seed: int = 0,
    devices: int | Sequence[Any] | None = None,
) -> Ladder:
    """Sample every step between a prior and a phase near it by chains in equilibrium.

    Parameters
    ----------
    problem
        A phase with its own prior, such as one of `lattices.phase_fields`: a `Problem` with a `LocalAction`.
    error
        Standard error of log Z to be reached.
    betas
        Increasing values that end at 1.  Default: placed by short runs.
    groups
        Independent groups of chains, a multiple of 8: one chain at every beta each.  Error bars are a jackknife over them.
    sweeps
        Trajectories of each chain that are recorded, in multiples of 16.  Default: as many as `error` takes.
    most_sweeps
        Limit for these; a bridge that reaches it without the error ends with the outcome *level limit*.
    warm_up
        Trajectories of burn-in, in which the step size is tuned.
    kernel
        Default: `BlockHMC()`.
    seed, devices
        As in `quench`.

    Returns
    -------
    Ladder
        With the betas as levels, the groups as replicas and the recorded samples as particles: all observables take it.
        log Z of the phase is that of the ladder at beta = 1 plus `problem.log_scale`.

    Examples
    --------
    >>> phases = lattices.phase_fields(lattices.phi6(L=40, mu2=2.2839))
    >>> ladder = qp.bridge(phases["disordered"], error=0.05)
    >>> observables.partition_function(ladder, beta=[1.0]).log_z + phases["disordered"].log_scale
    """
    check_not_forked()
    seed, groups = check_seed(seed), check_whole("groups", groups, LANES)
    warm_up, most_sweeps = check_whole("warm_up", warm_up, SWEEPS), check_whole("most_sweeps", most_sweeps, SWEEPS)
    if groups % LANES:
        raise ValueError(f"groups must be a multiple of {LANES}; {groups} was given")
    if not (isinstance(error, int | float | np.number) and 0 < error < math.inf):
        raise ValueError(f"error must be positive and finite; {error!r} was given")
    wanted = None if sweeps is None else check_whole("sweeps", sweeps, SWEEPS)
    schedule = None if betas is None else np.asarray(check_schedule("betas", betas, increasing=True), float)
    if schedule is not None and (schedule[0] <= 0 or schedule[-1] != 1):
        raise ValueError(f"betas must be positive and end at 1; {schedule[0]:g} ... {schedule[-1]:g} was given")
    for name in ("lane_action", "lane_force", "lane_energy", "lane_inside", "blocks"):
        if not hasattr(problem, name):
            raise TypeError(
                f"a bridge needs a phase with a local action, such as one of lattices.phase_fields(model); this "
                f"{type(problem).__name__} has no {name}"
            )
    begun = time.monotonic()
    check(problem)
    kernel = kernel if kernel is not None else BlockHMC()
    model = view(problem)
    mesh = mesh_for(1024, 1, devices)
    with contained(mesh), interruptible_alone() as request:
        chains = Chains(model, kernel, groups, seed, devices)
        draws, seen_by_draws = chains.draw()
        if np.isfinite(draws).mean() < 0.5:
            raise ValueError(
                f"only {np.isfinite(draws).mean():.0%} of the draws from the prior are inside the phase; the two do not belong "
                "together"
            )
        schedule, length = (schedule, math.nan) if schedule is not None else placed(chains, draws)
        chains.start(schedule)
        for _ in range(math.ceil(warm_up / SWEEPS)):
            chains.advance(tune=True)
        parts: list[Samples] = []
        while True:
            parts.append(chains.advance(tune=False))
            if any_of(bool(request)):
                raise Interrupted(f"Interrupted after {SWEEPS * len(parts)} sweeps; nothing is kept of an unfinished bridge.")
            done = SWEEPS * len(parts)
            if wanted is not None:
                if done >= wanted:
                    break
            elif done >= most_sweeps or (
                len(parts) >= FEWEST_CALLS and error_of(Samples.joined(parts).energy, draws, schedule) <= error
            ):
                break
        step_size, last = chains.step.reshape(len(schedule), -1).mean(axis=1), chains.last()
    samples = Samples.joined(parts)
    reached = error_of(samples.energy, draws, schedule)
    settings = {
        "groups": groups,
        "sweeps": samples.energy.shape[-1],
        "warm_up": warm_up,
        "error": float(error),
        "kernel": kernel_as_json(kernel),  # type: ignore[arg-type]
    }
    attributes = {
        "format": LADDER_FORMAT,
        "method": "bridge",
        "softness": math.nan,
        "outcome": judge(samples, reached, math.inf if wanted is not None else error).value,
        "seed": seed,
        **problem_attributes(model),
        "settings": json.dumps(settings),
        "length": length,
        "gradients": float(chains.trajectories * kernel.gradients()),
        "wall_time": time.monotonic() - begun,
        **software_attributes(),
    }
    groups_of_data = _tree(model, schedule, samples, (draws, seen_by_draws), step_size, last)
    labels = {group: labelled(data, LADDER, group) for group, data in groups_of_data.items()}
    return Ladder(xr.DataTree.from_dict({"/": xr.Dataset(attrs=attributes), **labels}))


def error_of(energy: np.ndarray, draws: np.ndarray, betas: np.ndarray) -> float:
    """Standard error of log Z from the scatter of the groups, each integrated by itself."""
    return float(_integrals(energy, draws, betas)[:, -1].std(ddof=1) / math.sqrt(energy.shape[1]))


def _integrals(energy: np.ndarray, draws: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """log G of every group at every beta, (group, level)."""
    inside = np.where(np.isfinite(draws), draws, np.nan)
    mean = np.concatenate([np.nanmean(inside, axis=1)[:, None], energy.mean(axis=-1).T], axis=1)
    # Variances only correct the trapezoids: those of all groups together are less noisy.
    variance = np.concatenate([[np.nanvar(inside)], energy.var(axis=(1, 2))])
    return log_volumes(betas, mean, variance)


def judge(samples: Samples, reached: float, error: float) -> Outcome:
    """How a bridge ended."""
    from scipy import stats  # a sixth of what importing quenchphys would take

    if not np.isfinite(samples.energy).all():
        return Outcome.UNDEFINED_ENERGY
    if samples.acceptance.min() < LEAST_ACCEPTANCE:
        return Outcome.FROZEN
    if samples.left.max() > LEAVING:
        return Outcome.LEFT_PHASE
    half = samples.energy.shape[-1] // 2
    change = samples.energy[..., half:].mean(axis=-1) - samples.energy[..., :half].mean(axis=-1)  # (level, group)
    groups = change.shape[1]
    z = change.mean(axis=1) / (change.std(axis=1, ddof=1) / math.sqrt(groups))
    if stats.t.sf(np.abs(z), groups - 1).min() * 2 * len(z) < DRIFT:
        return Outcome.LAGGED
    return Outcome.LEVEL_LIMIT if reached > error else Outcome.REACHED_BETA


def _tree(
    model: ProblemView,
    betas: np.ndarray,
    samples: Samples,
    draws: tuple[np.ndarray, dict[str, np.ndarray]],
    step_size: np.ndarray,
    last: np.ndarray,
) -> dict[str, xr.Dataset]:
    """The groups of a ladder file: replica = group, level = beta, particle = sweep."""
    groups, sweeps = samples.energy.shape[1:]
    replica_level, particle = ("replica", "level"), ("replica", "level", "particle")

    def of_levels(value: np.ndarray) -> tuple:
        return replica_level, np.broadcast_to(value, (groups, len(betas))).copy()

    levels = xr.Dataset(
        {
            "beta": of_levels(betas.astype(np.float32)),
            "log_volume": (replica_level, _integrals(samples.energy, draws[0], betas)),
            "acceptance": of_levels(samples.acceptance.astype(np.float32)),
            "step_size": of_levels(step_size),
            "level_count": ("replica", np.full(groups, len(betas))),
        }
    )
    recorded = {"energy": samples.energy, **samples.observables}
    particles = xr.Dataset({name: (particle, np.swapaxes(value, 0, 1)) for name, value in recorded.items()})
    particles["log_weight"] = (particle, np.full((groups, len(betas), sweeps), -math.log(sweeps), np.float32))
    values = {"energy": draws[0], **draws[1]}
    return {
        "levels": levels,
        "particles": particles,
        "prior": xr.Dataset({name: (("replica", "draw"), value) for name, value in values.items()}),
        "configurations": xr.Dataset(
            {
                "field": (("replica", "sample", *model.dims), last[:, None]),
                "level": (("replica", "sample"), np.full((groups, 1), len(betas) - 1, np.int32)),
                "particle": (("replica", "sample"), np.full((groups, 1), sweeps - 1, np.int32)),
            }
        ),
    }
