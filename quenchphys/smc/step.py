"""One level of a ladder: choose it, measure its volume, reweight, branch, resample, mutate, record.

Everything here runs on the device, for all replicas at once, and is compiled once for a problem's shape and a `Plan`;
seeds, couplings, softness and thresholds are arguments.  Each replica has its own random numbers and never reads another
one, so replicas are distributed over devices without communication; particles of a replica can be distributed as well (see
`quenchphys.parallel.sharding`).  Decisions that need numbers of all particles are made here, replica by replica; particles
themselves are moved in `quenchphys.smc.mutation`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.parallel.loops import map_rows
from quenchphys.parallel.random_numbers import split
from quenchphys.problem import ProblemView
from quenchphys.smc.density import Density, Point, configurations, evaluate, positions, prior_scale
from quenchphys.smc.levels import LARGEST_ENERGY, Family
from quenchphys.smc.mutation import Effort, Level, Moved, Particles, move, observe
from quenchphys.smc.plan import Plan, Work
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
from quenchphys.tuning.dual_averaging import DualAveraging
from quenchphys.tuning.scale import MEMORY, ScoreStatistics, combine_scale, score_statistics, track

Array = jax.Array

TOLERANCE = 1e-3  # of the share that a level was chosen to keep


class Thresholds(NamedTuple):
    """Effective sizes that decide about levels and resampling; another value does not compile again."""

    target_ess: Any
    resample_ess: Any


class LevelOrders(NamedTuple):
    """What to do at each level of a block: (level,)."""

    parameter: Any  # the level to go to; NaN: one chosen by effective size
    transitions: Any  # of every particle
    warm_up: Any  # stay at the level and only tune the kernel


class State(NamedTuple):
    """The population of every replica: arrays (replica, particle, ...) and (replica, ...).

    If particles are distributed over devices, each device has its part of `point` and `seen`, and all of everything else.
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
    tuner: DualAveraging  # of the step size, in the warm-up
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


class First(NamedTuple):
    """The first level of a replica, chosen from its prior draws."""

    key: Array
    parameter: Array
    log_weight: Array  # of the draws
    log_volume: Array
    parent: Array  # the draw each particle is a copy of


class Weighted(NamedTuple):
    """What the next level of a replica is chosen from."""

    key: Array
    energy: Array
    log_weight: Array
    parameter: Array
    lineage: Array
    ancestor: Array
    step_size: Array
    tuner: DualAveraging


class Reweighted(NamedTuple):
    """A replica at its next level, before its particles are copied and moved."""

    key: Array
    log_weight: Array
    parameter: Array
    lineage: Array
    ancestor: Array
    step_size: Array
    log_ratio: Array
    parent: Array
    resampled: Array


class Mutated(NamedTuple):
    """What a replica is tuned and recorded by, after its mutation."""

    key: Array
    rates: Array  # (3, particle): acceptance, undefined proposals, mean square move
    before: Array  # (quantity, particle): U and the observables before the mutation
    after: Array
    log_weight: Array
    ancestor: Array
    step_size: Array
    tuner: DualAveraging


class Tuned(NamedTuple):
    """The step size of a replica for its next level, and what is recorded of this one."""

    key: Array
    step_size: Array
    tuner: DualAveraging
    recorded: dict[str, Array]  # fields of a `Rung`


