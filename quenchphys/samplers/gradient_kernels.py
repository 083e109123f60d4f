"""NUTS and MCLMC of blackjax on the device: tuning and draws of many chains side by side.

Both sample pi(x) exp(-beta U(x)) on the flattened sites.  Every chain tunes itself: NUTS its step size and diagonal mass
matrix (window adaptation), MCLMC its step size, momentum decoherence length and diagonal preconditioner.  MCLMC does not
accept or reject: its step size is chosen so small that the energy error, and with it the bias, stays below a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.extras import optional
from quenchphys.problem import ProblemView

Array = jax.Array

NAMES = ("nuts", "mclmc")
# Shares of the tuning of MCLMC: step size, then preconditioner (and a third more to adapt to it), then decoherence length.
MCLMC_SHARE = 0.3
MCLMC_GRADIENTS = 2  # of one step of the minimal-norm (McLachlan) integrator


class Tuned(NamedTuple):
    """Chains after their tuning, (chain, ...)."""

    state: Any
    parameters: dict[str, Array]
    gradients: Array
    divergences: Array


class Draws(NamedTuple):
    """Some draws of all chains, (chain, draw, ...)."""

    energy: Array
    observables: dict[str, Array]
    field: Array | None
    log_density: Array
    statistics: dict[str, Array]
    gradients: Array


def density(model: ProblemView, beta: Array) -> Callable[[Array], Array]:
    """log pi - beta U of one configuration, given by its flattened sites; where it is undefined there is no density."""

    def log_density(y: Array) -> Array:
        x = y.reshape(model.shape)
        value = model.log_prior(x) - beta * model.energy(x)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    return log_density


@partial(jax.jit, static_argnames=("name", "steps"))
def tune(model: ProblemView, beta: Array, keys: Array, start: Array, name: str, steps: int) -> Tuned:
    """Tune every chain by itself, from its start (chain, D)."""
    own = {"nuts": tune_nuts, "mclmc": tune_mclmc}[name]
    return jax.vmap(partial(own, density(model, beta), steps))(keys, start)


def tune_nuts(log_density: Callable[[Array], Array], steps: int, key: Array, start: Array) -> Tuned:
    """Window adaptation of one chain."""
    blackjax = optional("blackjax", "qp.chains", "rivals")
    kept = lambda state, info, adaptation: (info.num_integration_steps, info.is_divergent)  # noqa: E731
    warmup = blackjax.window_adaptation(blackjax.nuts, log_density, adaptation_info_fn=kept)
    (state, parameters), (integrations, divergent) = warmup.run(key, start, steps)
    return Tuned(state, dict(parameters), integrations.sum() + 1, divergent.sum())


def tune_mclmc(log_density: Callable[[Array], Array], steps: int, key: Array, start: Array) -> Tuned:
    """Step size, preconditioner and decoherence length of one chain."""
    blackjax = optional("blackjax", "qp.chains", "rivals")
    first, second = jax.random.split(key)
    state = blackjax.mclmc.init(start, log_density, first)
    state, found, spent = blackjax.mclmc_find_L_and_step_size(
        blackjax.mclmc.build_kernel(),
        steps,
        state,
        second,
        log_density,
        frac_tune1=MCLMC_SHARE,
        frac_tune2=MCLMC_SHARE,
        frac_tune3=MCLMC_SHARE,
    )
    parameters = {"L": found.L, "step_size": found.step_size, "inverse_mass_matrix": found.inverse_mass_matrix}
    return Tuned(state, parameters, jnp.asarray(MCLMC_GRADIENTS * spent + 1), jnp.zeros((), jnp.int32))


@partial(jax.jit, static_argnames=("name", "draws", "thin", "fields"))
def advance(
    model: ProblemView,
    beta: Array,
    keys: Array,
    state: Any,
    parameters: dict[str, Array],
    name: str,
    draws: int,
    thin: int,
    fields: bool,
) -> tuple[Any, Draws]:
    """`draws` draws of every chain, each after `thin` transitions."""
    log_density = density(model, beta)
    kernel = {"nuts": nuts_transition, "mclmc": mclmc_transition}[name](log_density)

    def transition(carry: Any, key: Array) -> tuple[Any, tuple[dict[str, Array], Array]]:
        state, parameters = carry
        state, statistics, gradients = kernel(key, state, parameters)
        return (state, parameters), (statistics, gradients)

    def draw(carry: Any, key: Array) -> tuple[Any, Draws]:
        carry, (statistics, gradients) = jax.lax.scan(transition, carry, jax.random.split(key, thin))
        y = carry[0].position
        x = y.reshape(model.shape)
        # A divergence between two draws must not be lost; of the rest the last transition is kept.
        kept = {key: value.any() if value.dtype == bool else value[-1] for key, value in statistics.items()}
        seen = dict(model.observe(x))
        found = Draws(model.energy(x), seen, x if fields else None, carry[0].logdensity, kept, gradients.sum())
        return carry, found

    def chain(key: Array, state: Any, parameters: dict[str, Array]) -> tuple[Any, Draws]:
        (state, _), found = jax.lax.scan(draw, (state, parameters), jax.random.split(key, draws))
        return state, found

    return jax.vmap(chain)(keys, state, parameters)


def nuts_transition(log_density: Callable[[Array], Array]) -> Callable[..., Any]:
    """One transition of NUTS: state, statistics, gradients."""
    kernel = optional("blackjax", "qp.chains", "rivals").nuts.build_kernel()

    def transition(key: Array, state: Any, parameters: dict[str, Array]) -> tuple[Any, dict[str, Array], Array]:
        state, info = kernel(key, state, log_density, parameters["step_size"], parameters["inverse_mass_matrix"])
        statistics = {
            "diverging": info.is_divergent,
            "acceptance_rate": info.acceptance_rate,
            "tree_depth": info.num_trajectory_expansions,
        }
        return state, statistics, info.num_integration_steps

    return transition


def mclmc_transition(log_density: Callable[[Array], Array]) -> Callable[..., Any]:
    """One step of MCLMC: state, statistics, gradients."""
    kernel = optional("blackjax", "qp.chains", "rivals").mclmc.build_kernel()

    def transition(key: Array, state: Any, parameters: dict[str, Array]) -> tuple[Any, dict[str, Array], Array]:
        matrix, length, step = (parameters[name] for name in ("inverse_mass_matrix", "L", "step_size"))
        state, info = kernel(key, state, log_density, matrix, length, step)
        statistics = {"diverging": jnp.logical_not(info.nonans), "energy_error": info.energy_change}
        return state, statistics, jnp.int32(MCLMC_GRADIENTS)

    return transition
