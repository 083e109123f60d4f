"""`multicanonical`: chains that walk up and down the energies, in equilibrium, with a weight that depends on U alone.

A ladder passes every energy once, and what its particles had no time to forget stays in the volumes.  Chains of density

    rho(x) = pi(x) w(U(x))

walk as often as time allows through all energies at which w g is about constant, g the density of states; a ladder knows
such a w (`observables.flat_weight`).  Whatever w is, its samples have the exact weights exp(-beta U)/w(U) for any target:
a poor w costs time, never a bias.  Berg and Neuhaus 1992.

Replicas are groups of walkers with nothing in common but w; within one, walkers share the step size and the scale, which
are tuned while they warm up and fixed before anything is recorded.
"""

from __future__ import annotations

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

from quenchphys.kernels import HMC, Kernel, MinimumNorm
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.loops import map_rows
from quenchphys.parallel.processes import to_host
from quenchphys.parallel.random_numbers import GENERATOR, keys_of
from quenchphys.parallel.sharding import ParticleSharding, largest_tile, set_size
from quenchphys.problem import check, view
from quenchphys.settings import check_kernel, check_whole
from quenchphys.smc.density import Density, Point, configurations, evaluate, positions
from quenchphys.smc.loop import contained
from quenchphys.smc.mutation import Effort, Level, Particles, move
from quenchphys.smc.plan import Plan, Work
from quenchphys.smc.step import read_scale
from quenchphys.tuning.scale import ScoreStatistics, track

Array = jax.Array

SWEEPS = 16  # in one device call
TRANSITIONS = 4  # in one sweep, after which walkers are measured
DRAWS = 8  # from the prior, a walker and device call
TABLE = 1024  # intervals of the weight
TUNED = ("step_size", "scale")  # what a walk that goes on takes over
# Long trajectories, in which walls move: chosen by how many gradients phi^6 at L = 40 takes to cross.
LONG, LONG_ON_SITES = HMC(leapfrogs=20), MinimumNorm(steps=24)


class Weight(NamedTuple):
    """log w(U): cubics on equal intervals, straight on both sides of them."""

    first: Any
    per_interval: Any  # 1 / width
    cubic: Any  # (interval, 4), highest power first, in units of the width

    @staticmethod
    def through(energy: np.ndarray, log_weight: np.ndarray, intervals: int = TABLE) -> Weight:
        """The smooth curve through ascending points."""
        from scipy.interpolate import CubicSpline  # a sixth of what importing quenchphys would take

        nodes = np.linspace(energy[0], energy[-1], intervals + 1)
        width = nodes[1] - nodes[0]
        spline = CubicSpline(nodes, CubicSpline(energy, log_weight)(nodes))
        cubic = spline.c.T * width ** np.arange(3, -1, -1)
        return Weight(np.float32(nodes[0]), np.float32(1 / width), cubic.astype(np.float32))

    def _at(self, energy: Any, xp: Any) -> tuple[Any, Any]:
        """log w and its slope."""
        count = self.cubic.shape[0]
        place = xp.clip((energy - self.first) * self.per_interval, 0.0, float(count))
        number = xp.clip(xp.floor(place), 0, count - 1).astype(xp.int32)
        u = place - number
        a, b, c, d = (self.cubic[:, i][number] for i in range(4))
        slope = ((3 * a * u + 2 * b) * u + c) * self.per_interval
        beyond = energy - (self.first + place / self.per_interval)
        return ((a * u + b) * u + c) * u + d + slope * beyond, slope

    def log(self, energy: np.ndarray) -> np.ndarray:
        """log w in double precision, as the chains have it to rounding."""
        exact = Weight(*(np.asarray(part, float) for part in self))
        return exact._at(np.asarray(energy, float), np)[0]

    # What `Density` asks of a family; the level is the same for ever.

    def slope(self, energy: Array, parameter: Array) -> Array:
        return self._at(energy, jnp)[1]

    def log_change(self, energy: Array, proposed: Array, parameter: Array) -> Array:
        return self._at(proposed, jnp)[0] - self._at(energy, jnp)[0]


class Walkers(NamedTuple):
    """(replica, walker, ...) and (replica, ...)."""

    key: Array
    common: Array
    point: Point
    step_size: Array
    anisotropy: Array
    scale: Array


class Seen(NamedTuple):
    """What is recorded of a sweep: (replica, walker) and (replica,)."""

    energy: Array
    observables: dict[str, Array]
    acceptance: Array
    undefined: Array