def draw_prior(problem: ProblemView, plan: Plan, key: Array) -> tuple[Array, Point, dict[str, Array]]:
    """Exact prior draws (replica, draw, D) with energies; NaN is flagged; it counts as infinite, as too large ones do."""
    tiles = plan.sharding.tiles

    def one_tile(key):
        y = positions(problem, problem.sample_prior(key, plan.draws // tiles))
        return evaluate(problem, y), observe(problem, y)

    # One tile after the other: the draws are ten times the population, and needed only once.
    keys = jax.vmap(lambda key: plan.sharding.here(split(key, tiles)))(key)
    drawn = map_rows(one_tile, keys.reshape(-1))
    point, seen = jax.tree.map(lambda a: a.reshape(key.shape[0], -1, *a.shape[2:]), drawn)
    undefined = jnp.isnan(point.energy)
    dead = undefined | (point.energy > LARGEST_ENERGY)
    return undefined, point._replace(energy=jnp.where(dead, jnp.inf, point.energy)), seen


def start(
    work: Work, key: Array, common: Array, draws: Point, seen: dict[str, Array], top: Array
) -> tuple[State, Array, Array]:
    """The first level from the prior draws: G_0 their mean weight, N of them resampled.

    E_0 is `top`, or if that is NaN, chosen by effective size.
    Returns the state, log G_0 and the draw every particle came from.
    """
    problem, plan, family = work
    n, dimension, sharding = plan.particles, draws.position.shape[-1], plan.sharding

    def choose(item):
        key, energy = item
        key, choice_key = split(key)
        parameter = jnp.where(jnp.isnan(top), family.first(energy, float(n)), top)
        log_weight, total = normalise(family.log_factor(energy, parameter))
        log_volume = total - jnp.log(float(plan.draws))
        return First(key, parameter, log_weight, log_volume, resample(choice_key, log_weight, n))

    def one_tile(item):
        parameter, log_weight, point = item
        return score_statistics(Density(problem, family, parameter).score(point), jnp.exp(log_weight))

    first = map_rows(choose, (key, jax.vmap(sharding.whole)(draws.energy)))
    replicas, local = first.parameter.shape[0], sharding.tiles // sharding.slices
    items = jax.tree.map(
        lambda a: a.reshape(replicas * local, -1, *a.shape[2:]), (jax.vmap(sharding.here)(first.log_weight), draws)
    )
    norm, direction, weight = map_rows(one_tile, (jnp.repeat(first.parameter, local), *items))
    scores = ScoreStatistics(
        norm.reshape(replicas, -1), direction.reshape(replicas, local, -1), weight.reshape(replicas, local)
    )
    anisotropy, scale = read_scale(problem, plan, scores)
    if plan.kernel.step_size is not None:
        scale = jnp.broadcast_to(prior_scale(problem, dimension), scale.shape)
    itself = jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32), (replicas, n))
    step_size = jnp.full(replicas, plan.kernel.step_size or plan.kernel.first_step_size(dimension), jnp.float32)
    point, seen = jax.vmap(sharding.copy)((draws, seen), first.parent)
    state = State(
        first.key,
        common,
        point,
        seen,
        log_weight=jnp.full((replicas, n), -jnp.log(float(n)), jnp.float32),
        lineage=itself,
        ancestor=itself,
        parameter=first.parameter,
        step_size=step_size,
        anisotropy=anisotropy,
        scale=scale,
        tuner=map_rows(DualAveraging.around, step_size),
        level=jnp.zeros((), jnp.int32),
    )
    return state, first.log_volume, first.parent


def read_scale(
    problem: ProblemView, plan: Plan, scores: ScoreStatistics, before: Array | None = None
) -> tuple[Array, Array]:
    """Anisotropy and scale (replica, D) from the scores of all tiles; the anisotropy is averaged with the one `before`.

    `scores` has norm (replica, particle), direction (replica, tile, D) and weight (replica, tile).
    """
    precision = prior_scale(problem, scores.direction.shape[-1]) ** -2

    def one_replica(item):
        (norm, direction, weight), *before = item
        anisotropy = jnp.sum(direction, axis=0) / jnp.maximum(jnp.sum(weight), 1e-30)
        for memory in before:
            anisotropy = (1 - MEMORY) * memory + MEMORY * anisotropy
        return anisotropy, combine_scale(anisotropy, jnp.nanmedian(norm), precision)

    scores = jax.tree.map(jax.vmap(plan.sharding.whole), scores)
    return map_rows(one_replica, (scores,) if before is None else (scores, before))


