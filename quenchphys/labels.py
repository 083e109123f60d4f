"""The labels of a problem in files: name, parameters, couplings, phases and axes, as plain values.

Labels that no file can hold are refused before anything is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from quenchphys.plain_values import finite, in_short, plain, real
from quenchphys.problem import ProblemView

# Axes and variables that stand beside the configurations of a ladder or a walk.
TAKEN = frozenset({"replica", "sample", "level", "particle", "field", "group", "sweep", "chain", "draw", "node"})


def labels_of(problem: ProblemView) -> dict[str, Any]:
    """Name, parameters, couplings and phases of a problem, as numbers, texts, lists and dicts.

    Parameters
    ----------
    problem
        Its optional attributes may hold numpy's and JAX's numbers as well.

    Returns
    -------
    dict
        model, parameters, couplings {name: [value, observable, factor]}, phases {name: [observable, low, high]} with None
        for an infinite bound, because JSON has no infinity.

    Raises
    ------
    TypeError, ValueError
        If one of them is something else.

    Examples
    --------
    >>> labels_of(view(lattices.phi6(L=4, mu2=2.3)))["couplings"]["mu2"]
    [2.3, 'phi2', 0.5]
    """
    return {
        "model": problem.name,
        "parameters": plain("parameters", _dict("parameters", problem, "numbers, texts, lists and dicts")),
        "couplings": {
            str(name): _term(f"the coupling {name!r}", term)
            for name, term in _dict("couplings", problem, "name: (value, observable, factor)").items()
        },
        "phases": {
            str(name): _phase(f"the phase {name!r}", term)
            for name, term in _dict("phases", problem, "name: (observable, low, high)").items()
        },
    }


def check_labels(problem: ProblemView, beside: frozenset[str] = frozenset()) -> None:
    """Refuse labels that no file can hold: values that are not plain, names with "/", names that are taken.

    Parameters
    ----------
    problem
        Whose functions were checked before.
    beside
        Variables that stand beside the observables in the file.
    """
    labels_of(problem)
    configuration = jax.eval_shape(lambda key: problem.sample_prior(key, 1), jax.random.key(0))
    shape = configuration.shape[1:]
    dims = problem.dims
    if len(dims) != len(shape):
        raise ValueError(
            f"dims must be the names of the {len(shape)} axes of a configuration of the shape {shape}; "
            f"{in_short(dims)} was given"
        )
    observed = jax.eval_shape(problem.observe, jax.ShapeDtypeStruct(shape, configuration.dtype))
    for what, names in (("an axis", dims), ("an observable", observed)):
        for name in names:
            if not isinstance(name, str) or not name or "/" in name:
                raise ValueError(f'{what} may not be called {name!r}: names in files are texts without "/"')
    for name in dims:
        if name in TAKEN or name in observed or dims.count(name) > 1:
            raise ValueError(f"an axis may not be called {name!r}: something else in the file has that name")
    if taken := beside & set(observed):
        raise ValueError(f"an observable may not be called {sorted(taken)[0]!r}: the record of a walk uses that name itself")


def _dict(name: str, problem: ProblemView, form: str) -> Mapping[Any, Any]:
    try:
        return getattr(problem, name)
    except (TypeError, ValueError):
        raise TypeError(f"{name} of a problem must be a dict of {form}") from None


def _term(what: str, term: Any) -> list[Any]:
    value, observable, factor = _three(what, term, "(value, observable, factor)")
    return [finite(f"the value of {what}", value), _text(what, observable), finite(f"the factor of {what}", factor)]


def _phase(what: str, term: Any) -> list[Any]:
    observable, *bounds = _three(what, term, "(observable, low, high)")
    low, high = (real(f"a bound of {what}", bound) for bound in bounds)
    if not low < high:
        raise ValueError(f"the bounds of {what} must be two increasing numbers; {low:g} and {high:g} were given")
    return [_text(what, observable), *(bound if math.isfinite(bound) else None for bound in (low, high))]


def _three(what: str, term: Any, form: str) -> tuple[Any, Any, Any]:
    if not isinstance(term, Sequence) or isinstance(term, str) or len(term) != 3:
        raise ValueError(f"{what} of a problem must be {form}; {in_short(term)} was given")
    return term[0], term[1], term[2]


def _text(what: str, observable: Any) -> str:
    if not isinstance(observable, str):
        raise TypeError(f"{what} must name its observable by a text; {in_short(observable)} was given")
    return observable
