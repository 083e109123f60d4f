"""`quenchphys reproduce`: the tables and figures of the paper, with our numbers beside the printed ones."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from workflows.commands import Command, Exit, arguments


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which table or figure, see --list")
    parser.add_argument("--list", action="store_true", help="what there is, what it needs and how long it takes")
    parser.add_argument(
        "--effort",
        default="quick",
        metavar="EFFORT",
        help="quick (minutes), standard (within an hour on two cores) or paper (its settings); default: quick",
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="CSV files of the Bayesian networks")
    parser.add_argument(
        "--seed",
        type=arguments.whole_number,
        metavar="N",
        default=0,
        help="the same seed gives the same numbers (default: 0)",
    )
    arguments.add_output(parser)


def run(chosen: Namespace) -> Exit:
    import workflows
    from workflows.commands.output import finish
    from workflows.reproduction.reproduce_paper import chosen as experiment_of

    if chosen.list:
        print("\n".join(listing()))
        return Exit.TRUSTED
    if chosen.name is None:
        raise ValueError("Which table or figure?  Give its name; `quenchphys reproduce --list` shows all of them.")
    name = experiment_of(chosen.name).name
    chosen.out = chosen.out or Path(f"{name}-{chosen.effort}.nc")
    chosen.plot = chosen.plot or chosen.out.with_suffix(".png")
    files = arguments.files(chosen)
    result = workflows.reproduce(name, effort=chosen.effort, seed=chosen.seed, data=chosen.data, **files)
    return finish(result, chosen)


def listing() -> list[str]:
    """What --list prints."""
    from workflows.reproduction import experiments
    from workflows.reproduction.experiment import Effort

    lines = ["Tables and figures of the paper.  Times are for two idle cores; those of long runs are estimates.", ""]
    for one in experiments().values():
        times = ", ".join(f"{effort.value} {_time(one.minutes[effort])}" for effort in Effort)
        lines += [f"  {one.name:<16}{one.shows}", f"{'':18}{one.label} of the paper; needs {one.needs}; {times}", ""]
    lines.append("Run one with `quenchphys reproduce NAME --effort quick`.  It writes NAME-quick.nc and NAME-quick.png;")
    return [*lines, "the same command again continues where it was interrupted."]


def _time(minutes: float) -> str:
    if minutes < 1:
        return f"{max(5, 5 * round(minutes * 12))} s"
    if minutes < 120:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h" if minutes < 72 * 60 else f"{minutes / 1440:.0f} days"


COMMAND = Command(
    "reproduce",
    "Repeat a table or a figure of the paper, with our numbers beside the printed ones",
    add_arguments,
    run,
    examples=("reproduce --list", "reproduce path-length --effort quick"),
)