def mutate(work: Work, state: State, transitions: Array) -> Moved:
    """Apply the kernel `transitions` times to every particle, and measure."""
    level = Level(state.key, state.parameter, state.step_size, state.scale)
    log_weight = jax.vmap(work.plan.sharding.here)(state.log_weight)
    return move(work, level, Effort(state.common, transitions), Particles(state.point, log_weight))


def retune(work: Work, state: State, moved: Moved) -> State:
    """The scale for the next level from the scores at this one."""
    anisotropy, scale = read_scale(work.problem, work.plan, moved.scores, state.anisotropy)
    return state._replace(anisotropy=anisotropy, scale=scale)


def with_new_keys(state: State) -> State:
    """The same state with new random keys."""
    return state._replace(key=jax.vmap(_next_key)(state.key), common=_next_key(state.common))


def _next_key(key: Array) -> Array:
    return split(key, 1)[0]


def mutate_and_record(work: Work, state: State, order: LevelOrders, reweighted: Reweighted) -> tuple[State, Rung]:
    """Mutate the population at its level, record it, and tune the kernel for the next."""
    plan = work.plan
    moved = mutate(work, state, order.transitions)

    def quantities(point, seen):  # (replica, quantity, particle) of the particles here
        return jnp.stack([point.energy, *(seen[name] for name in sorted(seen))], axis=1)

    def one_replica(one: Mutated) -> Tuned:
        key, keep_key = split(one.key)
        acceptance, undefined, jump = jnp.mean(one.rates, axis=-1)
        updated = one.tuner.update(plan.kernel.target_acceptance - acceptance)
        tracked = track(one.step_size, acceptance, plan.kernel.target_acceptance)
        return Tuned(
            key,
            jnp.where(order.warm_up, jnp.exp(updated.log_x), tracked),
            jax.tree.map(lambda new, old: jnp.where(order.warm_up, new, old), updated, one.tuner),
            {
                "acceptance": acceptance,
                "undefined": undefined,
                "displacement": jnp.sqrt(jump),
                "correlation": correlation(one.log_weight, one.before, one.after),
                "ess": effective_size(one.log_weight) / plan.particles,
                "lineages": count_distinct(one.ancestor),
                "kept": resample(keep_key, one.log_weight, plan.kept),
            },
        )

    per_particle = (
        jnp.stack([moved.acceptance, moved.undefined, moved.jump], axis=1),
        quantities(state.point, state.seen),
        quantities(moved.point, moved.observables),
    )
    rates, before, after = jax.tree.map(jax.vmap(jax.vmap(plan.sharding.whole)), per_particle)
    renewed = with_new_keys(state)
    mutated = Mutated(
        key=renewed.key,
        rates=rates,
        before=before,
        after=after,
        log_weight=state.log_weight,
        ancestor=state.ancestor,
        step_size=state.step_size,
        tuner=state.tuner,
    )
    tuned = map_rows(one_replica, mutated)
    picked = jax.vmap(plan.sharding.pick)(moved.point.position, tuned.recorded["kept"])
    rung = Rung(
        parameter=state.parameter,
        log_ratio=reweighted.log_ratio,
        step_size=state.step_size,
        resampled=reweighted.resampled,
        transitions=jnp.broadcast_to(order.transitions, state.step_size.shape),
        energy=moved.point.energy,
        log_weight=state.log_weight,
        parent=reweighted.parent,
        observables=moved.observables,
        configurations=configurations(work.problem, picked),
        **tuned.recorded,
    )
    state = state._replace(
        key=tuned.key,
        common=renewed.common,
        point=moved.point,
        seen=moved.observables,
        level=state.level + jnp.where(order.warm_up, 0, 1),
    )
    if plan.kernel.step_size is None:
        state = retune(work, state, moved)._replace(step_size=tuned.step_size, tuner=tuned.tuner)
    return state, rung


