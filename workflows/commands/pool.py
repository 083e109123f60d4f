"""`quenchphys pool`: runs of different seeds joined into one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from workflows.commands import Command, Exit


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="results of one workflow, or ladders")
    parser.add_argument("--out", type=Path, metavar="FILE", required=True, help="netCDF file to write")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def run(chosen: Namespace) -> Exit:
    import observables
    import quenchphys as qp
    from workflows.commands.output import trust
    from workflows.joined_runs import pool
    from workflows.results import summary

    joined = pool(chosen.files, out=chosen.out, overwrite=chosen.overwrite)
    if isinstance(joined, qp.Ladder):
        observables.report(joined)
    else:
        print(summary(joined))
    print(f"{len(chosen.files)} runs joined in {chosen.out}")
    return trust(joined)


COMMAND = Command(
    "pool",
    "Join runs of different seeds into one with smaller errors",
    add_arguments,
    run,
    "The runs must have the same model and settings and different seeds.  Ladders become one ladder with all replicas; "
    "results are averaged number by number, with equal weights.",
    ("pool seed_*.nc --out all.nc",),
)
