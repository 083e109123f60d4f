"""First-order transitions at several sizes: coexistence points, and the laws that lead to the infinite lattice.

With m equal ordered phases (two for phi -> -phi) both phases have the same weight at

    c*(L) = c_inf + log(m) / |d log odds / dc|        (2 log 2 / (V dq) for mu2),

up to corrections that fall exponentially with L, and the valley of P(q) deepens as 2 sigma L^(d-1), sigma the interface
tension.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from quenchphys.console.progress import Display
from quenchphys.problem import view
from workflows.budget import CoexistenceSettings
from workflows.cluster import run_all
from workflows.coexistence_point.expectation import start_in
from workflows.coexistence_point.search import decided, find_point, point_request
from workflows.model_family import ModelFamily
from workflows.scaling.fits import BELIEVED, FEWEST_SIZES, add_fit, largest_sizes, widened
from workflows.store import Study, finished

MULTIPLICITY = 2  # ordered phases that phi -> -phi carries into one another


def coexistence_line(
    families: dict[int, ModelFamily],
    bracket: tuple[float, float],
    settings: CoexistenceSettings,
    study: Study,
    client: Any = None,
) -> tuple[xr.Dataset, list[str]]:
    """The coexistence point of every size and of the infinite lattice, and the reasons for doubt."""
    coupling = next(iter(families.values())).coupling
    sizes = list(families)
    out = study.path and study.folder

    def call(L: int, start: float | None) -> tuple[Any, ...]:
        """The arguments of one size; workers of a cluster show no progress of their own."""
        progress = study.display if client is None else False
        return families[L], bracket, settings, L, start, out, progress, study.overwrite

    # The point of the smallest size, moved by the known term, is a better start for all others than the bracket: they do
    # not wait for each other.
    points = run_all(client, size_point, [call(sizes[0], None)])
    starts = {L: _extrapolated(points[0], coupling, families, L) for L in sizes[1:]}
    points += run_all(client, size_point, [call(L, start) for L, start in starts.items()])
    for point in points:
        study.count_part(point)
    table = xr.concat([_without_curves(point) for point in points], dim="size", combine_attrs="drop")
    result = table.assign_coords(size=("size", list(families), {"long_name": "linear size"}))
    _add_infinite(result, coupling)
    doubts = [f"L = {L}: {point.attrs['why']}" for L, point in zip(families, points, strict=True) if not point.trusted]
    p_value = float(result[f"{coupling}_infinite_p_value"])
    if p_value < BELIEVED:
        doubts.append(f"The sizes do not follow the law for {coupling} infinite (p = {p_value:.2g}).")
    return result, doubts


def multiplicity_term(point: xr.Dataset) -> xr.DataArray:
    """c* - c_inf = log(m) / |d log odds / dc|, with its sign."""
    return -np.log(MULTIPLICITY) / point["log_odds_slope"]


def size_point(
    family: ModelFamily,
    bracket: tuple[float, float],
    settings: CoexistenceSettings,
    L: int,
    start: float | None,
    folder: Path | None,
    progress: bool | Display,
    overwrite: bool,
) -> xr.Dataset:
    """The coexistence point of one size, from its file in `folder` if it is finished."""
    out = None if folder is None else folder / f"L{L}.nc"
    settings = decided(family, start_in(family, bracket) if start is None else start, settings)
    request = point_request(family, settings)
    if out is not None and (kept := finished(out, request, overwrite)) is not None:
        return kept
    with Study(out, request, progress=progress, overwrite=overwrite) as own:
        own.message(f"L = {L}")
        return find_point(family, bracket, settings, own, start)


def _extrapolated(smallest: xr.Dataset, coupling: str, families: dict[int, ModelFamily], L: int) -> float:
    """c*(L) from the smallest size: the multiplicity term falls as 1/V."""
    dimension = len(view(families[L].at(float(smallest[coupling]))).shape)
    ratio = (min(families) / L) ** dimension
    return float(smallest[coupling]) - (1 - ratio) * float(multiplicity_term(smallest))


def _without_curves(point: xr.Dataset) -> xr.Dataset:
    """What all sizes have in common: everything that does not depend on an axis of its own, or on the group."""
    curves = [
        name for name in point.variables if any(str(d).endswith("_axis") or d == "group" for d in point[name].dims)
    ]
    return point.drop_vars(curves)


def _add_infinite(result: xr.Dataset, coupling: str) -> None:
    """The coupling and the interface tension of the infinite lattice."""
    sizes = result["size"].values
    moved = (result[coupling] - multiplicity_term(result)).values
    fit = largest_sizes(np.ones((len(sizes), 1)), moved, result[f"{coupling}_err"].values, sizes)
    add_fit(result, f"{coupling}_infinite", fit, 0, sizes)
    if "interface_tension" in result:
        # barrier = 2 sigma L^(d-1) + a constant: a straight line over the area of the walls.
        known = np.isfinite(result["barrier"].values)
        area = (result["barrier"] / result["interface_tension"]).values[known]
        if len(np.unique(area.round(6))) >= FEWEST_SIZES:
            design = np.stack([area, np.ones(len(area))], axis=1)
            barrier, error = (result[name].values[known] for name in ("barrier", "barrier_err"))
            # Straight only where the walls are flat and far apart, so the error has to cover deviations from the line.
            fit = widened(largest_sizes(design, barrier, error, sizes[known]))
            add_fit(result, "interface_tension_infinite", fit, 0, sizes[known])
