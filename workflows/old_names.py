"""Old names of keywords, which go on working with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take keywords by their old names, old="new", with a `FutureWarning` that gives the new one."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def with_old_names(*arguments: P.args, **named: P.kwargs) -> R:
            for old, new in names.items():
                if old not in named:
                    continue
                option = "--" + new.replace("_", "-")
                if new in named:
                    raise TypeError(f"{old} is the old name of {new} ({option}): give one of them, not both.")
                warnings.warn(
                    f"{old} is now called {new} ({option} on the command line), because it sets the pilot ladder and "
                    "nothing else.",
                    FutureWarning,
                    stacklevel=2,
                )
                named[new] = named.pop(old)
            return function(*arguments, **named)

        return with_old_names

    return decorate