def sweep(problem: Any, plan: Plan, weight: Any, walkers: Walkers, tune: Array) -> tuple[Walkers, Seen]:
    """Move every walker, look at it, and tune the kernel if asked to."""
    level = Level(walkers.key, jnp.zeros_like(walkers.step_size), walkers.step_size, walkers.scale)
    alike = jnp.full(walkers.point.energy.shape, -math.log(plan.particles), jnp.float32)
    effort = Effort(walkers.common, jnp.int32(TRANSITIONS))
    moved = move(Work(problem, plan, weight), level, effort, Particles(walkers.point, alike))
    anisotropy, scale = read_scale(problem, plan, moved.scores, walkers.anisotropy)
    acceptance = jnp.mean(moved.acceptance, axis=-1)
    step_size = track(walkers.step_size, acceptance, plan.kernel.target_acceptance)

    def learnt(new: Array, old: Array) -> Array:
        return jnp.where(tune, new, old)

    onward = Walkers(
        jax.vmap(lambda key: jax.random.fold_in(key, 1))(walkers.key),
        jax.random.fold_in(walkers.common, 1),
        moved.point,
        learnt(step_size, walkers.step_size),
        learnt(anisotropy, walkers.anisotropy),
        learnt(scale, walkers.scale),
    )
    return onward, Seen(moved.point.energy, moved.observables, acceptance, jnp.mean(moved.undefined, axis=-1))


def prior_energies(problem: Any, draws: int, key: Array) -> Array:
    """Of exact draws from the prior, (replica, draw)."""

    def drawn(key: Array) -> Array:
        return evaluate(problem, positions(problem, problem.sample_prior(key, draws))).energy

    return map_rows(drawn, jax.vmap(lambda key: jax.random.fold_in(key, 2))(key))


class Programs:
    """Compiled once for the shapes; weight, seed and couplings are arguments."""

    def __init__(self, plan: Plan, mesh: Mesh):
        own, all_of_it, later = PartitionSpec("replica"), PartitionSpec(), PartitionSpec(None, "replica")
        parts: Any = Walkers(*(all_of_it if name == "common" else own for name in Walkers._fields))  # type: ignore[arg-type]
        seen: Any = Seen(*(later for _ in Seen._fields))  # type: ignore[arg-type]

        def spread(function: Any, ins: tuple, outs: Any) -> Any:
            return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False))

        def begin(problem: Any, weight: Any, key: Array, common: Array, configuration: Array) -> Walkers:
            point = evaluate(problem, positions(problem, configuration))
            score = Density(problem, weight, jnp.zeros(())).score(point)
            square = score * score
            size = jnp.sum(square, axis=-1)
            direction = square / jnp.maximum(size, 1e-30)[..., None]
            read = read_scale(problem, plan, ScoreStatistics(jnp.sqrt(size), direction, jnp.ones_like(size)))
            first = plan.kernel.step_size or plan.kernel.first_step_size(point.position.shape[-1])
            return Walkers(key, common, point, jnp.full(key.shape, first, jnp.float32), *read)

        def walk(problem: Any, weight: Any, walkers: Walkers, tune: Array) -> tuple[Walkers, Seen, Array]:
            onward, found = jax.lax.scan(
                lambda w, _: sweep(problem, plan, weight, w, tune), walkers, None, length=SWEEPS
            )
            return onward, found, prior_energies(problem, plan.draws, walkers.key)

        self.begin = spread(begin, (all_of_it, all_of_it, own, all_of_it, own), parts)
        self.walk = spread(walk, (all_of_it, all_of_it, parts, all_of_it), (parts, seen, own))


@cache
def programs(plan: Plan, mesh: Mesh) -> Programs:
    keep_compiled_programs()
    return Programs(plan, mesh)


