"""The line of first order: coexistence points one after the other, each found from those before it.

Bridges find the points at which each phase has a Gaussian near it.  Closer to the tricritical point `held_phases` follows
the line with both phases apart.  On the line both phases have the same free energy, and with U = mu2/2 phi2 + lam phi4 + ...
its slope is therefore

    d mu2 / d lam = -2 (<phi4>_o - <phi4>_d) / (<phi2>_o - <phi2>_d)        (Clausius and Clapeyron).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

import lattices
from workflows.budget import CoexistenceSettings
from workflows.coexistence_point.expectation import own_place
from workflows.coexistence_point.search import find_point, point_request
from workflows.model_family import ModelFamily
from workflows.store import Study, finished
from workflows.tricritical.held_phases import Known, followed, held_point

WIDTH = 0.1  # of mu2 on either side of where a point is expected: the bracket of its search
BRIDGED = 4e-5  # error of mu2 that bridges have to reach: what chains that follow the line add to it


def slope_of(point: xr.Dataset) -> tuple[float, float]:
    """d mu2 / d lam of the line at one of its points; the error, if it is not known, is at most that of either jump."""
    if "slope" in point:
        return float(point["slope"]), float(point["slope_err"])
    jump = {name: float(np.diff(point[name].values)[0]) for name in ("phi2", "phi4")}
    errors = [np.hypot(*point[f"{name}_err"].values) / jump[name] for name in jump]
    slope = -2 * jump["phi4"] / jump["phi2"]
    return slope, float(abs(slope) * max(errors))


def follow(
    family_at: Callable[[float], ModelFamily], lams: Sequence[float], settings: CoexistenceSettings, study: Study
) -> list[xr.Dataset]:
    """The coexistence points at all lam, beginning with the first, where mean field says where to look."""
    points: list[xr.Dataset] = []
    line: dict[float, Known] = {}
    for lam in lams:
        points.append(_next(family_at(lam), lam, points, line, settings, study))
        mu2, mu2_err = (float(points[-1][name]) for name in ("mu2", "mu2_err"))
        line[lam] = Known(mu2, mu2_err, *slope_of(points[-1]))
    return points


def _next(
    family: ModelFamily,
    lam: float,
    points: Sequence[xr.Dataset],
    line: Mapping[float, Known],
    settings: CoexistenceSettings,
    study: Study,
) -> xr.Dataset:
    """By bridges as long as they hold; then by chains in both phases, or for the first point by chains that cross."""
    if not points:
        bracket, start = own_place(family)
    else:
        start, _ = followed(lam, line)
        bracket = (start - WIDTH, start + WIDTH)
    if (not points or points[-1].attrs["method"] == "phases") and _has_gaussians(family.at(start)):
        point = _searched(family, lam, bracket, start, "phases", settings, study)
        if point.attrs["trusted"]:
            return point
    if not points:
        return _searched(family, lam, bracket, start, "crossing", settings, study)
    return held_point(family, lam, line, float(points[-1]["q"][1]), settings.walk, study)


def _searched(
    family: ModelFamily,
    lam: float,
    bracket: tuple[float, float],
    start: float,
    method: str,
    settings: CoexistenceSettings,
    study: Study,
) -> xr.Dataset:
    """The point by one of the methods of `coexistence`, kept in a file of its own."""
    chosen = settings._replace(method=method, error=BRIDGED if method == "phases" else None)
    request = point_request(family, chosen)
    out = study.path and study.folder / f"lam{lam:.9g}_{method}.nc"
    point = finished(out, request, study.overwrite) if out else None
    if point is None:
        with Study(out, request, progress=study.display, overwrite=study.overwrite) as own:
            own.message(f"coexistence at lam = {lam:g}")
            point = find_point(family, bracket, chosen, own, start)
    study.count_part(point)
    return point


def doubts(lam: float, point: xr.Dataset) -> list[str]:
    """Why a point might be wrong."""
    return [] if point.attrs["trusted"] else [f"lam = {lam:g}: {point.attrs['why']}"]


def _has_gaussians(field: Any) -> bool:
    try:
        lattices.phase_fields(field)
    except ValueError:
        return False
    return True


def table_of(points: Sequence[xr.Dataset], lams: Sequence[float]) -> xr.Dataset:
    """mu2, both jumps, and which points are of bridges, over the dimension `first_order`."""
    result = xr.Dataset(coords={"first_order": ("first_order", list(lams), {"long_name": "lam of coexistence points"})})
    columns: dict[str, list[tuple[float, float]]] = {name: [] for name in ("mu2", "jump_q", "jump_energy")}
    for point in points:
        sites = float(point["phi2"][0] / point["q"][0])
        q = point["q"].values, point["q_err"].values
        columns["mu2"].append((float(point["mu2"]), float(point["mu2_err"])))
        columns["jump_q"].append((float(q[0][1] - q[0][0]), float(np.hypot(*q[1]))))
        columns["jump_energy"].append((float(point["latent_heat"]) / sites, float(point["latent_heat_err"]) / sites))
    words = {"mu2": "mu2 of equal weight", "jump_q": "jump of q", "jump_energy": "latent heat of a site"}
    for name, column in columns.items():
        value, error = np.array(column).T
        label = "mu2_coexistence" if name == "mu2" else name
        result[label] = ("first_order", value, {"long_name": words[name]})
        result[f"{label}_err"] = ("first_order", error, {"long_name": "standard error"})
    bridged = [int(point.attrs["method"] == "phases") for point in points]
    result["bridged"] = ("first_order", bridged, {"long_name": "1: by bridges, 0: by chains"})
    return result
