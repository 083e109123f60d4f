"""Consistency of a problem: whether its parts belong to one and the same prior and energy.

A wrong sign in a gradient, a prior twice too wide or a symmetry that changes U gives numbers like any other.  So before
anything is sampled, the parts of a problem are compared with each other on a few hundred prior draws x:

    prior        E[grad log pi] = 0  and  E[(x - c) . grad log pi] = -D,  over all coordinates and over groups of them
    gradients    energy_and_grad and log_prior_and_grad against derivatives of energy and log_prior, and these against
                 differences
    basis        log pi(x) - log pi(x') = -1/2 sum_j precision_j (y_j^2 - y'_j^2),  |y| = |x|,  from_modes(to_modes(x)) = x
    symmetries   U(s x) = U(x),  log pi(s x) = log pi(x),  |ds| = |dx|
    couplings    U at two values of a coupling differs by (difference) * factor * observable, where the problem can be
                 built at another value
    names        observables that phases and couplings mention are recorded

The identities of the prior are integrations by parts, which need a smooth density that vanishes at its boundary.  A prior
that fails one of them is therefore judged by another that every density obeys: for draws x from pi and a map T that moves
or stretches the space,

    E[pi(T x)/pi(x)] |det T| = 1,   or less than 1 if T moves draws out of the support of pi.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

from quenchphys.labels import check_labels
from quenchphys.object_state import ObjectState
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.quick_compilation import quickly_compiled
from quenchphys.parallel.random_numbers import GENERATOR
from quenchphys.problem import ProblemView, check_shapes, view

Array = jax.Array
Found = Mapping[str, Any]

DRAWS = 256
FEWEST = 8
LARGEST_NUMBER = 1 << 18  # numbers in all draws together
# Probability of an average so far off by accident; at most 130 are tested, and those that fail are tested again.
ACCIDENT, SECOND = 1e-9, 1e-7
ROUNDING = 2e-3  # relative error of float32 sums over many sites, amply
GROUPS = 64  # coordinates are tested in at most so many groups
STEP = 1e-2  # of a difference, in widths of the coordinates; the second one is a quarter of it
RELIABLE, WRONG = 0.02, 0.1  # relative: two differences agree, and a derivative is not theirs
ENOUGH = 0.25  # share of draws with such differences
EXCEPTIONS = 0.01  # share of draws that may be odd: at the edge of a box, on a kink


def check(problem: Any) -> None:
    """Refuse a problem whose parts contradict each other, in one sentence with the number seen and the number expected.

    Every sampler calls it.  It takes a fraction of a second and looks at a few hundred prior draws, so it finds mistakes in
    formulas.  It cannot find a mode that no draw comes near, an error of a percent in the prior, or a wrong energy whose
    parts agree with each other.

    Parameters
    ----------
    problem
        A model with `sample_prior`, `log_prior` and `energy`; see `quenchphys.problem.Problem`.

    Raises
    ------
    TypeError, ValueError
        What is wrong, what was seen and what was expected.

    Examples
    --------
    >>> import lattices, quenchphys as qp
    >>> qp.check(lattices.phi6(L=8, mu2=2.29))
    """
    check_not_forked()
    keep_compiled_programs()
    with own_settings(), np.errstate(all="ignore"):  # energies may be infinite or NaN
        check_shapes(problem)
        seen = view(problem)
        check_labels(seen)
        check_names(seen)
        argument = seen.as_argument()
        x = _drawn(argument)
        _check_draws(argument, x)
        direction = np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
        spread = _spread(np.asarray(x))
        found = jax.device_get(_measured(argument, x, spread, direction))
        _check_gradients(found)
        _check_basis(found)
        _check_prior(argument, x, spread, found)
        _check_symmetries(found)
        check_couplings(seen, partial(_rebuilt, seen))


def check_names(problem: ProblemView) -> None:
    """Refuse phases and couplings that name an observable which is not recorded."""
    one = jax.ShapeDtypeStruct(problem.shape, jnp.float32)
    recorded = sorted({"energy", *jax.eval_shape(problem.observe, one)})
    needed = {f"phase {name!r}": phase[0] for name, phase in problem.phases.items()}
    needed |= {f"coupling {name!r}": term[1] for name, term in problem.couplings.items()}
    for what, observable in needed.items():
        if observable not in recorded:
            raise ValueError(
                f"the {what} is about the observable {observable!r}, which is not recorded; recorded are "
                f"{', '.join(recorded)}"
            )


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float | np.number | np.ndarray | jax.Array)
    return known and np.ndim(value) == 0 and np.issubdtype(np.result_type(value), np.number)


def check_program(problem: ProblemView, x: np.ndarray, recorded: Mapping[str, np.ndarray]) -> None:
    """Refuse a compiled program that no longer belongs to its problem: one that read a variable that has changed since.

    Parameters
    ----------
    problem
        The problem as it is now.
    x
        Some configurations, (draw, ...), on the host.
    recorded
        Energy and observables, (draw,), that the program found for them.
    """
    now = quickly_compiled(
        lambda x: _energy_and_observables_of(problem.as_argument(), x)
    )  # compiled anew in every call
    with jax.default_device(jax.local_devices()[0]):
        _, seen = jax.device_get(now(x[:FEWEST]))
    for name, values in recorded.items():
        then, is_now, scale = values[:FEWEST], seen[name], _scale(values)[:FEWEST]
        # Where either is NaN or infinite there is nothing to compare.
        known = np.isfinite(then) & np.isfinite(is_now)
        if known.any() and (at := _worst(is_now[known], then[known], scale[known])) is not None:
            raise RuntimeError(
                f"the {name} of a configuration is {is_now[known][at]:.6g}, but {then[known][at]:.6g} in the program that "
                "was compiled earlier: it depends on a variable that was changed since then, which must be made an "
                "attribute of the problem"
            )


# Draws.


@partial(quickly_compiled, static_argnames="count")
def _draws(problem: ProblemView, key: Array, count: int) -> Array:
    return problem.sample_prior(key, count).astype(jnp.float32)


def _drawn(problem: ProblemView, seed: int = 20) -> Array:
    """Prior draws, the same for every problem with this prior."""
    count = max(FEWEST, min(DRAWS, LARGEST_NUMBER // max(1, math.prod(problem.shape))))
    return _draws(problem, jax.random.key(seed, impl=GENERATOR), count)


def _check_draws(problem: ProblemView, x: Array) -> None:
    """Refuse draws that are not finite, or do not depend on the key or on the row."""
    draws, others = np.asarray(x), np.asarray(_drawn(problem, seed=21))
    if not np.isfinite(draws).all():
        odd = np.sum(~np.isfinite(draws.reshape(len(draws), -1)).all(axis=1))
        raise ValueError(f"sample_prior gives infinite or NaN configurations in {odd} of {len(draws)} draws")
    if np.array_equal(draws, others):
        raise ValueError("sample_prior gives the same draws for two keys; it must take all randomness from its key")
    if np.array_equal(draws, np.roll(draws, 1, axis=0)):
        raise ValueError(f"sample_prior gives {len(draws)} equal configurations; its rows must be independent draws")


# What the checks compare.


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


_measured = quickly_compiled(_measure)


def _spread(x: np.ndarray) -> np.ndarray:
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


def _worst(seen: np.ndarray, expected: np.ndarray, scale: np.ndarray) -> int | None:
    """The draw at which two numbers differ most, if by more than rounding explains; None where both are not finite."""
    usable = np.isfinite(seen) & np.isfinite(expected)
    odd = np.isfinite(seen) != np.isfinite(expected)
    if odd.mean() > EXCEPTIONS:
        return int(np.argmax(odd))
    apart = np.where(usable, np.abs(seen - expected) / np.maximum(scale, 1e-30), 0.0)
    worst = int(np.argmax(apart))
    return worst if apart[worst] > ROUNDING else None


def _scale(value: np.ndarray) -> np.ndarray:
    """Size of a number in which its rounding is measured: its own, and the median distance from the median."""
    known = value[np.isfinite(value)].astype(float)
    middle = float(np.median(np.abs(known - np.median(known)))) if known.size else 0.0
    return np.abs(value.astype(float)) + middle


# The checks.


def _check_gradients(found: Found) -> None:
    for name in ("energy", "log_prior"):
        of = found[name]
        # The constant of log_prior is free, so only differences count; that of the energy is not.
        constant = 0.0 if name == "energy" or "own_value" not in of else np.nanmedian(of["own_value"] - of["value"])
        if "own_value" in of:
            value = of["own_value"] - constant
            if (at := _worst(value, of["value"], _scale(of["value"]))) is not None:
                raise ValueError(
                    f"{name}_and_grad gives {value[at]:.6g} on a prior draw on which {name} gives {of['value'][at]:.6g}"
                )
            if (at := _worst(of["own_slope"], of["slope"], of["size"])) is not None:
                raise ValueError(
                    f"the gradient of {name}_and_grad along a random direction is {of['own_slope'][at]:.6g} on a prior "
                    f"draw, on which the derivative of {name} is {of['slope'][at]:.6g}"
                )
        _check_derivative(name, of)


def _check_derivative(name: str, of: Found) -> None:
    """Differences against the derivative, on the draws on which two of them agree: no kink, no core, no rounding."""
    wide, narrow, slope = (of[part].astype(float) for part in ("wide", "narrow", "slope"))
    noise = 1e-6 * _scale(of["value"]) / STEP
    reliable = (np.abs(wide - narrow) + noise < RELIABLE * np.abs(narrow)) & np.isfinite(slope)
    if reliable.mean() < ENOUGH:
        return
    apart = np.abs(narrow[reliable] - slope[reliable]) / np.abs(narrow[reliable])
    if np.median(apart) > WRONG:
        at = np.flatnonzero(reliable)[int(np.argmax(apart))]
        raise ValueError(
            f"the derivative of {name} along a random direction is {slope[at]:.6g} on a prior draw by automatic "
            f"differentiation, and {narrow[at]:.6g} by differences of its values"
        )


def _check_basis(found: Found) -> None:
    if "basis" not in found:
        return
    basis, log_prior = found["basis"], found["log_prior"]["value"]
    if (at := _worst(basis["norm"], basis["own_norm"], basis["own_norm"])) is not None:
        raise ValueError(
            f"the basis is not orthonormal: a configuration with sum of squares {basis['own_norm'][at]:.6g} has "
            f"{basis['norm'][at]:.6g} in its modes"
        )
    if basis["back"] > ROUNDING * basis["largest"]:
        raise ValueError(
            f"from_modes(to_modes(x)) of the basis differs from x by up to {basis['back']:.3g}; it must give x back"
        )
    constant = np.median(basis["log_prior"] - log_prior)
    if (at := _worst(basis["log_prior"] - constant, log_prior, _scale(log_prior))) is not None:
        raise ValueError(
            f"the precision of the basis is not that of the prior: it gives a prior draw a log density of "
            f"{basis['log_prior'][at]:.6g}, up to a constant, and log_prior gives {log_prior[at] + constant:.6g}"
        )


def _check_prior(problem: ProblemView, x: Array, spread: np.ndarray, found: Found) -> None:
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


def _check_symmetries(found: Found) -> None:
    for number, (pushed, length) in enumerate(found["isometry"]):
        for name, word in (("energy", "the energy"), ("log_prior", "log_prior")):
            value, turned = found[name]["value"], found[name]["turned"][number]
            if (at := _worst(turned, value, _scale(value))) is not None:
                raise ValueError(
                    f"symmetry {number} changes {word} of a prior draw from {value[at]:.6g} to {turned[at]:.6g}; "
                    "it must keep it"
                )
        if (at := _worst(pushed, length, length)) is not None:
            raise ValueError(
                f"symmetry {number} turns a displacement of length {length[at]:.6g} into one of {pushed[at]:.6g}; "
                "it must keep lengths"
            )


def check_couplings(problem: ProblemView, rebuilt: Callable[[str, float], Any]) -> None:
    """Refuse couplings by which U does not change as declared: by (new - old) * factor * observable.

    Parameters
    ----------
    problem
        The problem.
    rebuilt
        `rebuilt(name, value)` is the same problem at another value of a coupling, or None where it cannot be built.  Where
        the problem that is built at the declared value has other energies, that value is wrong.

    Examples
    --------
    >>> model = qp.problem.view(lattices.phi6(L=8, mu2=2.29))
    >>> check_couplings(model, lambda name, value: lattices.phi6(L=8, mu2=value) if name == "mu2" else None)
    """
    with own_settings(), np.errstate(all="ignore"):
        x, energy, seen = None, np.empty(0), {}
        for name, term in problem.couplings.items():
            value, observable, factor = float(term[0]), term[1], float(term[2])
            new = value + 0.1 * max(1.0, abs(value))
            same, other = rebuilt(name, value), rebuilt(name, new)
            if same is None or other is None:
                continue
            if x is None:
                x = _drawn(problem.as_argument())
                energy, seen = jax.device_get(_energy_and_observables(problem.as_argument(), x))
            scale = _scale(energy)
            at_value = np.asarray(_energy_and_observables(view(same).as_argument(), x)[0])
            if (at := _worst(at_value, energy, scale)) is not None:
                raise ValueError(
                    f"the coupling {name!r} says that its value is {value:g}, but the problem built with that value has "
                    f"U = {at_value[at]:.6g} on a prior draw instead of {energy[at]:.6g}"
                )
            moved = np.asarray(_energy_and_observables(view(other).as_argument(), x)[0])
            amount = seen["energy"] if observable == "energy" else seen[observable]
            expected = (new - value) * factor * amount.astype(float)
            change = moved.astype(float) - at_value
            # Both terms may be small differences of large energies.
            noise = 1e-6 / ROUNDING * (np.abs(energy.astype(float)) + np.abs(moved.astype(float)))
            if (at := _worst(change, expected, np.abs(expected) + _scale(expected) + noise)) is not None:
                raise ValueError(
                    f"the coupling {name!r} says that U changes by {expected[at]:.6g} on a prior draw when {name} goes from "
                    f"{value:g} to {new:g} (factor {factor:g} times {observable}), but it changes by {change[at]:.6g}"
                )


def _energy_and_observables_of(problem: ProblemView, x: Array) -> tuple[Array, dict[str, Array]]:
    energy = jax.vmap(problem.energy)(x)
    return energy, {**jax.vmap(problem.observe)(x), "energy": energy}


_energy_and_observables = quickly_compiled(_energy_and_observables_of)


def _rebuilt(problem: ProblemView, name: str, value: float) -> Any:
    """The problem with another value of the argument or attribute called like a coupling; None where that is not possible.

    An object is built again by its own constructor, because attributes may follow from each other.  Only a class that has
    none is copied and its attribute set.
    """
    own: Any = problem.problem
    if not _is_number(getattr(own, name, "none")):
        return None
    try:
        if dataclasses.is_dataclass(own):
            return dataclasses.replace(own, **{name: value})  # type: ignore[type-var]
        if type(own).__init__ is object.__init__:
            other = copy.copy(own)
            setattr(other, name, value)
            return other
        arguments = {p: getattr(own, p) for p in inspect.signature(type(own)).parameters}
        if name not in arguments:
            return None
        again = type(own)(**arguments)
        # A constructor that does not give the same state back does not keep its arguments as they were.
        if ObjectState(again) != ObjectState(own):
            return None
        return type(own)(**(arguments | {name: value}))
    except Exception:  # whatever a constructor says: the problem cannot be built in this way
        return None
