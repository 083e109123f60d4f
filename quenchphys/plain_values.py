"""Plain values: what files and requests hold, as numbers, texts, lists and dicts of Python's own."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

BITS = 62  # of a whole number, so that small multiples of it still fit into 64


def plain(what: str, value: Any) -> Any:
    """The value with numpy's and JAX's numbers and arrays turned into Python's, at any depth.

    Parameters
    ----------
    what
        What the value is, for the refusal.
    value
        Numbers, texts, arrays, lists and dicts of these.

    Returns
    -------
    object
        What `json` can write and read back.

    Raises
    ------
    TypeError
        If there is something else in it.

    Examples
    --------
    >>> plain("parameters", {"L": np.int64(4), "h": np.arange(2.0)})
    {'L': 4, 'h': [0.0, 1.0]}
    """
    if value is None or isinstance(value, bool | str):
        return value if not isinstance(value, str) else str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(what, one) for key, one in value.items()}
    if isinstance(value, jax.core.Tracer):
        raise TypeError(f"{what} must be known numbers; a value inside a function that JAX traces was given")
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        array = np.asarray(value)
        # Numbers such as bfloat16 are no numpy types of their own.
        bare = array if array.dtype.kind in "biufU" else _as_float(what, value, array)
        return plain(what, bare.tolist())
    if isinstance(value, Sequence | set | frozenset):
        return [plain(what, one) for one in value]
    raise TypeError(f"{what} must be plain numbers, texts, lists and dicts; it contains {in_short(value)}")


def whole(name: str, value: Any, least: int, bits: int = BITS) -> int:
    """The value as an int, refused unless it is a whole number of at least `least` that has no more than so many bits.

    Parameters
    ----------
    name
        Of the setting, for the refusal.
    value
        Of any type that counts: int, numpy's integers, JAX's scalars.
    least
        Smallest value allowed.
    bits
        The value must be below 2^bits.

    Examples
    --------
    >>> whole("seed", np.int64(3), 0)
    3
    """
    try:
        number = None if isinstance(value, bool | np.bool_) or np.ndim(value) else operator.index(value)
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise TypeError(f"{name} must be a whole number; {in_short(value)} was given")
    if number < least:
        raise ValueError(f"{name} must be at least {least}; {number} was given")
    if number >= 1 << bits:
        raise ValueError(f"{name} must be below 2^{bits}; {number} was given")
    return number


def real(name: str, value: Any) -> float:
    """The value as a float, refused unless it is one real number, finite or not.

    Parameters
    ----------
    name
        Of the setting, for the refusal.
    value
        A number of Python, numpy or JAX.

    Examples
    --------
    >>> real("softness", np.float32(0.5))
    0.5
    """
    number = isinstance(value, int | float | np.number) or (hasattr(value, "dtype") and np.ndim(value) == 0)
    try:
        if number and not isinstance(value, bool | np.bool_ | complex | jax.core.Tracer):
            # The shortest decimal that means this float32: 0.9, not 0.8999999761581421.
            return float(str(value)) if isinstance(value, np.float32 | np.float16) else float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"{name} must be a number; {in_short(value)} was given")


def finite(name: str, value: Any) -> float:
    """As `real`, and refused unless it is finite.

    Examples
    --------
    >>> finite("step", 2)
    2.0
    """
    number = real(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; {number} was given")
    return number


def _as_float(what: str, value: Any, array: np.ndarray) -> np.ndarray:
    try:
        if array.dtype.kind not in "cO":
            return array.astype(float)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{what} must be plain numbers, texts, lists and dicts; it contains {in_short(value)}")


def in_short(value: Any) -> str:
    """A value in one short line."""
    return " ".join(repr(value).split())[:80]
