"""What commands print, draw and read."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from workflows.commands import Exit

if TYPE_CHECKING:  # the help of the command line does without JAX
    import xarray as xr

    import quenchphys as qp


def finish(result: xr.Dataset, chosen: Namespace) -> Exit:
    """Print the table of a result, and draw its figure if --plot was given."""
    from workflows.results import save_figure, summary

    print(summary(result))
    if chosen.plot is not None:
        print(f"drawn in {save_figure(result, chosen.plot)}")
    return trust(result)


def trust(found: xr.Dataset | qp.Ladder | qp.Walk) -> Exit:
    """Exit code of a result, a ladder or a walk."""
    import quenchphys as qp

    if isinstance(found, qp.Ladder):
        trusted = found.outcome.trusted
    elif isinstance(found, qp.Walk):
        trusted = float(found.attrs["undefined"]) == 0
    else:
        trusted = bool(found.attrs["trusted"])
    return Exit.TRUSTED if trusted else Exit.DOUBTFUL


def read(path: Path) -> xr.Dataset | qp.Ladder | qp.Walk:
    """The result of a workflow, a ladder or a walk."""
    import quenchphys as qp
    from workflows.store import load_result

    if not path.exists():
        raise ValueError(f"There is no file {path}.")
    try:
        return load_result(path)
    except ValueError:
        return qp.load(path)
