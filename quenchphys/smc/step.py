"""One rung of a ladder: dissect, measure, reweight, branch, resample, mutate, record.

Everything here runs on the device, for all replicas at once, and is compiled once for a problem's shape and a `Plan`;
seeds, couplings, softness and thresholds are arguments.  A replica has its own random numbers and never looks at
another, so that replicas can be spread over devices without a word between them; its particles can be spread as well
(see `spreading`).  What needs the numbers of all particles is decided replica by replica, here; what is done to the
particles themselves is in `moving`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.kernels import Kernel
from quenchphys.parallel.loops import each
from quenchphys.parallel.random_numbers import split
from quenchphys.parallel.sharding import Spread
from quenchphys.problem import ProblemView
from quenchphys.smc.density import Density, Point, configurations, evaluate, positions, prior_scale
from quenchphys.smc.levels import Family
from quenchphys.smc.mutation import Level, Moved, move, observe
from quenchphys.smc.population import (
    branch,
    choice_bias,
    correlation,
    effective_size,
    kept_share,
    lineage_effective_size,
    normalise,
    resample,
)
from quenchphys.tuning.dual_averaging import Search
from quenchphys.tuning.scale import MEMORY, combine_scale, directions, track

Array = jax.Array

TOLERANCE = 1e-3  # of the share that a level was chosen to keep


@dataclass(frozen=True)
class Plan:
    """What the compiled program depends on."""

    particles: int
    draws: int  # prior draws of each replica
    kernel: Kernel
    kept: int  # configurations kept of each level
    abreast: int | None  # replicas moved together, tile by tile; None: all particles of a device at once
    spread: Spread


class Rates(NamedTuple):
    """Thresholds a run may change without compiling again."""

    target_ess: Any
    resample_ess: Any


class Orders(NamedTuple):
    """What is wanted of the rungs of a block: (rung,)."""

    parameter: Any  # the level to go to; NaN: one chosen by effective size
    transitions: Any  # of every particle
    rehearse: Any  # stay at the level and only tune the kernel: the warm-up


class State(NamedTuple):
    """The population of every replica: arrays (replica, particle, ...) and (replica, ...).

    Of particles that are spread over devices each has its share of `point` and `seen`, and all have everything else.
    """

    key: Array  # one for each replica
    common: Array  # one for all: what replicas must share to run in step, such as the length of a trajectory
    point: Point
    seen: dict[str, Array]  # observables
    log_weight: Array
    lineage: Array  # since the last resampling
    ancestor: Array  # at level 0
    parameter: Array
    step_size: Array
    anisotropy: Array
    scale: Array
    tuner: Search  # of the step size, in the warm-up
    level: Array


class Rung(NamedTuple):
    """What is recorded of one level: (replica, ...) and (replica, particle, ...)."""

    parameter: Array
    log_ratio: Array  # log of the measured volume ratio to the level before
    acceptance: Array
    step_size: Array
    displacement: Array  # root mean square move of a coordinate in this level, in units of its scale
    ess: Array
    lineages: Array
    resampled: Array
    undefined: Array
    transitions: Array
    correlation: Array  # (replica, quantity): of U and every observable, before and after the mutation
    energy: Array
    log_weight: Array
    parent: Array
    observables: dict[str, Array]
    kept: Array  # which particles
    configurations: Array


def draw_prior(problem: ProblemView, plan: Plan, key: Array) -> tuple[Array, Point, dict[str, Array]]:
    """Exact prior draws (replica, draw, D) with energies; an undefined energy is flagged and counts as infinite."""
    tiles = plan.spread.tiles

    def one_tile(key):
        y = positions(problem, problem.sample_prior(key, plan.draws // tiles))
        return evaluate(problem, y), observe(problem, y)

    # One tile after the other: the draws are ten times the population, and needed only once.
    keys = jax.vmap(lambda key: plan.spread.here(split(key, tiles)))(key)
    drawn = each(one_tile, keys.reshape(-1))
    point, seen = jax.tree.map(lambda a: a.reshape(key.shape[0], -1, *a.shape[2:]), drawn)
    undefined = jnp.isnan(point.energy)
    return undefined, point._replace(energy=jnp.where(undefined, jnp.inf, point.energy)), seen


def start(
    problem: ProblemView,
    plan: Plan,
    family: Family,
    key: Array,
    common: Array,
    draws: Point,
    seen: dict[str, Array],
    first: Array,
) -> tuple[State, Array, Array]:
    """The first level from the prior draws: G_0 their mean weight, N of them resampled.

    E_0 is `first`, or if that is NaN, chosen by effective size.
    Returns the state, log G_0 and the draw every particle came from.
    """
    n, dimension, spread = plan.particles, draws.position.shape[-1], plan.spread

    def choose(item):
        key, energy = item
        key, choice_key = split(key)
        parameter = jnp.where(jnp.isnan(first), family.first(energy, float(n)), first)
        log_weight, total = normalise(family.log_factor(energy, parameter))
        return key, parameter, log_weight, total - jnp.log(float(plan.draws)), resample(choice_key, log_weight, n)

    def one_tile(item):
        parameter, log_weight, point = item
        return directions(Density(problem, family, parameter).score(point), jnp.exp(log_weight))

    whole = jax.vmap(spread.whole)
    key, parameter, log_weight, log_volume, parent = each(choose, (key, whole(draws.energy)))
    replicas, local = parameter.shape[0], spread.tiles // spread.slices
    items = jax.tree.map(
        lambda a: a.reshape(replicas * local, -1, *a.shape[2:]), (jax.vmap(spread.here)(log_weight), draws)
    )
    norm, direction, weight = each(one_tile, (jnp.repeat(parameter, local), *items))
    anisotropy, scale = read_scale(
        problem,
        plan,
        norm.reshape(replicas, -1),
        direction.reshape(replicas, local, -1),
        weight.reshape(replicas, local),
    )
    if plan.kernel.step_size is not None:
        scale = jnp.broadcast_to(prior_scale(problem, dimension), scale.shape)
    itself = jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32), (replicas, n))
    step_size = jnp.full(replicas, plan.kernel.step_size or plan.kernel.first_step_size(dimension), jnp.float32)
    point, seen = jax.vmap(spread.copy)((draws, seen), parent)
    state = State(
        key,
        common,
        point,
        seen,
        log_weight=jnp.full((replicas, n), -jnp.log(float(n)), jnp.float32),
        lineage=itself,
        ancestor=itself,
        parameter=parameter,
        step_size=step_size,
        anisotropy=anisotropy,
        scale=scale,
        tuner=each(Search.around, step_size),
        level=jnp.zeros((), jnp.int32),
    )
    return state, log_volume, parent


def read_scale(
    problem: ProblemView, plan: Plan, norm: Array, direction: Array, weight: Array, before: Array | None = None
) -> tuple[Array, Array]:
    """Anisotropy, averaged with the one `before`, and scale (replica, D) from what the tiles say of their scores."""
    precision = prior_scale(problem, direction.shape[-1]) ** -2

    def one_replica(item):
        norm, direction, weight, *before = item
        anisotropy = jnp.sum(direction, axis=0) / jnp.maximum(jnp.sum(weight), 1e-30)
        for memory in before:
            anisotropy = (1 - MEMORY) * memory + MEMORY * anisotropy
        return anisotropy, combine_scale(anisotropy, jnp.nanmedian(norm), precision)

    said = jax.tree.map(jax.vmap(plan.spread.whole), (norm, direction, weight))
    return each(one_replica, said if before is None else (*said, before))


def mutate(problem: ProblemView, plan: Plan, family: Family, state: State, transitions: Array) -> Moved:
    """Apply the kernel `transitions` times to every particle, and measure."""
    level = Level(state.key, state.parameter, state.step_size, state.scale)
    log_weight = jax.vmap(plan.spread.here)(state.log_weight)
    work = (problem, plan.kernel, family, plan.spread, plan.abreast, level, state.common, transitions)
    return move(*work, state.point, log_weight)


def retune(problem: ProblemView, plan: Plan, state: State, moved: Moved) -> State:
    """The scale for the next level from the scores at this one."""
    read = read_scale(problem, plan, moved.norm, moved.direction, moved.weight, state.anisotropy)
    return state._replace(anisotropy=read[0], scale=read[1])


def fresh(state: State) -> State:
    """The same state with new keys."""
    return state._replace(key=jax.vmap(_renewed)(state.key), common=_renewed(state.common))


def _renewed(key: Array) -> Array:
    return split(key, 1)[0]


def settle(
    problem: ProblemView, plan: Plan, family: Family, state: State, order: Orders, log_ratio, parent, resampled
) -> tuple[State, Rung]:
    """Mutate the population at its level, record it, and tune the kernel for the next."""
    moved = mutate(problem, plan, family, state, order.transitions)

    def quantities(point, seen):  # (replica, quantity, particle) of the particles here
        return jnp.stack([point.energy, *(seen[name] for name in sorted(seen))], axis=1)

    def one_replica(item):
        key, said, before, after, log_weight, ancestor, step_size, tuner = item
        key, keep_key = split(key)
        acceptance, undefined, jump = jnp.mean(said, axis=-1)
        learnt = tuner.tell(plan.kernel.target_acceptance - acceptance)
        followed = track(step_size, acceptance, plan.kernel.target_acceptance)
        return (
            key,
            jnp.where(order.rehearse, jnp.exp(learnt.log_x), followed),
            jax.tree.map(lambda new, old: jnp.where(order.rehearse, new, old), learnt, tuner),
            {
                "acceptance": acceptance,
                "undefined": undefined,
                "displacement": jnp.sqrt(jump),
                "correlation": correlation(log_weight, before, after),
                "ess": effective_size(log_weight) / plan.particles,
                "lineages": count_distinct(ancestor),
                "kept": resample(keep_key, log_weight, plan.kept),
            },
        )

    told = (
        jnp.stack([moved.acceptance, moved.undefined, moved.jump], axis=1),
        quantities(state.point, state.seen),
        quantities(moved.point, moved.observables),
    )
    whole = jax.tree.map(jax.vmap(jax.vmap(plan.spread.whole)), told)
    renewed = fresh(state)
    key, next_step, tuner, said = each(
        one_replica, (renewed.key, *whole, state.log_weight, state.ancestor, state.step_size, state.tuner)
    )
    rung = Rung(
        parameter=state.parameter,
        log_ratio=log_ratio,
        step_size=state.step_size,
        resampled=resampled,
        transitions=jnp.broadcast_to(order.transitions, state.step_size.shape),
        energy=moved.point.energy,
        log_weight=state.log_weight,
        parent=parent,
        observables=moved.observables,
        configurations=configurations(problem, jax.vmap(plan.spread.pick)(moved.point.position, said["kept"])),
        **said,
    )
    state = state._replace(
        key=key,
        common=renewed.common,
        point=moved.point,
        seen=moved.observables,
        level=state.level + jnp.where(order.rehearse, 0, 1),
    )
    if plan.kernel.step_size is None:
        state = retune(problem, plan, state, moved)._replace(step_size=next_step, tuner=tuner)
    return state, rung


def count_distinct(label: Array) -> Array:
    return jnp.sum(jax.ops.segment_max(jnp.ones_like(label), label, num_segments=label.shape[0]) > 0)


def step_down(
    problem: ProblemView, plan: Plan, family: Family, rates: Rates, state: State, order: Orders
) -> tuple[State, Rung]:
    """From the population at one level to the recorded population at the next."""
    # The first rung is level 0 itself: nothing to reweight, only to mutate and record.
    stay = order.rehearse | (state.level == 0)

    def one_replica(item):
        key, energy, log_weight, parameter, lineage, ancestor, step_size, tuner = item
        key, branch_key, resample_key = split(key, 3)
        target = jnp.where(
            jnp.isnan(order.parameter), family.next(energy, log_weight, parameter, rates.target_ess), order.parameter
        )
        target = jnp.where(stay, parameter, target)
        before = log_weight
        step, slope = ratio_and_slope(family, energy, parameter, target)
        log_weight, log_ratio = normalise(before + step)
        # Only a level that these very particles chose is biased; one that was ordered, or the last one of all, is not.
        chosen = jnp.isnan(order.parameter) & (jnp.abs(kept_share(before, step) - rates.target_ess) < TOLERANCE)
        log_ratio = log_ratio - jnp.where(chosen & ~stay, choice_bias(before, step, slope, lineage), 0.0)
        parent, log_weight = branch(branch_key, log_weight)
        lineage = lineage[parent]
        poor = lineage_effective_size(log_weight, lineage) < rates.resample_ess * plan.particles
        parent = jnp.where(poor, parent[resample(resample_key, log_weight, plan.particles)], parent)
        lineage = jnp.where(poor, jnp.arange(plan.particles, dtype=jnp.int32), lineage)
        log_weight = jnp.where(poor, -jnp.log(float(plan.particles)), log_weight)
        rehearsed = (state.level == 0) & ~order.rehearse & (tuner.step > 1)
        step_size = jnp.where(rehearsed, tuner.found, step_size)
        return key, log_weight, target, lineage, ancestor[parent], step_size, log_ratio, parent, poor

    energy = jax.vmap(plan.spread.whole)(state.point.energy)
    items = (state.log_weight, state.parameter, state.lineage, state.ancestor, state.step_size, state.tuner)
    key, log_weight, parameter, lineage, ancestor, step_size, log_ratio, parent, resampled = each(
        one_replica, (state.key, energy, *items)
    )
    point, seen = jax.vmap(plan.spread.copy)((state.point, state.seen), parent)
    state = state._replace(
        key=key,
        point=point,
        seen=seen,
        log_weight=log_weight,
        parameter=parameter,
        lineage=lineage,
        ancestor=ancestor,
        step_size=step_size,
    )
    return settle(problem, plan, family, state, order, log_ratio, parent, resampled)


def ratio_and_slope(family: Family, energy: Array, parameter: Array, new: Array) -> tuple[Array, Array]:
    """log of the incremental weights from one level to another, and their derivatives with respect to that other."""
    return jax.jvp(lambda p: family.log_ratio(energy, parameter, p), (new,), (jnp.ones_like(new),))


def descend(
    problem: ProblemView, plan: Plan, family: Family, rates: Rates, state: State, orders: Orders
) -> tuple[State, Rung]:
    """A rung for each of the orders; what is recorded of them is stacked along a leading axis."""
    return jax.lax.scan(lambda state, order: step_down(problem, plan, family, rates, state, order), state, orders)
