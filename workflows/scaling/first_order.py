"""First-order transitions at several sizes: coexistence points, and the laws that lead to the infinite lattice.

With m equal ordered phases (two for phi -> -phi) both phases have the same weight at

    c*(L) = c_inf + log(m) / |d log odds / dc|        (2 log 2 / (V dq) for mu2),

up to corrections that fall exponentially with L, A exp(-L/xi).  The plateau of P(q) between the phases gives the interface
tension sigma, see `observables.interfaces`.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from workflows.scaling.fits import (
    ACCEPTED,
    BELIEVED,
    FEWEST_SIZES,
    Fit,
    add_fit,
    largest_sizes,
    widened,
    with_correction,
)
from workflows.store import Study, finished

Array = np.ndarray

MULTIPLICITY = 2  # ordered phases that phi -> -phi carries into one another
# The smallest size over xi: a lattice of less than two correlation lengths has no two phases, and from eight on there is
# nothing to correct.
DECAYS = np.linspace(2.0, 8.0, 25)


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
    doubts = [f"L = {L}: {point.attrs['why']}" for L, point in zip(families, points, strict=True) if not point.trusted]
    moved = (result[coupling] - multiplicity_term(result)).values
    infinite = Infinite.of(moved, result[f"{coupling}_err"].values, np.array(sizes))
    infinite.add_to(result, coupling)
    _add_tension(result)
    return result, doubts + infinite.doubts(coupling)


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


@dataclass(frozen=True)
class Infinite:
    """The coupling of the infinite lattice, from points of finite ones without their multiplicity term.

    The answer is c of c + A exp(-L/xi), averaged over xi; the mean of the largest sizes, which follow a constant, is what it
    is without the correction.  The error covers the difference of the two, which is the choice between them.
    """

    sizes: Array
    corrected: Fit
    plain: Fit
    """The mean of as many of the largest sizes as agree."""
    all_agree: bool
    """Whether all sizes agree, so that no correction is seen."""

    @staticmethod
    def of(points: Array, error: Array, sizes: Array) -> Infinite:
        """From the points of all sizes, in ascending order."""
        constant = np.ones((len(sizes), 1))
        plain = largest_sizes(constant, points, error, sizes)
        for first in range(len(sizes) - FEWEST_SIZES + 1):
            corrected = _corrected(points, error, sizes, first)
            if not corrected.p_value < ACCEPTED:
                break
        return Infinite(sizes, corrected, plain, bool(plain.used.all() and not plain.p_value < ACCEPTED))

    @property
    def change(self) -> float:
        """What the correction changes."""
        return float(self.corrected.value[0] - self.plain.value[0])

    def add_to(self, result: xr.Dataset, coupling: str) -> None:
        name = f"{coupling}_infinite"
        add_fit(result, name, self.corrected.with_further_error(0, self.change), 0, self.sizes)
        words = {"long_name": f"{name} as the mean of the largest sizes, without a correction exp(-L/xi)"}
        result[f"{name}_uncorrected"] = xr.Variable((), self.plain.value[0], words)

    def doubts(self, coupling: str) -> list[str]:
        """Why the answer might be wrong: each a sentence."""
        found, error = float(self.corrected.value[0]), float(self.corrected.error[0])
        largest = f"sizes above L = {int(self.sizes.max())} are needed"
        if self.corrected.p_value < BELIEVED:
            p_value = self.corrected.p_value
            return [f"The sizes do not follow the law for {coupling} infinite (p = {p_value:.2g})."]
        if abs(self.change) > error:
            return [
                f"{coupling} infinite is {found:.6g} +- {error:.2g} with a correction for small sizes, and "
                f"{self.plain.value[0]:.6g} without: {largest}."
            ]
        if self.corrected.dof == 0 and not self.corrected.used.all():
            left_out = ", ".join(str(size) for size in self.sizes[~self.corrected.used])
            return [
                f"L = {left_out} does not follow the law for {coupling} infinite with the other sizes, and {FEWEST_SIZES} "
                "sizes cannot check it: add another size, or more sweeps."
            ]
        if len(self.sizes) == FEWEST_SIZES and not self.all_agree:
            return [
                f"The {FEWEST_SIZES} sizes do not agree on {coupling} infinite, and so few tell no correction: {largest}."
            ]
        return []


def _corrected(points: Array, error: Array, sizes: Array, first: int) -> Fit:
    """c + A exp(-L/xi) through the points without the first ones."""
    some = sizes[first:]

    def correction(decay: float) -> Array:
        return np.exp(-decay * (some - some[0]) / some[0])

    fit = with_correction(correction, points[first:], error[first:], DECAYS)
    return fit._replace(used=np.arange(len(sizes)) >= first)


def _add_tension(result: xr.Dataset) -> None:
    """The interface tension of the infinite lattice."""
    if "interface_tension" not in result:
        return
    known = np.isfinite(result["interface_tension"].values)  # where the walls stand apart
    sizes, area = result["size"].values[known], result["wall_area"].values[known]
    if len(sizes) >= FEWEST_SIZES:
        # plateau = 2 sigma A + known terms + a constant: a straight line over the area of the walls.
        design = np.stack([area, np.ones(len(area))], axis=1)
        plateau = (result["plateau"] - result["wall_term"]).values[known]
        fit = largest_sizes(design, plateau, result["plateau_err"].values[known], sizes)
        add_fit(result, "interface_tension_infinite", fit if not fit.p_value < ACCEPTED else widened(fit), 0, sizes)
