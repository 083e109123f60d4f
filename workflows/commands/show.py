"""`quenchphys show`: the contents of a file as text, or as a flat table for other programs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from workflows.commands import Command, Exit


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a result, a ladder or a walk")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="every number as a row of a flat table, with its error and axes")
    form.add_argument("--json", action="store_true", help="every number and every attribute as JSON")


def run(chosen: Namespace) -> Exit:
    import observables
    import quenchphys as qp
    from workflows.commands.output import read, trust
    from workflows.results import summary
    from workflows.results.flat import to_dataframe, to_json

    found = read(chosen.file)
    if chosen.csv:
        print(to_dataframe(found).to_csv(index=False), end="")
    elif chosen.json:
        print(to_json(found))
    elif isinstance(found, qp.Ladder):
        observables.report(found)
    elif isinstance(found, qp.Walk):
        print(found.report())
    else:
        print(summary(found))
    return trust(found)


COMMAND = Command(
    "show",
    "Show the table of a result, or the report of a ladder or a walk, and whether to trust it",
    add_arguments,
    run,
    examples=("show run.nc", "show run.nc --csv > run.csv"),
)
