"""The prior of a problem: its draws, its density and its basis must be of one distribution."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

from quenchphys.consistency.comparison import EXCEPTIONS, ROUNDING, scale_of, worst
from quenchphys.consistency.measurement import Found, drawn
from quenchphys.parallel.quick_compilation import quickly_compiled
from quenchphys.problem import ProblemView

Array = jax.Array

# Probability of an average so far off by accident; at most 130 are tested, and those that fail are tested again.
ACCIDENT, SECOND = 1e-9, 1e-7


def check_draws(problem: ProblemView, x: Array) -> None:
    """Refuse draws that are not finite, or do not depend on the key or on the row."""
    draws, others = np.asarray(x), np.asarray(drawn(problem, seed=21))
    if not np.isfinite(draws).all():
        odd = np.sum(~np.isfinite(draws.reshape(len(draws), -1)).all(axis=1))
        raise ValueError(f"sample_prior gives infinite or NaN configurations in {odd} of {len(draws)} draws")
    if np.array_equal(draws, others):
        raise ValueError("sample_prior gives the same draws for two keys; it must take all randomness from its key")
    if np.array_equal(draws, np.roll(draws, 1, axis=0)):
        raise ValueError(f"sample_prior gives {len(draws)} equal configurations; its rows must be independent draws")


def check_basis(found: Found) -> None:
    if "basis" not in found:
        return
    basis, log_prior = found["basis"], found["log_prior"]["value"]
    if (at := worst(basis["norm"], basis["own_norm"], basis["own_norm"])) is not None:
        raise ValueError(
            f"the basis is not orthonormal: a configuration with sum of squares {basis['own_norm'][at]:.6g} has "
            f"{basis['norm'][at]:.6g} in its modes"
        )
    if basis["back"] > ROUNDING * basis["largest"]:
        raise ValueError(
            f"from_modes(to_modes(x)) of the basis differs from x by up to {basis['back']:.3g}; it must give x back"
        )
    constant = np.median(basis["log_prior"] - log_prior)
    if (at := worst(basis["log_prior"] - constant, log_prior, scale_of(log_prior))) is not None:
        raise ValueError(
            f"the precision of the basis is not that of the prior: it gives a prior draw a log density of "
            f"{basis['log_prior'][at]:.6g}, up to a constant, and log_prior gives {log_prior[at] + constant:.6g}"
        )


def check_prior(problem: ProblemView, x: Array, spread: np.ndarray, found: Found) -> None:
    """Draws against density, by the groups of coordinates, and again by another identity where one fails."""
    log_prior = found["log_prior"]["value"]
    outside = ~np.isfinite(log_prior)
    if outside.mean() > EXCEPTIONS:
        raise ValueError(
            f"log_prior is infinite or NaN on {outside.sum()} of {len(outside)} draws of sample_prior; "
            "it must be finite on its own draws"
        )
    size = found["group_size"]
    groups = len(size)
    virial, force = "x . grad log_prior", "grad log_prior, in units of the spread of the draws,"
    everything = slice(None)
    tested = [
        (virial, found["virial"].sum(axis=1), -float(size.sum()), everything),
        (force, found["force"].sum(axis=1), 0.0, everything),
    ]
    for g in range(groups):
        which = slice(g, None, groups)
        where = f" at coordinate {g}" if size[g] == 1 else f" over every {groups}th coordinate from {g} on"
        tested.append((virial + where, found["virial"][:, g], -float(size[g]), which))
        tested.append((force + where, found["force"][:, g], 0.0, which))
    for what, value, expected, which in tested:
        error = np.std(value, ddof=1) / math.sqrt(len(value)) + ROUNDING * abs(expected)
        fails = not abs(value.mean() - expected) <= _significant(len(value), ACCIDENT) * error
        if fails and not _is_plausible(problem, x, log_prior, spread, which, moved=expected == 0):
            raise ValueError(
                f"sample_prior does not draw from log_prior: over {len(value)} draws the mean of {what} is "
                f"{value.mean():.4g} +- {error:.2g}, and for draws from that density it is {expected:.4g}"
            )


def _significant(count: int, probability: float) -> float:
    """Standard errors, measured on so many draws, that an average is off by accident with this probability."""
    return float(-stdtrit(count - 1, probability))


def _is_plausible(
    problem: ProblemView, x: Array, log_prior: np.ndarray, spread: np.ndarray, which: slice, moved: bool
) -> bool:
    """Whether E[pi(T x)/pi(x)] |det T| may be 1, T moving some coordinates, or stretching and shrinking them."""
    mask = np.zeros(math.prod(x.shape[1:]), np.float32)
    mask[which] = 1.0
    count = mask.sum()
    size = min(0.25, 1 / math.sqrt(2 * count))
    maps = [(1.0, size), (1.0, -size)] if moved else [(1 + size, 0.0), (1 / (1 + size), 0.0)]
    mask = mask.reshape(x.shape[1:])
    changes = []
    for factor, shift in maps:
        moved_to = _log_prior_moved(problem, x, 1 + np.float32(factor - 1) * mask, np.float32(shift) * spread * mask)
        changes.append(np.asarray(moved_to, float) - log_prior)
    bounded = any(not np.isfinite(change).all() for change in changes)
    for (factor, _), change in zip(maps, changes, strict=True):
        log_ratio = np.where(np.isnan(change), -np.inf, change) + count * math.log(factor)
        ratio = np.exp(np.minimum(log_ratio, 50.0))
        error = np.std(ratio, ddof=1) / math.sqrt(len(ratio)) + ROUNDING
        off = (ratio.mean() - 1) / error
        if off > _significant(len(ratio), SECOND) or (not bounded and -off > _significant(len(ratio), SECOND)):
            return False
    return True


@quickly_compiled
def _log_prior_moved(problem: ProblemView, x: Array, factor: Array, shift: Array) -> Array:
    """log pi(T x)."""
    centre = jnp.mean(x, axis=0)
    moved = centre + factor * (x - centre) + shift
    return jax.vmap(problem.log_prior)(jnp.where((factor == 1) & (shift == 0), x, moved))
