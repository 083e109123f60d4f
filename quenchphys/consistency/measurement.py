"""Values and derivatives of a problem on prior draws: all that its checks compare, from one compiled program."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.parallel.quick_compilation import quickly_compiled
from quenchphys.prior_draws import energies_and_observables, fixed_draws
from quenchphys.problem import ProblemView

Array = jax.Array
Found = Mapping[str, Any]

DRAWS = 256
FEWEST = 8
LARGEST_NUMBER = 1 << 18  # numbers in all draws together
GROUPS = 64  # coordinates are tested in at most so many groups
STEP = 1e-2  # of a difference, in widths of the coordinates; the second one is a quarter of it


@partial(quickly_compiled, static_argnames="count")
def _draws(problem: ProblemView, seed: Array, count: int) -> Array:
    return fixed_draws(problem, count, seed).astype(jnp.float32)


def drawn(problem: ProblemView, seed: int = 20) -> Array:
    """Prior draws, the same for every problem with this prior."""
    count = max(FEWEST, min(DRAWS, LARGEST_NUMBER // max(1, math.prod(problem.shape))))
    return _draws(problem, np.uint32(seed), count)


def _measure(problem: ProblemView, x: Array, spread: Array, normal: Array) -> dict[str, Any]:
    """Everything the checks compare, on prior draws x, with derivatives along one random direction for each.

    The directions are as wide as the draws, so a coordinate counts as much as it varies.
    """
    count = x.shape[0]
    direction = spread * normal

    def rows(a: Array) -> Array:
        return a.reshape(count, -1)

    def along(gradient: Array) -> Array:
        return jnp.sum(rows(gradient * direction), axis=1)

    turned = [jax.vmap(lambda x, d, s=s: jax.jvp(s, (x,), (d,)))(x, direction) for s in problem.symmetries]
    steps = [x + step * direction for step in (STEP, -STEP, STEP / 4, -STEP / 4)]
    places = jnp.concatenate([x, *steps, *(moved for moved, _ in turned)])

    def of(function: Callable[[Array], Array]) -> dict[str, Any]:
        value, *rest = jnp.split(jax.vmap(function)(places), 5 + len(turned))
        gradient = jax.vmap(jax.grad(function))(x)
        wide, narrow = (rest[0] - rest[1]) / (2 * STEP), (rest[2] - rest[3]) / (STEP / 2)
        return {
            "value": value,
            "slope": along(gradient),
            "size": jnp.sqrt(jnp.sum(rows(gradient * spread) ** 2, axis=1)),
            "wide": wide,
            "narrow": narrow,
            "turned": rest[4:],
            "gradient": gradient,
        }

    found: dict[str, Any] = {"energy": of(problem.energy), "log_prior": of(problem.log_prior)}
    score = found["log_prior"].pop("gradient")
    found["energy"].pop("gradient")
    for name in ("energy", "log_prior"):
        if getattr(problem.problem, f"{name}_and_grad", None) is not None:
            value, gradient = getattr(problem, f"{name}_and_grad")(x)
            found[name] |= {"own_value": value, "own_slope": along(gradient)}
    found |= _virials(rows(x), rows(score), spread.reshape(-1))
    found["isometry"] = [jnp.stack([_norm(rows(push)), _norm(rows(direction))]) for _, push in turned]
    basis = problem.basis
    if basis is not None:
        y = basis.to_modes(x)
        found["basis"] = {
            "log_prior": -0.5 * jnp.sum(jnp.asarray(basis.precision) * y * y, axis=-1),
            "norm": jnp.sum(y * y, axis=-1),
            "own_norm": jnp.sum(rows(x) ** 2, axis=1),
            "back": jnp.max(jnp.abs(basis.from_modes(y) - x)),
            "largest": jnp.max(jnp.abs(x)),
        }
    return found


measured = quickly_compiled(_measure)
values_at = quickly_compiled(energies_and_observables)


def spread_of(x: np.ndarray) -> np.ndarray:
    """Width of each coordinate, by the median distance from the median: tails may be heavy."""
    width = 1.48 * np.median(np.abs(x - np.median(x, axis=0)), axis=0)
    return np.where(width > 0, width, np.std(x, axis=0)).astype(np.float32)


def _norm(a: Array) -> Array:
    return jnp.sqrt(jnp.sum(a * a, axis=-1))


def _virials(x: Array, score: Array, spread: Array) -> dict[str, Array]:
    """Sums over groups of coordinates whose means are known: (x_j - c_j) d_j log pi and d_j log pi, (draw, group).

    c is the mean of the other half of the draws: with their own mean, the sum would be small by 1/count.
    """
    count, dimension = x.shape
    half = count // 2
    first, second = jnp.mean(x[:half], axis=0), jnp.mean(x[half:], axis=0)
    centred = jnp.concatenate([x[:half] - second, x[half:] - first])
    groups = min(GROUPS, dimension)
    group = np.arange(dimension) % groups
    into = jnp.zeros((count, groups))
    return {
        "virial": into.at[:, group].add(centred * score),
        "force": into.at[:, group].add(spread * score),
        "group_size": jnp.asarray(np.bincount(group)),
    }
