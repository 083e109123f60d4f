"""`quenchphys report`: a result, a ladder or a walk as one HTML page."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from workflows.commands import Command, Exit


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a result, a ladder or a walk")
    parser.add_argument("--out", type=Path, metavar="FILE", required=True, help="the page: a file that ends in .html")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing page")


def run(chosen: Namespace) -> Exit:
    from quenchphys.storage.atomic_files import write_whole
    from workflows.commands.output import read, trust
    from workflows.report.contents import page_of

    check_page(chosen.out, chosen.overwrite)
    found = read(chosen.file)

    text = page_of(found, chosen.file)
    write_whole(chosen.out, lambda part: part.write_text(text, encoding="utf-8"), overwrite=chosen.overwrite)
    print(f"written to {chosen.out}")
    return trust(found)


def check_page(path: Path, overwrite: bool) -> None:
    """Refuse a page that could not be written, before anything is read."""
    if path.suffix != ".html":
        raise ValueError(f"A report ends in .html; got {path}.")
    if not path.parent.is_dir():
        raise ValueError(f"{path} cannot be written, because the directory {path.parent} does not exist.")
    if path.is_dir() or (path.exists() and not overwrite):
        raise FileExistsError(f"{path} exists already; choose another name, or replace it (--overwrite).")


COMMAND = Command(
    "report",
    "Write one HTML page with the verdict, numbers, figures, diagnostics and settings of a file",
    add_arguments,
    run,
    "The page contains everything it shows and needs no network.  Ladders and walks that a study kept beside its result are "
    "shown with it.",
    ("report run.nc --out run.html",),
)
