"""What is done to the particles of a level, tile by tile: every transition of the kernel, the symmetries, the measuring.

A tile stays in the cache of a core through all of it.  Its shape does not depend on the devices, and the loop over tiles
has no length that a compiler knows, so that the same machine code runs on the same numbers however a run is spread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.kernels import Kernel
from quenchphys.parallel.loops import each
from quenchphys.parallel.random_numbers import Stream, fold, split
from quenchphys.parallel.sharding import Spread
from quenchphys.problem import ProblemView
from quenchphys.smc.density import Density, Point, configurations, positions
from quenchphys.smc.levels import Family
from quenchphys.tuning.scale import directions

Array = jax.Array


class Level(NamedTuple):
    """What the particles of a replica are moved with: (replica, ...)."""

    key: Array
    parameter: Array
    step_size: Array
    scale: Array


class Moved(NamedTuple):
    """Particles after a level's mutation, and what they say, one number for each but for `direction`."""

    point: Point
    acceptance: Array
    undefined: Array
    jump: Array  # mean square move of a coordinate, in units of its scale
    norm: Array  # of the score
    direction: Array  # (tile, D): sum of w s_j^2/|s|^2 over the particles of a tile
    weight: Array  # (tile,): sum of w, over particles whose score is finite
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


def tile_work(
    problem: ProblemView,
    kernel: Kernel,
    family: Family,
    level: Level,
    common: Array,
    transitions: Array,
    first: Any,
    point: Point,
    log_weight: Array,
) -> Moved:
    """Move the particles (replica, particle, ...) from number `first` on so many times, and measure them.

    `common` is the key of what all replicas share.
    """
    before = point.position
    move_key, reflect_key = jax.vmap(split, out_axes=1)(level.key)

    def one_replica(key, point, level, shared):
        density = Density(problem, family, level.parameter)
        return kernel.transition(Stream(key, first), shared, point, density, level.step_size, level.scale)

    def step(number, carry):
        point, acceptance, undefined = carry
        key = jax.vmap(fold, in_axes=(0, None))(move_key, number)
        point, move = jax.vmap(one_replica, in_axes=(0, 0, 0, None))(key, point, level, fold(common, number))
        return point, acceptance + move.acceptance, undefined + move.undefined

    def measure(key, before, point, log_weight, level):
        jump = (point.position - before) / level.scale
        point = reflect(problem, Stream(key, first), point)
        score = Density(problem, family, level.parameter).score(point)
        norm, direction, weight = directions(score, jnp.exp(log_weight))
        return (
            point,
            jnp.mean(jump * jump, axis=-1),
            norm,
            direction[None],
            weight[None],
            observe(problem, point.position),
        )

    none = jnp.zeros_like(log_weight)
    point, acceptance, undefined = jax.lax.fori_loop(0, transitions, step, (point, none, none))
    point, *said = jax.vmap(measure)(reflect_key, before, point, log_weight, level)
    return Moved(point, acceptance / transitions, undefined / transitions, *said)


def move(
    problem: ProblemView,
    kernel: Kernel,
    family: Family,
    spread: Spread,
    abreast: int | None,
    level: Level,
    common: Array,
    transitions: Array,
    point: Point,
    log_weight: Array,
) -> Moved:
    """`tile_work` on every tile of the particles (replica, particle, ...) here, `abreast` replicas at a time.

    With `abreast` None all particles of the device are one tile.
    """
    replicas, particles = log_weight.shape
    origin = spread.first(particles)
    if abreast is None:
        return tile_work(problem, kernel, family, level, common, transitions, origin, point, log_weight)
    tiles, sets = spread.tiles // spread.slices, replicas // abreast
    tile = particles // tiles

    def cut(a):  # (replica, particle, ...) -> (set and tile, replica, particle, ...)
        a = a.reshape(sets, abreast, tiles, tile, *a.shape[2:])
        return jnp.moveaxis(a, 2, 1).reshape(sets * tiles, abreast, tile, *a.shape[4:])

    def join(a):
        a = jnp.moveaxis(a.reshape(sets, tiles, abreast, *a.shape[2:]), 1, 2)
        return a.reshape(replicas, tiles * a.shape[3], *a.shape[4:])

    def one_tile(item):
        number, point, log_weight = item
        own = jax.tree.map(lambda a: a.reshape(sets, abreast, *a.shape[1:])[number // tiles], level)
        start = origin + number % tiles * tile
        return tile_work(problem, kernel, family, own, common, transitions, start, point, log_weight)

    return jax.tree.map(join, each(one_tile, (jnp.arange(sets * tiles), *jax.tree.map(cut, (point, log_weight)))))
