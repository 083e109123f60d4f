"""The state of a plain object, as a value that can be compared: what a compiled program took from it as constants.

A problem that is not a JAX pytree is compiled in, attributes and all.  If one of them is changed, the program no longer
belongs to it, but the object is still the same object.  So programs are kept by the object and its state: attributes of the
instance and of its classes, and what these contain.  Numbers, texts and arrays count by value; a function by its code, its
closure and the global numbers, texts and arrays that it names; anything else by identity.  What a function reads by other
ways, from a file or through another module, is no part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), np.generic)
WHOLE = (BuiltinFunctionType, CodeType, ModuleType, type)
ARRAYS = (np.ndarray, jax.Array)
# What Python itself keeps in a class, or changes as it likes.
SPECIAL = (
    "__dict__",
    "__weakref__",
    "__doc__",
    "__module__",
    "__annotations__",
    "__annotate__",
    "__static_attributes__",
)
LIBRARIES = ("abc", "builtins", "collections", "enum", "functools", "jax", "jaxlib", "numpy", "types", "typing")
DEEPEST = 16  # attributes of attributes; deeper ones count by identity


class ObjectState:
    """The state of an object at one moment; two are equal if nothing was changed between them.

    Parameters
    ----------
    problem
        Any object.

    Examples
    --------
    >>> before = ObjectState(model)
    >>> model.tilt = 0.7
    >>> ObjectState(model) == before
    False
    """

    __slots__ = ("_hash", "_parts")

    def __init__(self, problem: Any) -> None:
        self._parts = _frozen(problem, {}, 0)
        self._hash = hash(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectState) and self._hash == other._hash and self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash


class _Same:
    """An object that equals only itself.  It is held, so that no other object can take its place in memory."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._held is other._held

    def __hash__(self) -> int:
        return id(self._held)


def _frozen(value: Any, seen: dict[int, int], depth: int) -> Any:
    """Something hashable that is equal for equal values; an object that contains itself is named by its number."""
    if isinstance(value, PLAIN):
        return type(value).__name__, repr(value)  # a NaN equals itself, and 1 is not 1.0
    if isinstance(value, ARRAYS):
        return _array(value)
    if isinstance(value, WHOLE) or depth > DEEPEST:
        return _Same(value)
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    parts = _parts(value)
    return _Same(value) if parts is None else (_Same(type(value)), *(_frozen(part, seen, depth + 1) for part in parts))


def _parts(value: Any) -> list[Any] | None:
    """What an object consists of; None for one that Python cannot see into."""
    if isinstance(value, FunctionType):
        return [value.__code__, value.__defaults__, value.__kwdefaults__, *_cells(value), *_globals(value)]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    inside: list[Any] | None = None
    if isinstance(value, Mapping):
        inside = [part for item in value.items() for part in item]
    elif isinstance(value, list | tuple):
        inside = list(value)
    elif isinstance(value, set | frozenset):
        inside = sorted(value, key=repr)
    if type(value) in (dict, list, tuple, set, frozenset):
        return inside
    own = _attributes(value)
    if own is None:
        return inside
    return [*(inside or ()), *(part for item in own.items() for part in item)]


def _cells(function: FunctionType) -> list[Any]:
    """The variables in the closure of a function."""
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            found.append("empty")
    return found


def _globals(function: FunctionType) -> list[Any]:
    """The global numbers, texts and arrays whose names occur in a function."""
    names = sorted(_names(function.__code__) & function.__globals__.keys())
    values = ((name, function.__globals__[name]) for name in names)
    return [part for name, value in values if isinstance(value, (*PLAIN, *ARRAYS)) for part in (name, value)]


def _names(code: CodeType) -> set[str]:
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


def _attributes(value: Any) -> dict[str, Any] | None:
    """Attributes of an instance and of its classes; None for an object that keeps none that Python can see."""
    classes = [kind for kind in type(value).__mro__ if kind is not object]
    slots = [name for kind in classes for name in _slots(kind) if hasattr(value, name)]
    if not hasattr(value, "__dict__") and not slots:
        return None
    # Cached properties follow from the rest, and appear when they are first used.
    cached = {name for kind in classes for name, part in vars(kind).items() if isinstance(part, cached_property)}
    found = {name: part for name, part in getattr(value, "__dict__", {}).items() if name not in cached}
    found |= {name: getattr(value, name) for name in slots}
    for number, kind in enumerate(classes):
        if not _is_library(kind):
            shared = {name: part for name, part in vars(kind).items() if name not in SPECIAL}
            found |= {
                f"{number} {name}": part for name, part in shared.items() if not isinstance(part, cached_property)
            }
    return found


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in SPECIAL)


def _is_library(kind: type) -> bool:
    """Classes of Python, JAX and numpy do not change."""
    return kind.__module__.partition(".")[0] in LIBRARIES


def _array(value: Any) -> Any:
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    if isinstance(value, jax.core.Tracer) or (isinstance(value, jax.Array) and not value.is_fully_addressable):
        return _Same(value)
    array = np.asarray(value)
    if array.dtype.hasobject:
        return _Same(value)
    return "array", str(array.dtype), array.shape, hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()
