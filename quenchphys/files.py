"""Files of finished runs, read back as the ladder or the walk they hold."""

from __future__ import annotations

import os

from quenchphys.ladder import Ladder
from quenchphys.storage.netcdf import read_netcdf
from quenchphys.storage.schema import LADDER_FORMAT, OLDER_LADDER_FORMATS, WALK_FORMAT
from quenchphys.walk import Walk


def load(path: str | os.PathLike[str]) -> Ladder | Walk:
    """Read the ladder or the walk that a file holds.

    The attribute `format` of the file tells which of the two it is.  Where only one will do, `Ladder.load` and `Walk.load`
    refuse the other.  Nothing stored in a file is ever executed.

    Parameters
    ----------
    path
        A file that `Ladder.save` or `Walk.save` wrote.

    Returns
    -------
    Ladder or Walk
        The run as it was saved, in memory.

    Examples
    --------
    >>> ladder = qp.load("phi6.nc")
    >>> ladder.outcome.trusted
    True
    """
    tree = read_netcdf(path, "ladder or walk")
    written = tree.attrs.get("format")
    if written == WALK_FORMAT:
        return Walk.of_file(tree, path)
    if written not in (None, LADDER_FORMAT, *OLDER_LADDER_FORMATS):
        raise ValueError(
            f"{path} has the format {str(written)!r}, which this version of quenchphys cannot read; it reads "
            f"{LADDER_FORMAT!r} and {WALK_FORMAT!r}."
        )
    return Ladder.of_file(tree, path)
