"""What a kind of result consists of, and what tables and figures share: headings, numbers with errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import xarray as xr

from observables.numbers import number
from quenchphys.console.forecast import duration

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
    words = [str(result.attrs.get("problem", "a problem")), *(text for _, text in geometry(result))]
    words += [f"{name} = {value:.6g}" for name, value in fixed_couplings(result).items()]
    if "seed" in result.attrs:
        words.append(f"seed {result.attrs['seed']}")
    if "wall_time" in result.attrs:
        words.append(duration(float(result.attrs["wall_time"])))
    return ", ".join(words)


def title(result: xr.Dataset) -> str:
    """Model, lattice and couplings as they are printed in a figure."""
    from observables.figure_style import model_symbol, symbol

    words = [model_symbol(str(result.attrs.get("problem", "a problem")))]
    words += [f"${text}$" if name else text for name, text in geometry(result)]
    words += [f"{symbol(name)}$\\, = {value:.6g}$" for name, value in fixed_couplings(result).items()]
    return ", ".join(words)


def geometry(result: xr.Dataset) -> list[tuple[str, str]]:
    """The size of the lattice, with the name of its symbol: L of a square or cube, else the lengths."""
    shape = json.loads(result.attrs.get("parameters", "{}")).get("shape")
    if not isinstance(shape, list) or not shape:
        return []
    if len(shape) > 1 and len(set(shape)) == 1:
        return [("L", f"L = {shape[0]}")]
    return [("", " x ".join(map(str, shape)))]


def fixed_couplings(result: xr.Dataset) -> dict[str, float]:
    """Couplings that were given, not found."""
    couplings: dict[str, Any] = json.loads(result.attrs.get("couplings", "{}"))
    return {name: float(term[0]) for name, term in couplings.items() if name != result.attrs.get("coupling")}