def count_distinct(label: Array) -> Array:
    """Number of different labels."""
    return jnp.sum(jax.ops.segment_max(jnp.ones_like(label), label, num_segments=label.shape[0]) > 0)


def step_down(work: Work, thresholds: Thresholds, state: State, order: LevelOrders) -> tuple[State, Rung]:
    """From the population at one level to the recorded population at the next."""
    family, plan = work.family, work.plan
    # The first rung is level 0 itself: nothing to reweight, only to mutate and record.
    stay = order.warm_up | (state.level == 0)

    def one_replica(one: Weighted) -> Reweighted:
        key, branch_key, resample_key = split(one.key, 3)
        chosen = family.next(one.energy, one.log_weight, one.parameter, thresholds.target_ess)
        parameter = jnp.where(jnp.isnan(order.parameter), chosen, order.parameter)
        parameter = jnp.where(stay, one.parameter, parameter)
        before = one.log_weight
        step, slope = ratio_and_slope(family, one.energy, one.parameter, parameter)
        log_weight, log_ratio = normalise(before + step)
        # Only a level that these very particles chose is biased; one that was ordered, or the last one of all, is not.
        adaptive = jnp.isnan(order.parameter) & (jnp.abs(kept_share(before, step) - thresholds.target_ess) < TOLERANCE)
        log_ratio = log_ratio - jnp.where(adaptive & ~stay, choice_bias(before, step, slope, one.lineage), 0.0)
        parent, log_weight = branch(branch_key, log_weight)
        lineage = one.lineage[parent]
        poor = lineage_effective_size(log_weight, lineage) < thresholds.resample_ess * plan.particles
        parent = jnp.where(poor, parent[resample(resample_key, log_weight, plan.particles)], parent)
        lineage = jnp.where(poor, jnp.arange(plan.particles, dtype=jnp.int32), lineage)
        log_weight = jnp.where(poor, -jnp.log(float(plan.particles)), log_weight)
        warmed_up = (state.level == 0) & ~order.warm_up & (one.tuner.step > 1)
        step_size = jnp.where(warmed_up, one.tuner.step_size, one.step_size)
        return Reweighted(
            key=key,
            log_weight=log_weight,
            parameter=parameter,
            lineage=lineage,
            ancestor=one.ancestor[parent],
            step_size=step_size,
            log_ratio=log_ratio,
            parent=parent,
            resampled=poor,
        )

    energy = jax.vmap(plan.sharding.whole)(state.point.energy)
    weighted = Weighted(
        key=state.key,
        energy=energy,
        log_weight=state.log_weight,
        parameter=state.parameter,
        lineage=state.lineage,
        ancestor=state.ancestor,
        step_size=state.step_size,
        tuner=state.tuner,
    )
    reweighted = map_rows(one_replica, weighted)
    point, seen = jax.vmap(plan.sharding.copy)((state.point, state.seen), reweighted.parent)
    state = state._replace(
        key=reweighted.key,
        point=point,
        seen=seen,
        log_weight=reweighted.log_weight,
        parameter=reweighted.parameter,
        lineage=reweighted.lineage,
        ancestor=reweighted.ancestor,
        step_size=reweighted.step_size,
    )
    return mutate_and_record(work, state, order, reweighted)


def ratio_and_slope(family: Family, energy: Array, parameter: Array, new: Array) -> tuple[Array, Array]:
    """log of the incremental weights from one level to another, and their derivatives with respect to that other."""
    return jax.jvp(lambda p: family.log_ratio(energy, parameter, p), (new,), (jnp.ones_like(new),))


def descend(work: Work, thresholds: Thresholds, state: State, orders: LevelOrders) -> tuple[State, Rung]:
    """A rung for each of the orders; what is recorded of them is stacked along a leading axis."""
    return jax.lax.scan(lambda state, order: step_down(work, thresholds, state, order), state, orders)
