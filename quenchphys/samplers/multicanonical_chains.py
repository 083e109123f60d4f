"""Multicanonical chains with a fixed weight in U.

A ladder passes every energy once, and residual autocorrelation of its particles biases the volumes.  Chains of density

    rho(x) = pi(x) w(U(x))

travel through all energies at which w g is about constant, g the density of states, as often as time allows; a ladder
knows such a w (`observables.flat_weight`).  Whatever w is, their samples have the exact weights exp(-beta U)/w(U) for any
target: a poor w costs time, never a bias.  Berg and Neuhaus 1992.

Groups of chains have nothing in common but w.  Within a group, chains share the step size and the scale, which are tuned
in the burn-in and fixed before anything is recorded.
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

from quenchphys.consistency import check, check_program
from quenchphys.console.interruption import Interrupted, interruptible_alone
from quenchphys.console.progress import Meter, shown
from quenchphys.console.progress import meter as progress_meter
from quenchphys.kernels import HMC, Kernel, MinimumNorm
from quenchphys.labels import check_labels
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.loops import map_rows
from quenchphys.parallel.processes import any_of, to_host
from quenchphys.parallel.random_numbers import key_of, keys_of
from quenchphys.parallel.sharding import ParticleSharding, largest_tile, set_size
from quenchphys.problem import Problem, ProblemView, view
from quenchphys.settings import check_kernel, check_seed, check_whole
from quenchphys.smc.density import Density, Point, configurations, evaluate, positions
from quenchphys.smc.loop import contained
from quenchphys.smc.mutation import Effort, Level, Particles, move
from quenchphys.smc.plan import Plan, Work
from quenchphys.smc.step import read_scale
from quenchphys.storage.attributes import kernel_as_json, problem_attributes, software_attributes
from quenchphys.tuning.scale import ScoreStatistics, track
from quenchphys.walk import OWN_VARIABLES, Walk

Array = jax.Array

SWEEPS = 16  # in one device call
TRANSITIONS = 4  # of the kernel in one sweep, after which chains are measured
DRAWS = 8  # exact draws from the prior, per chain and device call
TABLE = 1024  # intervals of the weight
FORMAT = "quenchphys walk 1"
# Long trajectories, in which domain walls move: chosen by the number of gradients that phi^6 at L = 40 takes to cross.
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

    # The family of densities that `Density` needs; here there is one level only, so its parameter is not used.

    def slope(self, energy: Array, parameter: Array) -> Array:
        return self._at(energy, jnp)[1]

    def log_change(self, energy: Array, proposed: Array, parameter: Array) -> Array:
        return self._at(proposed, jnp)[0] - self._at(energy, jnp)[0]


class Chains(NamedTuple):
    """State of all chains: arrays (group, chain, ...) and (group, ...)."""

    key: Array
    common: Array
    point: Point
    step_size: Array
    anisotropy: Array
    scale: Array


class Seen(NamedTuple):
    """What is recorded of a sweep: (group, chain) and (group,)."""

    energy: Array
    observables: dict[str, Array]
    acceptance: Array
    undefined: Array


def sweep(problem: ProblemView, plan: Plan, weight: Any, chains: Chains, tune: Array) -> tuple[Chains, Seen]:
    """Move every chain, measure it, and tune the kernel where `tune` is set."""
    level = Level(chains.key, jnp.zeros_like(chains.step_size), chains.step_size, chains.scale)
    alike = jnp.full(chains.point.energy.shape, -math.log(plan.particles), jnp.float32)
    effort = Effort(chains.common, jnp.int32(TRANSITIONS))
    moved = move(Work(problem, plan, weight), level, effort, Particles(chains.point, alike))
    anisotropy, scale = read_scale(problem, plan, moved.scores, chains.anisotropy)
    acceptance = jnp.mean(moved.acceptance, axis=-1)
    step_size = track(chains.step_size, acceptance, plan.kernel.target_acceptance)

    def tuned(new: Array, old: Array) -> Array:
        return jnp.where(tune, new, old)

    onward = Chains(
        key=jax.vmap(lambda key: jax.random.fold_in(key, 1))(chains.key),
        common=jax.random.fold_in(chains.common, 1),
        point=moved.point,
        step_size=tuned(step_size, chains.step_size),
        anisotropy=tuned(anisotropy, chains.anisotropy),
        scale=tuned(scale, chains.scale),
    )
    return onward, Seen(moved.point.energy, moved.observables, acceptance, jnp.mean(moved.undefined, axis=-1))


def prior_energies(problem: ProblemView, draws: int, key: Array) -> Array:
    """Energies of exact draws from the prior, (group, draw)."""

    def drawn(key: Array) -> Array:
        return evaluate(problem, positions(problem, problem.sample_prior(key, draws))).energy

    return map_rows(drawn, jax.vmap(lambda key: jax.random.fold_in(key, 2))(key))


class Programs:
    """Compiled once for the shapes; weight, seed and couplings are arguments."""

    def __init__(self, plan: Plan, mesh: Mesh):
        own, all_of_it, later = PartitionSpec("replica"), PartitionSpec(), PartitionSpec(None, "replica")
        parts: Any = Chains(*(all_of_it if name == "common" else own for name in Chains._fields))  # type: ignore[arg-type]
        seen: Any = Seen(*(later for _ in Seen._fields))  # type: ignore[arg-type]

        def spread(function: Any, ins: tuple, outs: Any) -> Any:
            return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False))

        def begin(problem: ProblemView, weight: Any, key: Array, common: Array, configuration: Array) -> Chains:
            point = evaluate(problem, positions(problem, configuration))
            score = Density(problem, weight, jnp.zeros(())).score(point)
            square = score * score
            size = jnp.sum(square, axis=-1)
            direction = square / jnp.maximum(size, 1e-30)[..., None]
            read = read_scale(problem, plan, ScoreStatistics(jnp.sqrt(size), direction, jnp.ones_like(size)))
            first = plan.kernel.step_size or plan.kernel.first_step_size(point.position.shape[-1])
            return Chains(key, common, point, jnp.full(key.shape, first, jnp.float32), *read)

        def walk(problem: ProblemView, weight: Any, chains: Chains, tune: Array) -> tuple[Chains, Seen, Array]:
            onward, found = jax.lax.scan(
                lambda c, _: sweep(problem, plan, weight, c, tune), chains, None, length=SWEEPS
            )
            return onward, found, prior_energies(problem, plan.draws, chains.key)

        self.begin = spread(begin, (all_of_it, all_of_it, own, all_of_it, own), parts)
        self.walk = spread(walk, (all_of_it, all_of_it, parts, all_of_it), (parts, seen, own))


@cache
def programs(plan: Plan, mesh: Mesh) -> Programs:
    keep_compiled_programs()
    return Programs(plan, mesh)


def multicanonical(
    problem: Problem,
    start: np.ndarray | Walk,
    energy: Sequence[float] | np.ndarray,
    log_weight: Sequence[float] | np.ndarray,
    *,
    sweeps: int,
    warm_up: int = 64,
    kernel: Kernel | None = None,
    seed: int = 0,
    progress: bool | Meter | None = None,
    devices: int | Sequence[Any] | None = None,
) -> Walk:
    """Run chains of the density pi(x) w(U(x)) from given configurations.

    Parameters
    ----------
    problem
        As in `quench`.
    start
        Configurations (group, chain, ...), best those of a ladder, spread over all energies between which w is given.  Or
        a `Walk` to continue: its chains keep their step size and scale, and there is no burn-in.
    energy, log_weight
        Ascending energies and log w there; beyond both ends log w continues in a straight line.
    sweeps, warm_up
        Sweeps that are recorded, and sweeps of burn-in before them, in which the kernel is tuned.  A sweep is four
        transitions of every chain; both numbers are rounded up to a multiple of 16.
    kernel
        Default: long trajectories, in which walls between phases move.
    seed, progress, devices
        As in `quench`; groups are shared out among devices.

    Returns
    -------
    Walk
        Energy, every observable and log w of every sample, with dims group, sweep, chain; log w at exact draws from the
        prior, from which `observables.Pool` gets Z in absolute terms; the last configurations; the acceptance, step size
        and scale of each group.

    Examples
    --------
    >>> ladder = qp.quench(model)
    >>> energy, log_weight = observables.flat_weight(ladder, low=-20.0, high=40.0)
    >>> start = np.asarray(model.sample_prior(jax.random.key(0), 16 * 8)).reshape(16, 8, *model.shape)
    >>> walk = qp.multicanonical(model, start, energy, log_weight, sweeps=320)
    >>> walk = qp.multicanonical(model, walk, *observables.flattened(walk), sweeps=1600, seed=1)
    >>> observables.phase_weights(walk)
    """
    check_not_forked()
    if kernel is not None:
        check_kernel(kernel)
    sweeps, warm_up, seed = check_whole("sweeps", sweeps, 1), check_whole("warm_up", warm_up, 0), check_seed(seed)
    nodes = _ascending(energy, log_weight)
    weight = Weight.through(*nodes)
    begun = time.monotonic()
    check(problem)
    with own_settings():
        model = view(problem)
        check_labels(model, OWN_VARIABLES - {"energy", "<observable>"})
        shape = model.shape
    before = start if isinstance(start, Walk) else None
    first = checked_start(start.last if isinstance(start, Walk) else start, shape)
    groups, chains = first.shape[:2]
    dimension = math.prod(shape)
    together = set_size(groups, chains, dimension)
    mesh = mesh_for(groups // together, 1, devices)
    on_cpu = mesh.devices.flat[0].platform == "cpu"
    sites = on_cpu and model.moves_on_sites
    kernel = kernel if kernel is not None else LONG_ON_SITES if sites else LONG
    plan = Plan(
        particles=chains,
        draws=DRAWS * chains,
        kernel=kernel,
        kept=0,
        replicas_together=together if on_cpu else None,
        sharding=ParticleSharding(1, chains // largest_tile(chains, dimension)),
    )
    recorded, discarded = math.ceil(sweeps / SWEEPS), 0 if before else math.ceil(warm_up / SWEEPS)  # device calls
    meter = progress_meter("multicanonical", progress)
    with contained(mesh), interruptible_alone() as request, shown(meter):
        program, argument = programs(plan, mesh), model.as_argument()
        argument = argument.without_basis() if sites else argument
        common, key = keys_of(key_of(seed), groups)
        state = program.begin(argument, weight, key, common, first)
        check_program(model, first[0], {"energy": to_host(state.point.energy)[0]})
        if before is not None:
            # Put where the program has its own: arrays that lie elsewhere would compile another program.
            state = state._replace(
                step_size=jax.device_put(before.data["step_size"].values, state.step_size.sharding),
                scale=jax.device_put(before.data["scale"].values, state.scale.sharding),
            )
        blocks: list[Any] = []
        for call in range(discarded + recorded):
            tune = np.bool_(call < discarded and kernel.step_size is None)
            state, *found = program.walk(argument, weight, state, tune)
            seen = to_host(found)  # also in the burn-in: a request to stop is noticed only when the device is done
            if call >= discarded:
                blocks.append(seen)
                show(meter, blocks, recorded)
            if any_of(bool(request)):
                raise Interrupted(f"Interrupted after {SWEEPS * len(blocks)} sweeps; nothing is kept of an unfinished walk.")
        step_size, scale = to_host((state.step_size, state.scale))
        last = to_host(configurations(argument, state.point.position))
    seen = jax.tree.map(lambda *parts: np.concatenate(parts), *(seen for seen, _ in blocks))
    prior_energy = np.concatenate([energy for _, energy in blocks], axis=1)
    settings = {
        "groups": groups,
        "chains": chains,
        "sweeps": SWEEPS * recorded,
        "warm_up": SWEEPS * discarded,
        "transitions": TRANSITIONS,
        "kernel": kernel_as_json(kernel),
    }
    data = _samples(seen, prior_energy, weight).assign(
        last=(("group", "chain", *model.dims), last, {"long_name": "configuration after the last sweep"}),
        step_size=("group", step_size, {"long_name": "step size of the kernel, in units of the scale of a coordinate"}),
        scale=(("group", "coordinate"), scale, {"long_name": "scale of each sampled coordinate"}),
        weight_energy=("node", nodes[0], {"long_name": "energy at which the weight was given", "units": "nats"}),
        weight_log=("node", nodes[1], {"long_name": "log of the weight there"}),
    )
    transitions = SWEEPS * (recorded + discarded) * TRANSITIONS
    return Walk(
        data.assign_attrs(
            {
                "format": FORMAT,
                "method": "multicanonical",
                **problem_attributes(model),
                "settings": json.dumps(settings),
                "seed": seed,
                "gradients": float(transitions * kernel.gradients() * groups * chains),
                "undefined": float(seen.undefined.mean()),
                "wall_time": time.monotonic() - begun,
                **software_attributes(),
            }
        )
    )


def show(meter: Meter, blocks: list[Any], all_of_them: int) -> None:
    """Progress after a block of sweeps, as averages over all chains."""
    seen = blocks[-1][0]
    left = SWEEPS * (all_of_them - len(blocks))
    meter.update(SWEEPS * len(blocks), float(seen.energy[-1].mean()), float(seen.acceptance.mean()), math.nan, left)


def _samples(seen: Seen, prior_energy: np.ndarray, weight: Weight) -> xr.Dataset:
    """What the chains recorded, and log w at the samples and at the prior draws."""
    dims = ("group", "sweep", "chain")
    values = {"energy": seen.energy, **seen.observables}
    found = xr.Dataset({name: (dims, np.moveaxis(np.asarray(value), 0, 1)) for name, value in values.items()})
    found["energy"].attrs = {"long_name": "energy of the sample, U", "units": "nats"}
    found["log_w"] = (dims, weight.log(found["energy"].values), {"long_name": "log of the weight w at the sample"})
    # A draw without a finite energy is one that no chain ever meets.
    prior_log_w = np.where(np.isfinite(prior_energy), weight.log(np.nan_to_num(prior_energy)), -np.inf)
    found["prior_log_w"] = (("group", "draw"), prior_log_w, {"long_name": "log of the weight w at exact prior draws"})
    found["acceptance"] = ("group", seen.acceptance.mean(axis=0), {"long_name": "mean acceptance probability"})
    return found


def checked_start(start: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    start = np.asarray(start, np.float32)
    if start.ndim != 2 + len(shape) or start.shape[2:] != shape or 0 in start.shape or not np.isfinite(start).all():
        raise ValueError(
            f"start must be finite configurations of the shape (group, chain, {', '.join(map(str, shape))}); an array of "
            f"the shape {start.shape} was given, {np.mean(~np.isfinite(start)) if start.size else 0:.0%} of it not finite."
        )
    return start


def _ascending(energy: Any, log_weight: Any) -> tuple[np.ndarray, np.ndarray]:
    points = np.asarray(energy, float), np.asarray(log_weight, float)
    sound = points[0].ndim == 1 and points[0].shape == points[1].shape and len(points[0]) >= 4
    if not sound or not np.isfinite(points).all() or not (np.diff(points[0]) > 0).all():
        raise ValueError(
            "The weight must be given at four or more ascending energies, all numbers finite; arrays of the shapes "
            f"{points[0].shape} and {points[1].shape} were given."
        )
    return points
