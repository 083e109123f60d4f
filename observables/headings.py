"""What a run or a result is of, in one line: model, lattice, couplings, seed and time, from its attributes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Attributes = Mapping[Any, Any]
MOST_SEEDS = 8  # that a line has room for


def heading_of(attrs: Attributes) -> str:
    """Model, lattice, couplings, seed and time.

    Parameters
    ----------
    attrs : mapping
        Attributes of a ladder, a walk or a result.

    Returns
    -------
    str
        Such as "phi6, L = 8, lam = -1, eta = 0.2, seed 0, 16 s".
    """
    words = [str(attrs.get("problem", "a problem")), *size_of(attrs)]
    words += [f"{name} = {value:.6g}" for name, value in given_couplings(attrs).items()]
    words += seeds_of(attrs)
    words += [f"{float(attrs['wall_time']):.3g} s"] if "wall_time" in attrs else []
    return ", ".join(words)


def seeds_of(attrs: Attributes) -> list[str]:
    """The seed, or the seeds of runs that were joined, and how many where they are many; nothing if there is none."""
    seeds = json.loads(attrs.get("seeds", "[]"))
    if len(seeds) > MOST_SEEDS:
        return [f"{len(seeds)} seeds"]
    if seeds:
        return [f"seeds {' '.join(map(str, seeds))}"]
    return [f"seed {attrs['seed']}"] if "seed" in attrs else []


def size_of(attrs: Attributes) -> list[str]:
    """L of a square, else the lengths; nothing for a problem without a shape."""
    try:
        shape = json.loads(attrs.get("parameters", "{}")).get("shape")
    except (TypeError, ValueError, AttributeError):
        return []
    if not isinstance(shape, list) or not shape:
        return []
    square = len(shape) == 2 and shape[0] == shape[1]
    return [f"L = {shape[0]}" if square else " x ".join(map(str, shape))]


def given_couplings(attrs: Attributes) -> dict[str, float]:
    """Couplings that were given; the one that a study looks for is left out."""
    couplings = json.loads(attrs.get("couplings", "{}"))
    return {name: float(term[0]) for name, term in couplings.items() if name != attrs.get("coupling")}
