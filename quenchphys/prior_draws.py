"""Fixed prior draws of a problem and its values on them: what its parts are compared on, and what it is recognised by."""

from __future__ import annotations

import jax

from quenchphys.parallel.random_numbers import GENERATOR
from quenchphys.problem import ProblemView

Array = jax.Array


def fixed_draws(problem: ProblemView, count: int, seed: int | Array) -> Array:
    """Prior draws, (count, *shape), the same for every problem with this prior; to be called inside compiled code."""
    return problem.sample_prior(jax.random.key(seed, impl=GENERATOR), count)


def energies_and_observables(problem: ProblemView, x: Array) -> dict[str, Array]:
    """U, under the name energy, and every observable of a batch (n, *shape); to be called inside compiled code."""
    return {**jax.vmap(problem.observe)(x), "energy": jax.vmap(problem.energy)(x)}
