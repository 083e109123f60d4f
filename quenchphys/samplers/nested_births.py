"""One level of nested sampling on the device: the worst live points die, and as many are born by slice steps below the wall.

A wall at the energy of the m-th highest of N live points leaves the prior volume G_{k+1} = t G_k behind, with t distributed
as Beta(N - m + 1, m) whatever the problem: order statistics.  The replacements start from survivors drawn at random and
make `steps` slice moves (blackjax.nss), so that each is a draw from pi(x) 1[U(x) < E_k]: these births are the particles of
level k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.extras import optional
from quenchphys.problem import ProblemView

Array = jax.Array
Symmetries = Sequence[Callable[[Array], Array]]

ROUNDING = 1e-5  # of the largest number, below which a difference is only rounding


class Live(NamedTuple):
    """The live points of one replica, and where they come from."""

    sampler: Any  # state of blackjax
    number: Array  # (N,) of each point: the prior draws, then all births in order
    origin: Array  # (N,) prior draw from which each point descends
    level: Array  # levels so far


class Level(NamedTuple):
    """What is recorded of one level of one replica."""

    parameter: Array  # E, the wall
    energy: Array  # (m,) of the births, as the next two
    observables: dict[str, Array]
    parent: Array  # number of the point at which the birth started
    live_energy: Array  # (N,) of all live points after the births
    at_wall: Array  # live points with exactly the energy of the wall that did not die
    acceptance: Array  # share of the slice moves that found a new point
    displacement: Array  # root mean square move of a coordinate, in units of its spread over the live points
    correlation: Array  # (quantity,) of start and birth: the energy, then the observables by name
    evaluations: Array  # of the energy
    lineages: Array  # prior draws from which the live points descend
    configurations: Array  # (kept, ...) of the first births


class Births(NamedTuple):
    """What the births of a level leave behind."""

    particles: Any
    start: Array
    evaluations: Array
    acceptance: Array


def born_from_survivors(
    step: Callable[..., Any], steps: int, count: int, *, symmetries: Symmetries
) -> Callable[..., Any]:
    """The update of the live points for blackjax: `count` chains of `steps` moves, each from a survivor drawn at random.

    Each symmetry of the problem is then applied to a random half of the births: an exact move that costs nothing.
    """

    def update(key: Array, state: Any, loglikelihood_0: Array, **parameters: Any) -> tuple[Any, Births]:
        start_key, move_key = jax.random.split(key)
        survives = (state.particles.loglikelihood > loglikelihood_0).astype(jnp.float32)
        start = jax.random.choice(start_key, len(survives), (count,), p=survives / jnp.maximum(survives.sum(), 1.0))

        def chain(key: Array, particle: Any, without: Array) -> tuple[Any, tuple[Array, Array]]:
            def move(particle: Any, key: Array) -> tuple[Any, tuple[Array, Array]]:
                particle, info = step(key, particle, loglikelihood_0, without=without, **parameters)
                # Both ends of the first bracket, every expansion and every point tried.
                return particle, (info.num_expansions + info.num_shrink + 2, info.is_accepted)

            particle, (evaluations, found) = jax.lax.scan(move, particle, jax.random.split(key, steps))
            return particle, (evaluations.sum(), found.mean())

        begin = jax.tree.map(lambda leaf: leaf[start], state.particles)
        points = state.particles.position.reshape(len(survives), -1)
        without = left_out(parameters["covariance_factor"], points - points.mean(axis=0), start)
        turn_key, move_key = jax.random.split(move_key)
        born, (evaluations, found) = jax.vmap(chain)(jax.random.split(move_key, count), begin, without)
        born = born._replace(position=turned(turn_key, born.position, symmetries))
        birth = jnp.full_like(born.loglikelihood_birth, loglikelihood_0)
        return born._replace(loglikelihood_birth=birth), Births(born, start, evaluations.sum(), found.mean())

    return update


def turned(key: Array, x: Array, symmetries: Symmetries) -> Array:
    """Configurations of which a random half went through each symmetry."""
    for number, symmetry in enumerate(symmetries):
        chosen = jax.random.bernoulli(jax.random.fold_in(key, number), shape=(len(x),) + (1,) * (x.ndim - 1))
        x = jnp.where(chosen, jax.vmap(symmetry)(x), x)
    return x


def left_out(factor: Array, deviations: Array, which: Array) -> Array:
    """w of each of the chosen points, with which L (1 - w w^T)^2 L^T is the covariance C = L L^T without that point.

    With x the distance of a point from the mean of N, and C = sum x x^T/N, that without the point is proportional to
    C - x x^T/(N - 1).  With u = L^-1 x that is L (1 - u u^T/(N - 1)) L^T, and the square root of the bracket is 1 - w w^T
    with w = u sqrt(1 - sqrt(1 - u.u/(N - 1)))/|u|.
    """
    u = jax.scipy.linalg.solve_triangular(factor, deviations[which].T, lower=True).T
    square = jnp.sum(u**2, axis=1, keepdims=True)
    leverage = jnp.clip(square / (len(deviations) - 1), 0.0, 1.0)
    return u * jnp.sqrt((1 - jnp.sqrt(1 - leverage)) / jnp.maximum(square, jnp.finfo(jnp.float32).tiny))


def along_others(
    init: Callable[..., Any], wall: Array, *, covariance_factor: Array, without: Array
) -> Callable[..., Callable[[Array], Any]]:
    """Slices of the level along directions of the covariance of all live points but the one at which the chain starts.

    A point that takes part in the covariance lies where its directions are longer than those of a new point would be: until
    the chain forgets it, it moves too easily along its own radius, and births are too low.  With that point, 2 D moves and
    N = 4 D live points, log G(E) of a Gaussian in a hundred dimensions was 2.7 too high sixty nats down.
    """

    def slices(key: Array, position: Array, log_density: Any) -> Callable[[Array], Any]:
        z = jax.random.normal(key, covariance_factor.shape[-1:], covariance_factor.dtype)
        direction = 2.0 * covariance_factor @ (z - without * (without @ z)) / jnp.linalg.norm(z)

        def at(t: Array) -> Any:
            state = init(position + t * direction.reshape(position.shape), loglikelihood_birth=wall)
            return state, state.loglikelihood > wall

        return at

    return slices


def functions(model: ProblemView) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """log prior and log likelihood -U of one configuration; where U is undefined there is no likelihood."""

    def log_likelihood(x: Array) -> Array:
        energy = model.energy(x)
        return jnp.where(jnp.isnan(energy), -jnp.inf, -energy)

    return model.log_prior, log_likelihood


@partial(jax.jit, static_argnames=("particles", "kept"))
def draw(model: ProblemView, keys: Array, particles: int, kept: int) -> tuple[Live, Array, dict[str, Array], Array]:
    """The live points of all replicas, where their energy is undefined, their observables, and some configurations."""
    nss = optional("blackjax.ns.nss", "qp.nested", "rivals")
    base = optional("blackjax.ns.base", "qp.nested", "rivals")

    def one(key: Array) -> tuple[Live, Array, dict[str, Array], Array]:
        x = model.sample_prior(key, particles)
        log_prior, log_likelihood = functions(model)
        init = partial(base.init_state_strategy, logprior_fn=log_prior, loglikelihood_fn=log_likelihood)
        state = nss.init(x, init_state_fn=jax.vmap(init), update_inner_kernel_params_fn=nss.live_covariance_factor)
        number = jnp.arange(particles, dtype=jnp.int32)
        seen = dict(jax.vmap(model.observe)(x))
        undefined = jnp.isnan(jax.vmap(model.energy)(x))
        return Live(state, number, number, jnp.int32(0)), undefined, seen, x[:kept]

    return jax.lax.map(one, keys)


@partial(jax.jit, static_argnames=("replaced", "steps", "kept", "levels"))
def descend(
    model: ProblemView, keys: Array, live: Live, replaced: int, steps: int, kept: int, levels: int
) -> tuple[Array, Live, Level]:
    """Some levels of all replicas: their keys and live points after them, and the record (replica, level, ...)."""
    nss = optional("blackjax.ns.nss", "qp.nested", "rivals")
    base = optional("blackjax.ns.base", "qp.nested", "rivals")
    log_prior, log_likelihood = functions(model)
    init = partial(base.init_state_strategy, logprior_fn=log_prior, loglikelihood_fn=log_likelihood)
    kernel = nss.build_kernel(
        init,
        steps,
        replaced,
        proposal=along_others,
        inner_kernel_params=nss.live_covariance_factor,
        update_strategy=partial(born_from_survivors, symmetries=model.symmetries),
    )

    def quantities(x: Array, log_likelihood: Array) -> tuple[dict[str, Array], Array]:
        seen = dict(jax.vmap(model.observe)(x))
        return seen, jnp.stack([-log_likelihood, *(seen[name] for name in sorted(seen))])

    def level(carry: tuple[Array, Live], _: None) -> tuple[tuple[Array, Live], Level]:
        (key, before) = carry
        key, own = jax.random.split(key)
        sampler, info = kernel(own, before.sampler)
        points, dead, births = before.sampler.particles, info.particles, info.update_info
        wall = dead.loglikelihood.max()
        slots = jax.lax.top_k(-points.loglikelihood, replaced)[1]  # those that blackjax replaced
        born = births.particles
        number = before.number.at[slots].set(
            len(before.number) + before.level * replaced + jnp.arange(replaced, dtype=jnp.int32)
        )
        origin = before.origin.at[slots].set(before.origin[births.start])
        start = jax.tree.map(lambda leaf: leaf[births.start], points)
        spread = jnp.std(points.position, axis=0) + jnp.finfo(jnp.float32).tiny
        seen, new = quantities(born.position, born.loglikelihood)
        old = quantities(start.position, start.loglikelihood)[1]
        record = Level(
            parameter=-wall,
            energy=-born.loglikelihood,
            observables=seen,
            parent=before.number[births.start],
            live_energy=-sampler.particles.loglikelihood,
            at_wall=jnp.sum(points.loglikelihood <= wall) - replaced,
            acceptance=births.acceptance,
            displacement=jnp.sqrt(jnp.mean(((born.position - start.position) / spread) ** 2)),
            correlation=jax.vmap(correlation)(old, new),
            evaluations=births.evaluations,
            lineages=jnp.zeros(len(origin), jnp.int32).at[origin].set(1).sum(),
            configurations=born.position[:kept],
        )
        return (key, Live(sampler, number, origin, before.level + 1)), record

    def replica(key: Array, live: Live) -> tuple[Array, Live, Level]:
        (key, live), record = jax.lax.scan(level, (key, live), None, length=levels)
        return key, live, record

    return jax.vmap(replica)(keys, live)


def correlation(a: Array, b: Array) -> Array:
    """Pearson's correlation of two lists of numbers, however small; NaN where one of them varies by rounding at most."""

    def centred(x: Array) -> Array:  # of largest entry one, so that no square underflows
        d = x - x.mean()
        size = jnp.abs(d).max()
        return jnp.where(size > ROUNDING * jnp.abs(x).max(), d / size, jnp.nan)

    a, b = centred(a), centred(b)
    return jnp.sum(a * b) / jnp.sqrt(jnp.sum(a * a) * jnp.sum(b * b))


def log_compression(live: int, replaced: int) -> tuple[float, float]:
    """Mean and variance of log t, t the share of the volume that one level keeps, t ~ Beta(N - m + 1, m).

    The m points die one after the other: log t is a sum of independent terms, the logarithms of the largest of
    i = N, N - 1, ..., N - m + 1 uniform numbers, with the means -1/i and the variances 1/i^2.
    """
    left = np.arange(live - replaced + 1, live + 1, dtype=float)
    return float(-np.sum(1 / left)), float(np.sum(1 / left**2))
