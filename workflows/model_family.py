"""Families of models: one model with one coupling left open."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lattices.models import MODELS
from quenchphys.identity import fingerprint
from quenchphys.plain_values import plain

GEOMETRY = ("L", "dim", "shape")
REFERENCES = (1.0, -1.0, 0.1, -0.1, 10.0)  # values of the open coupling at which a family is looked at, the first allowed

Model = str | Callable[..., Any]


@dataclass(frozen=True)
class ModelFamily:
    """All models that differ in the value of one coupling."""

    name: str
    build: Callable[..., Any]
    coupling: str
    fixed: Mapping[str, Any]

    def at(self, value: float) -> Any:
        """The model at this value of the open coupling."""
        return self.build(**self.fixed, **{self.coupling: float(value)})

    def request(self) -> dict[str, Any]:
        """What identifies the family, in plain numbers, strings and lists."""
        fixed = plain("couplings", dict(sorted(self.fixed.items())))
        return {"model": self.name, "coupling": self.coupling, "fixed": fixed, "problem": self._fingerprint()}

    def _fingerprint(self) -> dict[str, Any] | None:
        """The fingerprint at a value of the coupling that no bracket has a part in; None if the model allows none of them.

        What a study keeps is compared with the problem it was sampled from as well, see `workflows.store`.
        """
        for value in REFERENCES:
            try:
                return fingerprint(self.at(value))
            except Exception:  # whatever it is by which a user's function refuses this value, another may do
                continue
        return None


def family_of(
    model: Model,
    coupling: str,
    couplings: Mapping[str, float],
    L: int | None = None,
    shape: Sequence[int] | None = None,
) -> ModelFamily:
    """A family from the name of a model ("phi6", "phi4") or from any function that takes its couplings by name."""
    if isinstance(model, str):
        if model not in MODELS:
            raise ValueError(f"There is no model {model!r}; there are {', '.join(sorted(MODELS))}, or give a function.")
        name, build = model, MODELS[model]
    elif callable(model):
        name, build = getattr(model, "__name__", type(model).__name__), model
    else:
        raise TypeError(f"model must be a name such as 'phi6' or a function that builds a model; {model!r} was given.")
    fixed = dict(couplings) | {k: v for k, v in (("L", L), ("shape", shape)) if v is not None}
    _check_names(name, build, coupling, fixed)
    return ModelFamily(name, build, coupling, fixed)


def _check_names(name: str, build: Callable[..., Any], coupling: str, fixed: Mapping[str, Any]) -> None:
    parameters = inspect.signature(build).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = [p for p in parameters if p not in GEOMETRY]
    for given in (coupling, *fixed):
        if given not in parameters:
            raise ValueError(f"{name} has no coupling {given!r}; its couplings are {', '.join(known)}.")
    if coupling in fixed:
        raise ValueError(
            f"{coupling} is the coupling to be found, so it cannot be given ({fixed[coupling]!r}) as well."
        )
    for needed, parameter in parameters.items():
        if parameter.default is parameter.empty and needed != coupling and needed not in fixed:
            raise ValueError(f"{name} needs a value of {needed}, because {coupling} is the coupling to be found.")


def check_bracket(bracket: Any, coupling: str) -> tuple[float, float]:
    """Two different finite numbers in increasing order."""
    try:
        low, high = (float(end) for end in bracket)
    except (TypeError, ValueError):
        raise ValueError(f"bracket must be two values of {coupling}, such as (2.27, 2.30); got {bracket!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"bracket must be two finite values of {coupling}; got {bracket!r}.")
    if low >= high:
        how = "equal" if low == high else "reversed"
        raise ValueError(f"The ends of the bracket are {how}: got {low:g} and {high:g}, the lower one must come first.")
    return low, high
