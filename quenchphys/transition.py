"""One rung of a ladder: dissect, measure, reweight, branch, resample, mutate, record.

Everything here runs on the device, for all replicas at once, and is compiled once for a problem's shape and a `Plan`;
seeds, couplings, softness and thresholds are arguments.  A replica has its own random numbers and never looks at
another, so that replicas can be spread over devices without a word between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.adaptation import MEMORY, combine_scale, read_scale, track
from quenchphys.density import Density, Point, configurations, evaluate, positions, prior_scale
from quenchphys.kernels import Kernel, Move
from quenchphys.levels import Family
from quenchphys.noise import uniform
from quenchphys.population import branch, effective_size, lineage_effective_size, normalise, resample

Array = jax.Array


@dataclass(frozen=True)
class Plan:
    """What the compiled program depends on."""

    particles: int
    draws: int  # prior draws of each replica
    kernel: Kernel
    chunk: int  # particles of each replica moved through all steps of a level together
    kept: int  # configurations kept of each level
    levels: int  # rungs of one device call


class Rates(NamedTuple):
    """Thresholds a run may change without compiling again."""

    target_ess: Any
    resample_ess: Any


class State(NamedTuple):
    """The population of every replica: arrays (replica, particle, ...) and (replica, ...)."""

    key: Array  # one for each replica
    common: Array  # one for all: what replicas must share to run in step, such as the length of a trajectory
    point: Point
    log_weight: Array
    lineage: Array  # since the last resampling
    ancestor: Array  # at level 0
    parameter: Array
    step_size: Array
    anisotropy: Array
    scale: Array
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
    energy: Array
    log_weight: Array
    parent: Array
    observables: dict[str, Array]
    kept: Array  # which particles
    configurations: Array


def observe(problem: Any, y: Array) -> dict[str, Array]:
    """Observables of positions (..., D)."""
    if not hasattr(problem, "observe"):
        return {}
    lead = y.shape[:-1]
    seen = jax.vmap(problem.observe)(configurations(problem, y.reshape(-1, y.shape[-1])))
    return {name: value.reshape(lead).astype(jnp.float32) for name, value in seen.items()}


def draw_prior(problem: Any, plan: Plan, key: Array) -> tuple[Array, Point, dict[str, Array]]:
    """Exact prior draws (replica, draw, D) with energies; an undefined energy is flagged and counts as infinite."""

    def one_replica(key):
        y = positions(problem, problem.sample_prior(key, plan.draws))
        return evaluate(problem, y), observe(problem, y)

    # One replica after the other: the draws are ten times the population, and needed only once.
    point, seen = jax.lax.map(one_replica, key)
    undefined = jnp.isnan(point.energy)
    return undefined, point._replace(energy=jnp.where(undefined, jnp.inf, point.energy)), seen


def start(
    problem: Any, plan: Plan, family: Family, key: Array, common: Array, draws: Point, first: Array | None
) -> tuple[State, Array, Array]:
    """The first level from the prior draws: E_0 by effective size, G_0 their mean weight, N of them resampled.

    Returns the state, log G_0 and the draw every particle came from.
    """
    n, dimension = plan.particles, draws.position.shape[-1]

    def one_replica(key, draws):
        key, choice_key = jax.random.split(key)
        if first is None:
            parameter, log_factor = family.first(draws.energy, float(n))
        else:
            parameter, log_factor = first, family.log_factor(draws.energy, first)
        log_weight, total = normalise(log_factor)
        parent = resample(choice_key, log_weight, n)
        point = jax.tree.map(lambda a: a[parent], draws)
        anisotropy, norm = read_scale(Density(problem, family, parameter).score(draws), log_weight)
        scale = combine_scale(anisotropy, norm) if plan.kernel.step_size is None else prior_scale(problem, dimension)
        return key, point, parameter, anisotropy, scale, total - jnp.log(float(plan.draws)), parent

    key, point, parameter, anisotropy, scale, log_volume, parent = jax.vmap(one_replica)(key, draws)
    replicas = parameter.shape[0]
    itself = jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32), (replicas, n))
    state = State(
        key,
        common,
        point,
        log_weight=jnp.full((replicas, n), -jnp.log(float(n)), jnp.float32),
        lineage=itself,
        ancestor=itself,
        parameter=parameter,
        step_size=jnp.full(replicas, plan.kernel.step_size or plan.kernel.first_step_size(dimension), jnp.float32),
        anisotropy=anisotropy,
        scale=scale,
        level=jnp.zeros((), jnp.int32),
    )
    return state, log_volume, parent


def retune(problem: Any, family: Family, state: State) -> State:
    """Read the scale anew from the scores of the population as it stands."""

    def one_replica(point, log_weight, parameter, before):
        anisotropy, norm = read_scale(Density(problem, family, parameter).score(point), log_weight)
        anisotropy = (1 - MEMORY) * before + MEMORY * anisotropy
        return anisotropy, combine_scale(anisotropy, norm)

    anisotropy, scale = jax.vmap(one_replica)(state.point, state.log_weight, state.parameter, state.anisotropy)
    return state._replace(anisotropy=anisotropy, scale=scale)


def mutate(problem: Any, plan: Plan, family: Family, state: State, transitions: int) -> tuple[Point, Move]:
    """Apply the kernel `transitions` times to every particle; chunks of particles stay in cache through all of them."""
    chunks = plan.particles // plan.chunk
    shared = jax.random.split(state.common, transitions)

    def one_replica(key, point, parameter, step_size, scale, shared):
        density = Density(problem, family, parameter)
        return plan.kernel.transition(key, shared, point, density, step_size, scale)

    def run(item):
        keys, point = item  # keys (transition, replica)

        def step(point, keys):
            return jax.vmap(one_replica, in_axes=(0, 0, 0, 0, 0, None))(
                keys[0], point, state.parameter, state.step_size, state.scale, keys[1]
            )

        point, moves = jax.lax.scan(step, point, (keys, shared))
        return point, jax.tree.map(lambda a: jnp.mean(a, axis=0), moves)

    keys = jax.vmap(lambda key: jax.random.split(key, (chunks, transitions)), out_axes=2)(state.key)
    if chunks == 1:
        return run((keys[0], state.point))

    def split(a):
        return jnp.moveaxis(a.reshape(a.shape[0], chunks, plan.chunk, *a.shape[2:]), 1, 0)

    def join(a):
        a = jnp.moveaxis(a, 0, 1)
        return a.reshape(a.shape[0], plan.particles, *a.shape[3:])

    return jax.tree.map(join, jax.lax.map(run, (keys, jax.tree.map(split, state.point))))


def warm_up(problem: Any, plan: Plan, family: Family, state: State, rounds: int) -> State:
    """Tune step size and scale at the first level on copies; the particles themselves stay where they are."""
    from blackjax.optimizers.dual_averaging import dual_averaging

    begin, update, final = dual_averaging()

    def one_round(carry, _):
        copy, tuner = carry
        copy = fresh(copy)._replace(step_size=jnp.exp(tuner.log_x))
        point, moves = mutate(problem, plan, family, copy, 1)
        tuner = update(tuner, plan.kernel.target_acceptance - jnp.mean(moves.acceptance, axis=1))
        return (retune(problem, family, copy._replace(point=point)), tuner), None

    zero = jnp.zeros_like(state.step_size)
    tuner = begin(state.step_size)._replace(log_x_avg=zero, avg_error=zero, step=jnp.ones(()))
    (copy, tuner), _ = jax.lax.scan(one_round, (state, tuner), length=rounds)
    return copy._replace(point=state.point, step_size=final(tuner))


def fresh(state: State) -> State:
    """The same state with new keys."""
    renew = lambda key: jax.random.split(key, 1)[0]  # noqa: E731
    return state._replace(key=jax.vmap(renew)(state.key), common=renew(state.common))


def reflect(problem: Any, key: Array, point: Point) -> Point:
    """Apply each symmetry of the problem to a random half of the particles: an exact move, without evaluation.

    For an isometry S that keeps U, grad U(Sx) = J grad U(x), J the Jacobian of S.
    """
    for number, symmetry in enumerate(getattr(problem, "symmetries", ())):

        def turn(y, *tangents, symmetry=symmetry):
            def in_modes(y):
                return positions(problem, symmetry(configurations(problem, y)))

            position, push = jax.linearize(in_modes, y)
            return position, *(push(tangent) for tangent in tangents)

        turned = jax.vmap(turn)(point.position, point.energy_grad, point.log_prior_grad)
        chosen = (uniform(jax.random.fold_in(key, number), point.energy.shape) < 0.5)[:, None]
        kept = (point.position, point.energy_grad, point.log_prior_grad)
        position, energy_grad, log_prior_grad = (jnp.where(chosen, a, b) for a, b in zip(turned, kept, strict=True))
        point = point._replace(position=position, energy_grad=energy_grad, log_prior_grad=log_prior_grad)
    return point


def settle(problem: Any, plan: Plan, family: Family, state: State, log_ratio, parent, resampled) -> tuple[State, Rung]:
    """Mutate the population at its level, record it, and tune the kernel for the next."""
    transitions = plan.kernel.transitions(state.point.position.shape[-1])
    point, moves = mutate(problem, plan, family, state, transitions)

    def one_replica(key, before, point, scale, log_weight, ancestor):
        key, reflect_key, keep_key = jax.random.split(key, 3)
        jump = (point.position - before) / scale
        point = reflect(problem, reflect_key, point)
        kept = resample(keep_key, log_weight, plan.kept)
        said = {
            "displacement": jnp.sqrt(jnp.mean(jump * jump)),
            "ess": effective_size(log_weight) / plan.particles,
            "lineages": count_distinct(ancestor),
            "observables": observe(problem, point.position),
            "kept": kept,
            "configurations": configurations(problem, point.position[kept]),
        }
        return key, point, said

    key, point, said = jax.vmap(one_replica)(
        fresh(state).key, state.point.position, point, state.scale, state.log_weight, state.ancestor
    )
    acceptance = jnp.mean(moves.acceptance, axis=1)
    rung = Rung(
        parameter=state.parameter,
        log_ratio=log_ratio,
        acceptance=acceptance,
        step_size=state.step_size,
        resampled=resampled,
        undefined=jnp.mean(moves.undefined, axis=1),
        energy=point.energy,
        log_weight=state.log_weight,
        parent=parent,
        **said,
    )
    state = state._replace(key=key, common=fresh(state).common, point=point, level=state.level + 1)
    if plan.kernel.step_size is None:
        state = retune(problem, family, state)
        state = state._replace(step_size=track(state.step_size, acceptance, plan.kernel.target_acceptance))
    return state, rung


def count_distinct(label: Array) -> Array:
    return jnp.sum(jax.ops.segment_max(jnp.ones_like(label), label, num_segments=label.shape[0]) > 0)


def step_down(
    problem: Any, plan: Plan, family: Family, rates: Rates, state: State, new: Array | None
) -> tuple[State, Rung]:
    """From the population at one level to the recorded population at the next (`new`, or chosen by effective size)."""

    def one_replica(key, point, log_weight, parameter, lineage, ancestor):
        key, branch_key, resample_key = jax.random.split(key, 3)
        # The first rung is level 0 itself: nothing to reweight, only to mutate and record.
        target = family.next(point.energy, log_weight, parameter, rates.target_ess) if new is None else new
        target = jnp.where(state.level == 0, parameter, target)
        log_weight, log_ratio = normalise(log_weight + family.log_ratio(point.energy, parameter, target))
        parent, log_weight = branch(branch_key, log_weight)
        lineage = lineage[parent]
        poor = lineage_effective_size(log_weight, lineage) < rates.resample_ess * plan.particles
        parent = jnp.where(poor, parent[resample(resample_key, log_weight, plan.particles)], parent)
        lineage = jnp.where(poor, jnp.arange(plan.particles, dtype=jnp.int32), lineage)
        log_weight = jnp.where(poor, -jnp.log(float(plan.particles)), log_weight)
        point = jax.tree.map(lambda a: a[parent], point)
        return key, point, log_weight, target, lineage, ancestor[parent], log_ratio, parent, poor

    key, point, log_weight, parameter, lineage, ancestor, log_ratio, parent, resampled = jax.vmap(one_replica)(
        state.key, state.point, state.log_weight, state.parameter, state.lineage, state.ancestor
    )
    state = state._replace(
        key=key, point=point, log_weight=log_weight, parameter=parameter, lineage=lineage, ancestor=ancestor
    )
    return settle(problem, plan, family, state, log_ratio, parent, resampled)


def descend(
    problem: Any, plan: Plan, family: Family, rates: Rates, state: State, schedule: Array | None
) -> tuple[State, Rung]:
    """`plan.levels` rungs; what is recorded of them is stacked along a leading axis."""
    return jax.lax.scan(
        lambda state, new: step_down(problem, plan, family, rates, state, new), state, schedule, length=plan.levels
    )
