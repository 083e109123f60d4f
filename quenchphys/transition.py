"""One rung of a ladder: dissect, measure, reweight, branch, resample, mutate, record.

Everything here runs on the device, for all replicas at once, and is compiled once for a problem's shape and a `Plan`;
seeds, couplings, softness and thresholds are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.adaptation import MEMORY, combine_scale, read_scale, track
from quenchphys.density import Density, Point, configurations, evaluate, positions
from quenchphys.kernels import Kernel, Move
from quenchphys.levels import Family
from quenchphys.population import branch, effective_size, lineage_effective_size, normalise, resample

Array = jax.Array


@dataclass(frozen=True)
class Plan:
    """What the compiled program depends on."""

    particles: int
    replicas: int
    draws: int
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

    key: Array
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


@partial(jax.jit, static_argnames="plan")
def draw_prior(problem: Any, plan: Plan, key: Array) -> tuple[Array, Point, dict[str, Array]]:
    """Exact prior draws (replica, draw, D), with energies; an undefined energy counts as infinite."""
    x = problem.sample_prior(key, plan.replicas * plan.draws)
    y = positions(problem, x).reshape(plan.replicas, plan.draws, -1)

    def one_replica(y):
        point = evaluate(problem, y)
        return point, observe(problem, y)

    # One replica after the other: the draws are ten times the population, and only once needed.
    point, seen = jax.lax.map(one_replica, y)
    undefined = jnp.isnan(point.energy)
    return undefined, point._replace(energy=jnp.where(undefined, jnp.inf, point.energy)), seen


@partial(jax.jit, static_argnames="plan")
def start(
    problem: Any, plan: Plan, family: Family, key: Array, draws: Point, first: Array | None
) -> tuple[State, Array, Array]:
    """The first level from the prior draws: E_0 by effective size, G_0 their mean weight, N of them resampled.

    Returns the state, log G_0 and the draw every particle came from.
    """
    key, choice_key = jax.random.split(key)

    def choose_level(energy):
        if first is None:
            return family.first(energy, float(plan.particles))
        return first, family.log_factor(energy, first)

    parameter, log_factor = jax.vmap(choose_level)(draws.energy)
    log_weight, total = jax.vmap(normalise)(log_factor)
    parent = jax.vmap(lambda k, w: resample(k, w, plan.particles))(
        jax.random.split(choice_key, plan.replicas), log_weight
    )
    point = jax.tree.map(lambda a: jax.vmap(lambda row, i: row[i])(a, parent), draws)
    n = plan.particles
    uniform = jnp.full((plan.replicas, n), -jnp.log(float(n)))
    itself = jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32), (plan.replicas, n))
    dimension = point.position.shape[-1]
    step = plan.kernel.step_size or plan.kernel.first_step_size(dimension)
    state = State(
        key,
        point,
        uniform,
        lineage=itself,
        ancestor=itself,
        parameter=parameter,
        step_size=jnp.full(plan.replicas, step),
        anisotropy=jnp.full((plan.replicas, dimension), 1.0 / dimension),
        scale=jnp.ones((plan.replicas, dimension)),
        level=jnp.zeros((), jnp.int32),
    )
    return retune(problem, family, state, memory=1.0), total - jnp.log(float(plan.draws)), parent


def retune(problem: Any, family: Family, state: State, memory: float) -> State:
    """Read the scale anew from the scores of the population as it stands."""
    density = Density(problem, family, state.parameter[:, None])
    anisotropy, norm = jax.vmap(read_scale)(density.score(state.point), state.log_weight)
    anisotropy = (1 - memory) * state.anisotropy + memory * anisotropy
    return state._replace(anisotropy=anisotropy, scale=jax.vmap(combine_scale)(anisotropy, norm))


def mutate(problem: Any, plan: Plan, family: Family, state: State, transitions: int) -> tuple[Point, Move]:
    """Apply the kernel `transitions` times to every particle; chunks of particles stay in cache through all of them."""
    density = Density(problem, family, state.parameter[:, None])
    chunks = plan.particles // plan.chunk

    def run(item):
        key, point = item

        def step(point, key):
            return plan.kernel.transition(key, point, density, state.step_size, state.scale)

        point, moves = jax.lax.scan(step, point, jax.random.split(key, transitions))
        return point, jax.tree.map(lambda a: jnp.mean(a, axis=0), moves)

    if chunks == 1:
        return run((state.key, state.point))

    def split(a):
        return jnp.moveaxis(a.reshape(plan.replicas, chunks, plan.chunk, *a.shape[2:]), 1, 0)

    def join(a):
        return jnp.moveaxis(a, 0, 1).reshape(plan.replicas, plan.particles, *a.shape[3:])

    return jax.tree.map(join, jax.lax.map(run, (jax.random.split(state.key, chunks), jax.tree.map(split, state.point))))


@partial(jax.jit, static_argnames=("plan", "rounds"))
def warm_up(problem: Any, plan: Plan, family: Family, state: State, rounds: int) -> State:
    """Tune step size and scale at the first level on copies; the particles themselves stay where they are."""
    from blackjax.optimizers.dual_averaging import dual_averaging

    begin, update, final = dual_averaging()

    def one_round(carry, key):
        copy, tuner = carry
        copy = copy._replace(key=key, step_size=jnp.exp(tuner.log_x))
        point, moves = mutate(problem, plan, family, copy, 1)
        tuner = update(tuner, plan.kernel.target_acceptance - jnp.mean(moves.acceptance, axis=1))
        return (retune(problem, family, copy._replace(point=point), MEMORY), tuner), None

    tuner = begin(state.step_size)._replace(
        log_x_avg=jnp.zeros(plan.replicas), avg_error=jnp.zeros(plan.replicas), step=jnp.ones(())
    )
    key, warm_key = jax.random.split(state.key)
    (copy, tuner), _ = jax.lax.scan(one_round, (state, tuner), jax.random.split(warm_key, rounds))
    return state._replace(key=key, step_size=final(tuner), anisotropy=copy.anisotropy, scale=copy.scale)


def reflect(problem: Any, key: Array, point: Point) -> Point:
    """Apply each symmetry of the problem to a random half of the particles: an exact move, without evaluation.

    For an isometry S that keeps U, grad U(Sx) = J grad U(x), J the Jacobian of S.
    """
    for number, symmetry in enumerate(getattr(problem, "symmetries", ())):

        def in_modes(y, symmetry=symmetry):
            return positions(problem, symmetry(configurations(problem, y)))

        def move(y, *gradients, in_modes=in_modes):
            return jax.jvp(in_modes, (y,), (gradients[0],)), jax.jvp(in_modes, (y,), (gradients[1],))[1]

        batched = jax.vmap(jax.vmap(move))
        (position, energy_grad), prior_grad = batched(point.position, point.energy_grad, point.log_prior_grad)
        chosen = jax.random.bernoulli(jax.random.fold_in(key, number), shape=point.energy.shape)[..., None]
        point = point._replace(
            position=jnp.where(chosen, position, point.position),
            energy_grad=jnp.where(chosen, energy_grad, point.energy_grad),
            log_prior_grad=jnp.where(chosen, prior_grad, point.log_prior_grad),
        )
    return point


def settle(problem: Any, plan: Plan, family: Family, state: State, log_ratio, parent, resampled) -> tuple[State, Rung]:
    """Mutate the population at its level, record it, and tune the kernel for the next."""
    key, mutate_key, reflect_key, keep_key = jax.random.split(state.key, 4)
    transitions = plan.kernel.transitions(state.point.position.shape[-1])
    point, moves = mutate(problem, plan, family, state._replace(key=mutate_key), transitions)
    jump = (point.position - state.point.position) / state.scale[:, None, :]
    displacement = jnp.sqrt(jnp.mean(jump * jump, axis=(1, 2)))
    point = reflect(problem, reflect_key, point)
    acceptance = jnp.mean(moves.acceptance, axis=1)

    kept = jax.vmap(lambda k, w: resample(k, w, plan.kept))(jax.random.split(keep_key, plan.replicas), state.log_weight)
    kept_positions = jax.vmap(lambda y, i: y[i])(point.position, kept)
    rung = Rung(
        parameter=state.parameter,
        log_ratio=log_ratio,
        acceptance=acceptance,
        step_size=state.step_size,
        displacement=displacement,
        ess=jax.vmap(effective_size)(state.log_weight) / plan.particles,
        lineages=jax.vmap(count_distinct)(state.ancestor),
        resampled=resampled,
        undefined=jnp.mean(moves.undefined, axis=1),
        energy=point.energy,
        log_weight=state.log_weight,
        parent=parent,
        observables=observe(problem, point.position),
        kept=kept,
        configurations=configurations(problem, kept_positions),
    )
    state = retune(problem, family, state._replace(key=key, point=point, level=state.level + 1), MEMORY)
    if plan.kernel.step_size is None:
        state = state._replace(step_size=track(state.step_size, acceptance, plan.kernel.target_acceptance))
    return state, rung


def count_distinct(label: Array) -> Array:
    return jnp.sum(jax.ops.segment_max(jnp.ones_like(label), label, num_segments=label.shape[0]) > 0)


def step_down(problem: Any, plan: Plan, family: Family, rates: Rates, state: State, new: Array | None) -> tuple[State, Rung]:
    """From the population at one level to the recorded population at the next (`new`, or chosen by effective size)."""
    key, branch_key, resample_key = jax.random.split(state.key, 3)
    branch_keys = jax.random.split(branch_key, plan.replicas)
    resample_keys = jax.random.split(resample_key, plan.replicas)

    def reweight(energy, log_weight, parameter, lineage, branch_key, resample_key):
        target = family.next(energy, log_weight, parameter, rates.target_ess) if new is None else new
        # The first rung is level 0 itself: nothing to reweight, only to mutate and record.
        target = jnp.where(state.level == 0, parameter, target)
        log_weight, log_ratio = normalise(log_weight + family.log_ratio(energy, parameter, target))
        parent, log_weight = branch(branch_key, log_weight)
        lineage = lineage[parent]
        poor = lineage_effective_size(log_weight, lineage) < rates.resample_ess * plan.particles
        redrawn = resample(resample_key, log_weight, plan.particles)
        parent = jnp.where(poor, parent[redrawn], parent)
        lineage = jnp.where(poor, jnp.arange(plan.particles, dtype=jnp.int32), lineage)
        log_weight = jnp.where(poor, -jnp.log(float(plan.particles)), log_weight)
        return target, log_ratio, log_weight, parent, lineage, poor

    parameter, log_ratio, log_weight, parent, lineage, resampled = jax.vmap(reweight)(
        state.point.energy, state.log_weight, state.parameter, state.lineage, branch_keys, resample_keys
    )
    take = jax.vmap(lambda row, index: row[index])
    state = state._replace(
        key=key,
        point=jax.tree.map(lambda a: take(a, parent), state.point),
        log_weight=log_weight,
        lineage=lineage,
        ancestor=take(state.ancestor, parent),
        parameter=parameter,
    )
    return settle(problem, plan, family, state, log_ratio, parent, resampled)


@partial(jax.jit, static_argnames="plan", donate_argnames="state")
def descend(
    problem: Any, plan: Plan, family: Family, rates: Rates, state: State, schedule: Array | None
) -> tuple[State, Rung]:
    """`plan.levels` rungs in one device call; rungs are stacked along a leading axis."""
    return jax.lax.scan(
        lambda state, new: step_down(problem, plan, family, rates, state, new),
        state,
        schedule,
        length=plan.levels,
    )
