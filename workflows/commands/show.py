"""`quenchphys show`: the contents of a file as text."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import observables
import quenchphys as qp
from workflows.commands import Command, Exit
from workflows.commands.output import read, trust
from workflows.results import summary


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a result, a ladder or a walk")


def run(chosen: Namespace) -> Exit:
    found = read(chosen.file)
    if isinstance(found, qp.Ladder | qp.Walk):
        print(observables.report(found))
    else:
        print(summary(found))
    return trust(found)


COMMAND = Command(
    "show",
    "Show the table of a result, or the report of a ladder or a walk, and whether to trust it",
    add_arguments,
    run,
    examples=("show run.nc",),
)
