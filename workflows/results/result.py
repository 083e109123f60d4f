"""What a kind of result consists of, and what tables and figures share: headings, numbers with errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import xarray as xr

from observables.headings import heading_of
from observables.numbers import number

if TYPE_CHECKING:  # matplotlib takes a second to import, and a table needs none of it
    from matplotlib.figure import Figure


class Result(NamedTuple):
    """How the result of one workflow is shown."""

    workflow: str
    """As in the attribute `workflow` of the result."""
    table: Callable[[xr.Dataset], list[str]]
    """The lines that the command prints."""
    figure: Callable[[xr.Dataset], Figure]
    """The figure, drawn from the result alone."""


def measured(result: xr.Dataset, name: str, **where: object) -> str:
    """A variable of a result with its error."""
    value, error = result[name], result[f"{name}_err"]
    return number(float(value.sel(where)), float(error.sel(where)))


def heading(result: xr.Dataset) -> str:
    """Model, lattice, couplings, seed and time of a study, in one line."""
    return heading_of(result.attrs)


def title(result: xr.Dataset) -> str:
    """Model, lattice and couplings as they are printed in a figure."""
    from observables.figure_style import title_of

    return title_of(result.attrs)
