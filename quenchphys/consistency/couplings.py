"""Couplings of a problem: U at two values of one differs as it declares."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from quenchphys.consistency.comparison import ROUNDING, scale_of, worst
from quenchphys.consistency.measurement import drawn, values_at
from quenchphys.object_state import ObjectState
from quenchphys.parallel.environment import own_settings
from quenchphys.problem import ProblemView, view


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
        x, seen = None, {}
        for name, term in problem.couplings.items():
            value, observable, factor = float(term[0]), term[1], float(term[2])
            new = value + 0.1 * max(1.0, abs(value))
            same, other = rebuilt(name, value), rebuilt(name, new)
            if same is None or other is None:
                continue
            if x is None:
                x = drawn(problem.as_argument())
                seen = jax.device_get(values_at(problem.as_argument(), x))
            energy = seen["energy"]
            at_value = np.asarray(values_at(view(same).as_argument(), x)["energy"])
            if (at := worst(at_value, energy, scale_of(energy))) is not None:
                raise ValueError(
                    f"the coupling {name!r} says that its value is {value:g}, but the problem built with that value has "
                    f"U = {at_value[at]:.6g} on a prior draw instead of {energy[at]:.6g}"
                )
            moved = np.asarray(values_at(view(other).as_argument(), x)["energy"])
            expected = (new - value) * factor * seen[observable].astype(float)
            change = moved.astype(float) - at_value
            # Both terms may be small differences of large energies.
            noise = 1e-6 / ROUNDING * (np.abs(energy.astype(float)) + np.abs(moved.astype(float)))
            if (at := worst(change, expected, np.abs(expected) + scale_of(expected) + noise)) is not None:
                raise ValueError(
                    f"the coupling {name!r} says that U changes by {expected[at]:.6g} on a prior draw when {name} goes from "
                    f"{value:g} to {new:g} (factor {factor:g} times {observable}), but it changes by {change[at]:.6g}"
                )


def rebuilt_by_itself(problem: ProblemView, name: str, value: float) -> Any:
    """The problem at another value of a coupling: by its own `with_coupling`, or by an argument or attribute of that name.

    An object is built again by its own constructor, because attributes may follow from each other.  Where that is not
    possible it is copied and its attribute set.  None where neither is possible, or U does not depend on the attribute.
    """
    own: Any = problem.problem
    if problem.defines("with_coupling"):
        return own.with_coupling(name, value)
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
        # A constructor that does not give the same state back does not keep its arguments as they were.
        if name in arguments and ObjectState(type(own)(**arguments)) == ObjectState(own):
            return type(own)(**(arguments | {name: value}))
    except Exception:  # whatever a constructor says: the problem cannot be built in this way
        pass
    return _with_attribute(problem, name, value)


def _with_attribute(problem: ProblemView, name: str, value: float) -> Any:
    """A copy of an object with another value of an attribute; None where U does not follow it."""
    own: Any = problem.problem
    try:
        other = copy.copy(own)
        setattr(other, name, value)
    except Exception:  # an object that cannot be copied or changed
        return None
    if value == getattr(own, name):
        return other
    x = drawn(problem.as_argument())
    here, there = (np.asarray(values_at(one.as_argument(), x)["energy"]) for one in (problem, view(other)))
    return None if np.array_equal(here, there, equal_nan=True) else other


def _is_number(value: Any) -> bool:
    known = isinstance(value, int | float | np.number | np.ndarray | jax.Array)
    return known and np.ndim(value) == 0 and np.issubdtype(np.result_type(value), np.number)
