"""What a result says about its own making: the settings, seed, time and versions of the study, and what repeats it."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import quenchphys as qp
from quenchphys.storage.attributes import software_attributes

FORMAT = "quenchphys result 1"
# Attributes of one ladder or one part of a walk, which say nothing about a study that has many.
OF_ONE_RUN = (
    "study", "undefined", "undefined_draws", "parts", "groups", "ladders", "replicas", "gradients_per_level",
    "pilot_gradients", "replica_outcomes",
)  # fmt: skip
NO_SETTINGS = ("workflow", "format", "problem")  # parts of a request

LONGEST = 200  # characters of a value that is written out

_typed: ContextVar[str] = ContextVar("typed", default="")


@contextmanager
def typed(arguments: Sequence[str]) -> Iterator[None]:
    """Results made inside were asked for on the command line, by these words after `quenchphys`."""
    token = _typed.set(shlex.join(["quenchphys", *arguments]))
    try:
        yield
    finally:
        _typed.reset(token)


def call_of(function: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """The call of a workflow that repeats it: what was typed, or Python with every argument that has not its default.

    Parameters
    ----------
    function
        The workflow.
    given
        Its arguments by name.

    Returns
    -------
    str
        Such as "workflows.coexistence(L=8, bracket=(2.25, 2.33))".
    """
    if _typed.get():
        return _typed.get()
    words = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            words += [f"{key}={_written(value)}" for key, value in given.get(name, {}).items()]
        elif name in given and name != "progress" and not _equal(given[name], parameter.default):
            words.append(f"{name}={_written(given[name])}")
    return f"workflows.{function.__name__}({', '.join(words)})"


def study_attributes(request: Mapping[str, Any], call: str, seconds: float, gradients: float) -> dict[str, Any]:
    """The attributes of a study.

    Parameters
    ----------
    request
        What was computed, with all settings.
    call
        What repeats it.
    seconds
        Time of all its ladders, walks and analysis.
    gradients
        Gradient evaluations of all its ladders and walks.
    """
    settings = {name: value for name, value in request.items() if name not in NO_SETTINGS}
    return {
        "format": FORMAT,
        "seed": settings.get("seed", 0),
        "settings": json.dumps(settings),
        "wall_time": float(seconds),
        "gradients": float(gradients),
        "command": call,
        "request": json.dumps(request),
        "quenchphys_version": qp.__version__,
        **software_attributes(),
    }


def _equal(given: Any, default: Any) -> bool:
    try:
        return bool(given == default)
    except ValueError:  # arrays
        return False


def _written(value: Any) -> str:
    """A value as it is written in Python; functions, models and paths by their names."""
    if hasattr(value, "energy"):
        return f"<{type(value).__name__}>"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if hasattr(value, "__fspath__"):
        return repr(str(value))
    if hasattr(value, "tolist"):
        value = value.tolist()
    text = repr(value)
    if len(text) <= LONGEST:
        return text
    if isinstance(value, list | tuple):
        return f"[{len(value)} values from {value[0]} to {value[-1]}]"
    return f"{text[:LONGEST]}..."