def multicanonical(
    problem: Any,
    start: np.ndarray | xr.Dataset,
    energy: Sequence[float] | np.ndarray,
    log_weight: Sequence[float] | np.ndarray,
    *,
    sweeps: int,
    warm_up: int = 64,
    kernel: Kernel | None = None,
    seed: int = 0,
    devices: int | Sequence[Any] | None = None,
) -> xr.Dataset:
    """Let walkers with the density pi(x) w(U(x)) walk from given configurations, and record what they see.

    Parameters
    ----------
    problem
        As in `quench`.
    start
        Configurations (replica, walker, ...): of a ladder, best spread over all energies between which w is given.  Or a
        walk to go on with: then walkers keep its step size and scale, and do not warm up.
    energy, log_weight
        Ascending energies and log w there; beyond both ends log w goes on in a straight line.
    sweeps, warm_up
        Sweeps that are recorded, and before these others that tune the kernel, in each of which a walker makes four moves;
        both are rounded up to a multiple of 16.
    kernel
        Default: long trajectories, in which walls between phases move.
    seed, devices
        As in `quench`; replicas are shared out among devices.

    Returns
    -------
    Dataset
        energy and every observable over (replica, sweep, walker), log_w at these energies; prior_log_w at those of exact
        draws from the prior, which give walkers that meet them an absolute Z (`observables.absolute`); `last`, the
        configurations to go on from; of each replica the acceptance, step size and scale.
    """
    check_not_forked()
    if kernel is not None:
        check_kernel(kernel)
    for name, number, least in (("sweeps", sweeps, 1), ("warm_up", warm_up, 0), ("seed", seed, 0)):
        check_whole(name, number, least)
    weight = Weight.through(*_ascending(energy, log_weight))
    begun = time.monotonic()
    with jax.enable_x64(False):
        check(problem)
        problem = view(problem)
        shape = problem.shape
    before = start if isinstance(start, xr.Dataset) else None
    start = np.asarray(start if before is None else before["last"].values, np.float32)
    if start.ndim != 2 + len(shape) or start.shape[2:] != shape or 0 in start.shape or not np.isfinite(start).all():
        raise ValueError(
            f"start must be finite configurations of the shape (replica, walker, {', '.join(map(str, shape))}); an array of "
            f"the shape {start.shape} was given, {np.mean(~np.isfinite(start)) if start.size else 0:.0%} of it not finite."
        )
    replicas, walkers = start.shape[:2]
    dimension = math.prod(shape)
    together = set_size(replicas, walkers, dimension)
    mesh = mesh_for(replicas // together, 1, devices)
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    sites = on_cpu and problem.moves_on_sites
    kernel = kernel if kernel is not None else LONG_ON_SITES if sites else LONG
    tiles = walkers // largest_tile(walkers, dimension)
    plan = Plan(walkers, DRAWS * walkers, kernel, 0, together if on_cpu else None, ParticleSharding(1, tiles))
    with contained(mesh):
        program, argument = programs(plan, mesh), problem.as_argument()
        argument = argument.without_basis() if sites else argument
        common, key = keys_of(jax.random.key(seed, impl=GENERATOR), replicas)
        state = program.begin(argument, weight, key, common, start)
        if before is not None:
            warm_up = 0
            # Where the program has its own: arrays that lie elsewhere would ask for another one to be compiled.
            tuned = {name: jax.device_put(before[name].values, getattr(state, name).sharding) for name in TUNED}
            state = state._replace(**tuned)
        for _ in range(math.ceil(warm_up / SWEEPS)):
            state, *_ = program.walk(argument, weight, state, np.bool_(kernel.step_size is None))
        blocks = []
        for _ in range(math.ceil(sweeps / SWEEPS)):
            state, *found = program.walk(argument, weight, state, np.bool_(False))
            blocks.append(to_host(found))
        step_size, scale = to_host((state.step_size, state.scale))
        last = to_host(configurations(argument, state.point.position))
    seen = jax.tree.map(lambda *parts: np.concatenate(parts), *(seen for seen, _ in blocks))
    prior_energy = np.concatenate([energy for _, energy in blocks], axis=1)
    dims = ("replica", "sweep", "walker")
    values = {"energy": seen.energy, **seen.observables}
    walk = xr.Dataset({name: (dims, np.moveaxis(value, 0, 1)) for name, value in values.items()})
    walk["last"] = (("replica", "walker", *problem.dims), last, {"long_name": "configuration after the last sweep"})
    walk["log_w"] = (dims, weight.log(walk["energy"].values), {"long_name": "log of the weight the walkers have"})
    # A draw without a finite energy is one that walkers never meet.
    prior_log_w = np.where(np.isfinite(prior_energy), weight.log(np.nan_to_num(prior_energy)), -np.inf)
    walk["prior_log_w"] = (("replica", "draw"), prior_log_w, {"long_name": "that weight at exact draws from the prior"})
    walk["acceptance"] = ("replica", seen.acceptance.mean(axis=0), {"long_name": "mean acceptance"})
    walk["step_size"] = ("replica", step_size, {"long_name": "step size"})
    walk["scale"] = (("replica", "coordinate"), scale, {"long_name": "scale of each sampled coordinate"})
    all_sweeps = SWEEPS * (math.ceil(sweeps / SWEEPS) + math.ceil(warm_up / SWEEPS))
    return walk.assign_attrs(
        problem=problem.name,
        gradients=float(all_sweeps * TRANSITIONS * kernel.gradients() * replicas * walkers),
        seed=int(seed),
        undefined=float(seen.undefined.mean()),
        wall_time=time.monotonic() - begun,
    )


def _ascending(energy: Any, log_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    points = np.asarray(energy, float), np.asarray(log_weight, float)
    sound = points[0].ndim == 1 and points[0].shape == points[1].shape and len(points[0]) >= 4
    if not sound or not np.isfinite(points).all() or not (np.diff(points[0]) > 0).all():
        raise ValueError(
            "The weight must be given at four or more ascending energies, all numbers finite; arrays of the shapes "
            f"{points[0].shape} and {points[1].shape} were given."
        )
    return points
