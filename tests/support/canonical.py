"""Plain HMC at beta = 1: a small, separate sampler to compare with."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames=("trajectories", "steps"))
def hmc(model, key, x, trajectories: int, steps: int = 10, step_size: float = 0.15):
    """Chains x (n, *shape) under exp(-U) times the prior, mass matrix the prior's precision.

    Returns the chains, the recorded observables (trajectories, n) with the energy, and the acceptance.
    """
    basis = model.basis

    def potential_and_force(y):
        energy, gradient = model.energy_and_grad(basis.from_modes(y))
        quadratic = 0.5 * (basis.precision * y**2).sum(-1)
        return energy, energy + quadratic, -basis.to_modes(gradient) - basis.precision * y

    def trajectory(y, key):
        momentum_key, accept_key = jax.random.split(key)
        p = jax.random.normal(momentum_key, y.shape) * jnp.sqrt(basis.precision)

        def leapfrog(_, state):
            y, p, force = state
            p = p + 0.5 * step_size * force
            y = y + step_size * p / basis.precision
            force = potential_and_force(y)[2]
            return y, p + 0.5 * step_size * force, force

        _, start, force = potential_and_force(y)
        new, end_p, _ = jax.lax.fori_loop(0, steps, leapfrog, (y, p, force))
        change = start - potential_and_force(new)[1] + 0.5 * ((p**2 - end_p**2) / basis.precision).sum(-1)
        accepted = jnp.log(jax.random.uniform(accept_key, change.shape)) < change
        y = jnp.where(accepted[:, None], new, y)
        field = basis.from_modes(y)
        return y, (jax.vmap(model.observe)(field) | {"energy": model.energy_and_grad(field)[0]}, accepted.mean())

    y, (recorded, accepted) = jax.lax.scan(trajectory, basis.to_modes(x), jax.random.split(key, trajectories))
    return basis.from_modes(y), recorded, accepted.mean()
