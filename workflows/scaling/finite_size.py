"""What happens on an infinite lattice?  The same transition at several sizes, and the laws that connect them.

First order, with m equal ordered phases (two for phi -> -phi): both phases weigh the same at

    c*(L) = c_inf + log(m) / |d log odds / dc|        (2 log 2 / (V dq) for mu2),

up to corrections that fall exponentially with L, and the valley of P(q) deepens as 2 sigma L^(d-1), sigma the interface
tension.  Second order: at the critical coupling the Binder cumulant B is the same at all sizes, its slope grows as
L^(1/nu), and V <m^2> as L^(gamma/nu).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from workflows.budget import PARTICLES, SWEEPS, Effort
from workflows.coexistence_point.search import phases_of, request_of, search
from workflows.model_family import Family, Model, check_bracket, family
from workflows.narrator import Narrator
from workflows.scaling.fits import BELIEVED, add_fit, largest_sizes, widened
from workflows.scaling.second_order import critical_point
from workflows.store import Study, finished

MULTIPLICITY = 2  # ordered phases that phi -> -phi carries into one another
FEWEST_SIZES = 3  # a law with an error and a quality needs them


def finite_size_scaling(
    sizes: Sequence[int],
    bracket: tuple[float, float] | None = None,
    *,
    model: Model = "phi6",
    coupling: str = "mu2",
    order: str | None = None,
    particles: int = PARTICLES,
    replicas: int = 8,
    seed: int = 0,
    softness: float | None = None,
    sweeps: int = SWEEPS,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **couplings: float,
) -> xr.Dataset:
    """A transition at several sizes and on the infinite lattice.

    order: "first" or "second"; by default first where mean field expects two phases in the middle of the bracket.  With
    `out`, every size is kept as soon as it is finished: a call with more sizes, or after an interruption, goes on from
    there.  The other parameters are those of `coexistence`.

    Returns
    -------
    Dataset
        Over the dimension `size` what was measured.  First order: <coupling>_infinite and interface_tension_infinite.
        Second order: <coupling>_critical, binder_critical, nu and gamma_over_nu.  All with errors, and with chi2, dof and
        the smallest size that took part in each fit.  The attribute `trusted` is 1 or 0, and `why` says why.
    """
    lengths = check_sizes(sizes)
    if bracket is None:
        raise ValueError(f"bracket is missing: two values of {coupling} with the transition between them.")
    ends = check_bracket(bracket, coupling)
    lines = {L: family(model, coupling, couplings, L=L) for L in lengths}
    kind = order_of(lines[lengths[0]], ends) if order is None else order
    if kind not in ("first", "second"):
        raise ValueError(f"order must be 'first' or 'second'; got {order!r}.")
    effort = Effort(particles, replicas, seed, softness, sweeps)
    fixed = {k: v for k, v in lines[lengths[0]].request().items() if k != "fixed"} | {"couplings": dict(couplings)}
    request = {"workflow": "finite_size_scaling", "order": kind, **fixed}
    request |= {"particles": particles, "replicas": replicas, "seed": seed, "softness": softness, "sweeps": sweeps}
    study = Study(out, request, Narrator(progress), overwrite=overwrite)
    if kind == "second":
        return study.finish(critical_point(lines, ends, effort, study))
    return study.finish(_coexistence_line(lines, ends, effort, study))


def check_sizes(sizes: Any) -> list[int]:
    """At least three different whole numbers, sorted."""
    try:
        lengths = sorted({operator.index(L) for L in sizes})
    except TypeError:
        raise ValueError(f"sizes must be whole numbers such as [8, 12, 16]; got {sizes!r}.") from None
    if len(lengths) < FEWEST_SIZES:
        raise ValueError(
            f"sizes must be at least {FEWEST_SIZES} different ones, for a law with an error; got {sizes!r}."
        )
    if lengths[0] < 2:
        raise ValueError(f"sizes must be at least 2; got {lengths[0]}.")
    return lengths


def order_of(line: Family, bracket: tuple[float, float]) -> str:
    """First order where the model names two phases in the middle of the bracket."""
    try:
        phases_of(line, 0.5 * sum(bracket))
    except ValueError:
        return "second"
    return "first"


def _coexistence_line(
    lines: dict[int, Family], bracket: tuple[float, float], effort: Effort, study: Study
) -> xr.Dataset:
    coupling = next(iter(lines.values())).coupling
    points: list[xr.Dataset] = []
    for L, line in lines.items():
        study.narrator.say(f"L = {L}")
        # The point of the size before, moved by the known term, is a better start than the middle.
        start = None if not points else _extrapolated(points[-1], coupling, lines, L)
        points.append(_one_size(line, bracket, effort, study, L, start))
    table = xr.concat([_scalars(point) for point in points], dim="size", combine_attrs="drop")
    result = table.assign_coords(size=("size", list(lines), {"long_name": "linear size"}))
    _fit_coexistence(result, coupling)
    doubtful = [f"L = {L}: {point.attrs['why']}" for L, point in zip(lines, points, strict=True) if not point.trusted]
    p_value = float(result[f"{coupling}_infinite_p_value"])
    if p_value < BELIEVED:
        doubtful.append(f"The sizes do not follow the law for {coupling} infinite (p = {p_value:.2g}).")
    return _label(result, coupling, "first", doubtful)


def _one_size(
    line: Family, bracket: tuple[float, float], effort: Effort, study: Study, L: int, start: float | None
) -> xr.Dataset:
    """The coexistence point of one size, from disk if it is finished there."""
    if study.path is None:
        return search(line, bracket, effort, Study(None, request_of(line, effort), study.narrator), start)
    out: Path = study.folder / f"L{L}.nc"
    request = request_of(line, effort)
    done = finished(out, request)
    if done is not None:
        study.narrator.say(f"L = {L}: taken from {out}")
        return done
    return search(line, bracket, effort, Study(out, request, study.narrator, overwrite=True), start)


def _extrapolated(before: xr.Dataset, coupling: str, lines: dict[int, Family], L: int) -> float:
    """c*(L) from the size before: the multiplicity term falls as 1/V."""
    sizes = list(lines)
    shape = getattr(lines[L].at(float(before[coupling])), "shape", (L, L))
    ratio = (sizes[sizes.index(L) - 1] / L) ** len(shape)
    return float(before[coupling]) - (1 - ratio) * float(multiplicity_term(before))


def multiplicity_term(point: xr.Dataset) -> xr.DataArray:
    """c* - c_inf = log(m) / |d log odds / dc|, with its sign."""
    return -np.log(MULTIPLICITY) / point["log_odds_slope"]


def _scalars(point: xr.Dataset) -> xr.Dataset:
    """What a size has in common with others: everything that is not a curve."""
    curves = [
        name for name in point.variables if any(str(d).endswith("_axis") or d == "group" for d in point[name].dims)
    ]
    return point.drop_vars(curves)


def _fit_coexistence(result: xr.Dataset, coupling: str) -> None:
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
            # Straight only where the walls are flat and far apart: the error has to cover what is not.
            fit = widened(largest_sizes(design, barrier, error, sizes[known]))
            add_fit(result, "interface_tension_infinite", fit, 0, sizes[known])


def _label(result: xr.Dataset, coupling: str, order: str, doubtful: list[str]) -> xr.Dataset:
    why = " ".join(doubtful)
    return result.assign_attrs(
        workflow="finite_size_scaling", coupling=coupling, order=order, trusted=int(not why), why=why
    )
