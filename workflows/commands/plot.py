"""`quenchphys plot`: the figure of a result, a ladder or a walk."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from workflows.commands import Command, Exit, arguments


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a result, a ladder or a walk")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        required=True,
        help="picture: .png, .pdf or .svg; an existing one is replaced",
    )
    arguments.add_style(parser)


def run(chosen: Namespace) -> Exit:
    import observables
    import quenchphys as qp
    from workflows.commands.output import read
    from workflows.results import save_figure

    arguments.check_picture(chosen.out, chosen.style)
    found = read(chosen.file)
    if isinstance(found, qp.Ladder | qp.Walk):
        with observables.plot.style(chosen.style):
            found.plot().savefig(chosen.out)
    else:
        save_figure(found, chosen.out, chosen.style)
    print(f"drawn in {chosen.out}")
    return Exit.TRUSTED


COMMAND = Command(
    "plot",
    "Draw the figure of a result, a ladder or a walk",
    add_arguments,
    run,
    examples=("plot run.nc --out run.pdf --style one-column",),
)
