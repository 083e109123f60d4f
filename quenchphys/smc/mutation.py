"""Mutation of the particles at a level, tile by tile: transitions of the kernel, symmetry moves, measurement.

A tile stays in the cache of a core through all of it.  Its shape does not depend on the number of devices, and the loop
over tiles has no length that the compiler knows, so the same machine code runs on the same numbers on any devices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.parallel.loops import map_rows
from quenchphys.parallel.random_numbers import Stream, fold, split
from quenchphys.problem import ProblemView
from quenchphys.smc.density import Density, Point, configurations, positions
from quenchphys.smc.plan import Work
from quenchphys.tuning.scale import ScoreStatistics, score_statistics

Array = jax.Array


class Level(NamedTuple):
    """What the particles of a replica are moved with: (replica, ...)."""

    key: Array
    parameter: Array
    step_size: Array
    scale: Array


class Effort(NamedTuple):
    """What all replicas share, so that they run in step."""

    key: Array  # for common choices, such as the length of a trajectory
    transitions: Array  # of every particle


class Particles(NamedTuple):
    """Weighted particles: (replica, particle, ...)."""

    point: Point
    log_weight: Array


class Measured(NamedTuple):
    """What is measured on the particles after the last transition."""

    point: Point
    jump: Array  # mean square move of a coordinate, in units of its scale
    scores: ScoreStatistics
    observables: dict[str, Array]


class Moved(NamedTuple):
    """Particles after the mutation at a level, with one number each, but for the sums over a tile in `scores`."""

    point: Point
    acceptance: Array
    undefined: Array
    jump: Array  # mean square move of a coordinate, in units of its scale
    scores: ScoreStatistics  # norm (particle,), direction (tile, D), weight (tile,)
    observables: dict[str, Array]


def observe(problem: ProblemView, y: Array) -> dict[str, Array]:
    """Observables of positions (..., D)."""
    lead = y.shape[:-1]
    seen = jax.vmap(problem.observe)(configurations(problem, y.reshape(-1, y.shape[-1])))
    return {name: value.reshape(lead).astype(jnp.float32) for name, value in seen.items()}


def reflect(problem: ProblemView, stream: Stream, point: Point) -> Point:
    """Apply each symmetry of the problem to a random half of the particles: an exact move, without evaluation.

    For an isometry S that keeps U, grad U(Sx) = J grad U(x), J the Jacobian of S.
    """
    for number, symmetry in enumerate(problem.symmetries):

        def turn(y, *tangents, symmetry=symmetry):
            def in_modes(y):
                return positions(problem, symmetry(configurations(problem, y)))

            position, push = jax.linearize(in_modes, y)
            return position, *(push(tangent) for tangent in tangents)

        turned = jax.vmap(turn)(point.position, point.energy_grad, point.log_prior_grad)
        own = stream._replace(key=fold(stream.key, number))
        chosen = (own.uniform(point.energy.shape) < 0.5)[:, None]
        kept = (point.position, point.energy_grad, point.log_prior_grad)
        position, energy_grad, log_prior_grad = (jnp.where(chosen, a, b) for a, b in zip(turned, kept, strict=True))
        point = point._replace(position=position, energy_grad=energy_grad, log_prior_grad=log_prior_grad)
    return point


def move_tile(work: Work, level: Level, effort: Effort, first: Any, particles: Particles) -> Moved:
    """Move the particles of a tile and measure them; `first` is the number of the first one in its population."""
    problem, kernel, family = work.problem, work.plan.kernel, work.family
    point, log_weight = particles
    before = point.position
    move_key, reflect_key = jax.vmap(split, out_axes=1)(level.key)

    def one_replica(key, point, level, shared):
        density = Density(problem, family, level.parameter)
        return kernel.transition(Stream(key, first), shared, point, density, level.step_size, level.scale)

    def step(number, carry):
        point, acceptance, undefined = carry
        key = jax.vmap(fold, in_axes=(0, None))(move_key, number)
        point, move = jax.vmap(one_replica, in_axes=(0, 0, 0, None))(key, point, level, fold(effort.key, number))
        return point, acceptance + move.acceptance, undefined + move.undefined

    def measure(key, before, point, log_weight, level):
        jump = (point.position - before) / level.scale
        point = reflect(problem, Stream(key, first), point)
        scores = score_statistics(Density(problem, family, level.parameter).score(point), jnp.exp(log_weight))
        return Measured(
            point,
            jnp.mean(jump * jump, axis=-1),
            scores._replace(direction=scores.direction[None], weight=scores.weight[None]),
            observe(problem, point.position),
        )

    none = jnp.zeros_like(log_weight)
    point, acceptance, undefined = jax.lax.fori_loop(0, effort.transitions, step, (point, none, none))
    measured = jax.vmap(measure)(reflect_key, before, point, log_weight, level)
    return Moved(
        acceptance=acceptance / effort.transitions, undefined=undefined / effort.transitions, **measured._asdict()
    )


def move(work: Work, level: Level, effort: Effort, particles: Particles) -> Moved:
    """`move_tile` on every tile of the particles on this device.

    `replicas_together` replicas of the plan are moved in one operation; if it is None, all particles of the device are one
    tile.
    """
    together, sharding = work.plan.replicas_together, work.plan.sharding
    replicas, count = particles.log_weight.shape
    origin = sharding.first(count)
    if together is None:
        return move_tile(work, level, effort, origin, particles)
    tiles, sets = sharding.tiles // sharding.slices, replicas // together
    tile = count // tiles

    def cut(a):  # (replica, particle, ...) -> (set and tile, replica, particle, ...)
        a = a.reshape(sets, together, tiles, tile, *a.shape[2:])
        return jnp.moveaxis(a, 2, 1).reshape(sets * tiles, together, tile, *a.shape[4:])

    def join(a):
        a = jnp.moveaxis(a.reshape(sets, tiles, together, *a.shape[2:]), 1, 2)
        return a.reshape(replicas, tiles * a.shape[3], *a.shape[4:])

    def one_tile(item):
        number, own_particles = item
        own_level = jax.tree.map(lambda a: a.reshape(sets, together, *a.shape[1:])[number // tiles], level)
        return move_tile(work, own_level, effort, origin + number % tiles * tile, own_particles)

    return jax.tree.map(join, map_rows(one_tile, (jnp.arange(sets * tiles), jax.tree.map(cut, particles))))
