"""`quenchphys plot`: the figure of a result or of a ladder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from workflows.commands import Command, Exit, arguments


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a result, or a ladder")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        required=True,
        help="picture: .png, .pdf or .svg; an existing one is replaced",
    )


def run(chosen: Namespace) -> Exit:
    import observables
    import quenchphys as qp
    from workflows.commands.output import read
    from workflows.results import save_figure

    arguments.check_picture(chosen.out)
    found = read(chosen.file)
    if isinstance(found, qp.Ladder):
        observables.plot.ladder(found)[0].figure.savefig(chosen.out, dpi=160)
    elif isinstance(found, qp.Walk):
        raise ValueError(f"{chosen.file} holds a walk, which has no figure of its own; plot the result it belongs to.")
    else:
        save_figure(found, chosen.out)
    print(f"drawn in {chosen.out}")
    return Exit.TRUSTED


COMMAND = Command(
    "plot",
    "Draw the figure of a result or of a ladder",
    add_arguments,
    run,
    examples=("plot run.nc --out run.png",),
)
