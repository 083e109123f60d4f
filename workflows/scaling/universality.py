"""Universality classes: the critical ratios and the correction to scaling that a whole class of models shares.

B* = 1 - <m^4>/(3 <m^2>^2) and (xi/L)* at the critical point do not depend on the model, only on its class and on the shape
of the lattice; here the periodic square and cube.  The Ising class holds every field with one component and the symmetry
phi -> -phi.

dim  B*           (xi/L)*      omega  from
2    0.61069      0.905049     7/4    Salas and Sokal 2000; omega is that of the regular part of the susceptibility
3    0.46547(1)   0.64310(5)   0.830  Hasenbusch 2010, Kos et al. 2016
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lattices.torus import Torus
from quenchphys.problem import view


@dataclass(frozen=True)
class Universality:
    """What is known of a class at its critical point."""

    ratios: Mapping[str, float]
    """B* and (xi/L)*, as "binder" and "ratio"."""
    omega: float
    """Exponent of the leading correction to scaling."""


CLASSES: Mapping[str, Mapping[int, Universality]] = {
    "ising": {
        2: Universality({"binder": 0.61069, "ratio": 0.905049}, 1.75),
        3: Universality({"binder": 1 - 1.60356 / 3, "ratio": 0.6431}, 0.83),
    }
}


def universality_of(name: Any, problem: Any) -> Universality | None:
    """What is known of the class on the lattice of a problem; refused where that lattice has other ratios."""
    if name is None:
        return None
    if name not in CLASSES:
        raise ValueError(f"There is no universality class {name!r}; there are {', '.join(map(repr, CLASSES))}.")
    lattice = getattr(view(problem).problem, "lattice", None)
    shape = lattice.shape if isinstance(lattice, Torus) else ()
    known = CLASSES[name]
    if len(set(shape)) != 1 or len(shape) not in known:
        what = f"a lattice of {' x '.join(map(str, shape))} sites" if shape else f"a {type(lattice).__name__}"
        raise ValueError(
            f"The critical ratios of the class {name!r} are known on periodic squares and cubes; {what} has others.  Leave "
            "universality out, and they are fitted."
        )
    return known[len(shape)]
