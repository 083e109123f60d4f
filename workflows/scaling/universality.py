"""Universality classes: the critical ratios that a whole class of models shares.

B* = 1 - <m^4>/(3 <m^2>^2) and (xi/L)* at the critical point do not depend on the model, only on its class and on the shape
of the lattice; here the periodic square and cube.  The Ising class holds every field with one component and the symmetry
phi -> -phi.

dim  B*           (xi/L)*      from
2    0.61069      0.905049     Salas and Sokal 2000
3    0.46547(1)   0.64310(5)   Hasenbusch 2010

The exponent omega of the leading correction is shared as well, but not taken from the class, because on small lattices it
may not lead: in phi^4 at lam = 1/4 up to L = 32 the approach looks like L^-1.25, not L^-1.75.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lattices.torus import Torus
from quenchphys.problem import view

Ratios = Mapping[str, float]  # B* and (xi/L)*, as "binder" and "ratio"
CLASSES: Mapping[str, Mapping[int, Ratios]] = {
    "ising": {
        2: {"binder": 0.61069, "ratio": 0.905049},
        3: {"binder": 1 - 1.60356 / 3, "ratio": 0.6431},
    }
}


def universality_of(name: Any, problem: Any) -> Ratios | None:
    """The critical ratios of a class on the lattice of a problem; refused where that lattice has others."""
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
