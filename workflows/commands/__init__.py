"""The commands of `quenchphys`: one module for each, which registers itself by defining `COMMAND`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from workflows.registry import defined_in


class Exit(IntEnum):
    """Exit codes of the command."""

    TRUSTED = 0
    DOUBTFUL = 1
    WRONG_REQUEST = 2
    INTERRUPTED = 130


class Command(NamedTuple):
    """One command: its name, its help, its arguments, and the function it runs."""

    name: str
    summary: str
    """One line, without a full stop."""
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], Exit]
    description: str = ""
    """Further sentences of the help."""
    examples: tuple[str, ...] = ()
    """Lines that can be typed after `quenchphys`, for the help."""


def all_commands() -> list[Command]:
    """Every command, in alphabetical order."""
    return defined_in(__name__, __path__, "COMMAND")
