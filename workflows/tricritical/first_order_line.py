"""The line of first order: coexistence points one after the other, each found from those before it.

On the line both phases have the same free energy.  With U = mu2/2 phi2 + lam phi4 + ... its slope is therefore

    d mu2 / d lam = -2 (<phi4>_o - <phi4>_d) / (<phi2>_o - <phi2>_d)        (Clausius and Clapeyron),

which leads from the first point to the second; from then on a parabola through the nearest points does.
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

NEAREST = 3  # points of the line, through which a parabola is laid
WIDTH = 0.1  # of mu2 on either side of where a point is expected: the bracket of its search
METHODS = ("phases", "crossing")

Line = dict[float, float]  # mu2 of the line at each lam that is known


def predicted(lam: float, line: Mapping[float, float], slope: float) -> float:
    """mu2 of the line at a further lam; `slope` is that of the line at its only point, if there is no other."""
    near = sorted(line, key=lambda known: abs(known - lam))[:NEAREST]
    if len(near) == 1:
        return line[near[0]] + slope * (lam - near[0])
    # About lam, so that the constant of the polynomial is the answer.
    return float(np.polyfit(np.array(near) - lam, [line[known] for known in near], len(near) - 1)[-1])


def slope_of(point: xr.Dataset) -> float:
    """d mu2 / d lam of the line at one of its points."""
    jump = {name: float(np.diff(point[name].values)[0]) for name in ("phi2", "phi4")}
    return -2 * jump["phi4"] / jump["phi2"]


def follow(
    family_at: Callable[[float], ModelFamily], lams: Sequence[float], settings: CoexistenceSettings, study: Study
) -> list[xr.Dataset]:
    """The coexistence points at all lam, beginning with the first, where mean field says where to look."""
    points: list[xr.Dataset] = []
    line: Line = {}
    for lam in lams:
        family = family_at(lam)
        if points:
            start = predicted(lam, line, slope_of(points[-1]))
            bracket = (start - WIDTH, start + WIDTH)
        else:
            bracket, start = own_place(family)
        points.append(_point(family, lam, bracket, start, settings, study))
        study.count_part(points[-1])
        line[lam] = float(points[-1]["mu2"])
    return points


def _point(
    family: ModelFamily,
    lam: float,
    bracket: tuple[float, float],
    start: float,
    settings: CoexistenceSettings,
    study: Study,
) -> xr.Dataset:
    """One point: by bridges to both phases where each has a Gaussian near it and holds, else by chains that cross."""
    for method in METHODS[not _has_gaussians(family.at(start)) :]:
        chosen = settings._replace(method=method)
        request = point_request(family, chosen)
        out = study.path and study.folder / f"lam{lam:.9g}_{method}.nc"
        point = finished(out, request, study.overwrite) if out else None
        if point is None:
            with Study(out, request, progress=study.display, overwrite=study.overwrite) as own:
                own.message(f"coexistence at lam = {lam:g}")
                point = find_point(family, bracket, chosen, own, start)
        if point.attrs["trusted"] or method == METHODS[-1]:
            return point
    raise AssertionError("the last method returns whatever it finds")


def _has_gaussians(field: Any) -> bool:
    try:
        lattices.phase_fields(field)
    except ValueError:
        return False
    return True


def table_of(points: Sequence[xr.Dataset], lams: Sequence[float]) -> xr.Dataset:
    """mu2, both jumps and, where chains crossed, the barrier, over the dimension `first_order`."""
    result = xr.Dataset(coords={"first_order": ("first_order", list(lams), {"long_name": "lam of coexistence points"})})
    columns: dict[str, list[tuple[float, float]]] = {name: [] for name in ("mu2", "jump_q", "jump_energy", "barrier")}
    for point in points:
        sites = float(point["phi2"][0] / point["q"][0])
        q = point["q"].values, point["q_err"].values
        columns["mu2"].append((float(point["mu2"]), float(point["mu2_err"])))
        columns["jump_q"].append((float(q[0][1] - q[0][0]), float(np.hypot(*q[1]))))
        columns["jump_energy"].append((float(point["latent_heat"]) / sites, float(point["latent_heat_err"]) / sites))
        crossed = "barrier" in point
        columns["barrier"].append(
            (float(point["barrier"]), float(point["barrier_err"])) if crossed else (np.nan, np.nan)
        )
    words = {
        "mu2": "mu2 of equal weight",
        "jump_q": "jump of q",
        "jump_energy": "latent heat of a site",
        "barrier": "barrier of P(q), where chains crossed it",
    }
    for name, column in columns.items():
        value, error = np.array(column).T
        label = "mu2_coexistence" if name == "mu2" else name
        result[label] = ("first_order", value, {"long_name": words[name]})
        result[f"{label}_err"] = ("first_order", error, {"long_name": "standard error"})
    return result
