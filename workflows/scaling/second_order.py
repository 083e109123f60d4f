"""Second-order transitions: the coupling at which the Binder cumulants of several sizes cross, and the exponents there.

At the critical coupling the Binder cumulant B is the same at all sizes, its slope grows as L^(1/nu), and V <m^2> as
L^(gamma/nu).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from workflows.budget import LadderSettings
from workflows.model_family import ModelFamily
from workflows.scaling.fits import Fit, add_fit, largest_sizes, least_squares, power_law, with_correction
from workflows.store import Study

Array = np.ndarray

STEPS = 12  # of Newton's method, at most
CROSSINGS_FOR_A_CORRECTION = 3
CONVERGED = 1e-2  # of the error of a crossing: smaller steps end the search
TOLERANCE = 1e-5  # of the bracket: smaller steps end the search for a value of the cumulant


class Size(NamedTuple):
    """One size: its samples, and the fluctuations at any coupling near by."""

    length: int
    ladder: qp.Ladder
    pool: observables.Pool

    def at(self, coupling: str, value: float, errors: str = "genealogy") -> xr.Dataset:
        # Errors from a few replicas are too uncertain themselves to weigh sizes against each other.
        here: dict[str, Any] = {coupling: value}
        return observables.binder(self.pool, coupling, errors=errors, **here)

    def where(self, coupling: str, binder: float, start: float, width: float) -> float:
        """The coupling at which the Binder cumulant has a given value, by Newton's method."""
        at = start
        for _ in range(STEPS):
            found = self.at(coupling, at, "auto")
            step = (binder - float(found["binder"])) / float(found["binder_slope"])
            if abs(step) < TOLERANCE * width:
                break
            at += float(np.clip(step, -width / 2, width / 2))
        return at


def critical_point(
    families: dict[int, ModelFamily], bracket: tuple[float, float], settings: LadderSettings, study: Study
) -> tuple[xr.Dataset, list[str]]:
    """The critical point and the exponents, and the reasons for doubt.  One ladder a size, in the middle of the bracket."""
    coupling = next(iter(families.values())).coupling
    middle = 0.5 * sum(bracket)
    sizes: list[Size] = []
    for L, family in families.items():
        ladder = study.ladder(f"L{L}_{middle:.9g}", family.at(middle), settings, f"L = {L}, {coupling} = {middle:.6g}")
        sizes.append(Size(L, ladder, observables.Pool(ladder)))
    try:
        pairs = [crossing(a, b, coupling, bracket) for a, b in pairwise(sizes)]
    except ValueError as cause:
        raise ValueError(
            f"No crossing of the Binder cumulants was found from {coupling} = {middle:g}, the middle of the bracket, where "
            f"all sizes are sampled: move or narrow the bracket.  {cause}"
        ) from cause
    fit = extrapolate(pairs)
    lengths = np.array([size.length for size in sizes])
    critical = fit.value[0]
    if not bracket[0] <= critical <= bracket[1]:
        side, end = ("below", bracket[0]) if critical < bracket[0] else ("above", bracket[1])
        crossings = ", ".join(f"{pair.value:.5g} for L = {pair.small} and {pair.large}" for pair in pairs)
        raise ValueError(
            f"The critical point lies {side} {end:g}, outside of the bracket: the Binder cumulants cross at {coupling} = "
            f"{crossings}."
        )
    point = xr.concat([size.at(coupling, critical) for size in sizes], dim="size", combine_attrs="drop")
    result = point.assign_coords(size=("size", lengths, {"long_name": "linear size"}))
    add_fit(result, f"{coupling}_critical", fit, 0, lengths[1:])
    _add_binder(result, lengths, fit)
    attributes = {"long_name": f"{coupling} at which the Binder cumulants of this size and the one before cross"}
    result["crossing"] = ("size", [np.nan, *(pair.value for pair in pairs)], attributes)
    result["crossing_err"] = ("size", [np.nan, *(pair.error for pair in pairs)], {"long_name": "standard error"})
    _add_nu(result, sizes, coupling, pairs[-1].binder, bracket[1] - bracket[0])
    _add_gamma(result, sizes, coupling)
    _add_curves(result, sizes, coupling, critical, point)
    doubts = [
        f"L = {size.length}: the ladder ended with '{size.ladder.outcome.value}'."
        for size in sizes
        if not size.ladder.outcome.trusted
    ]
    if not fit.believed:
        doubts.append(
            f"The crossings of the Binder cumulants do not follow one law (p = {fit.p_value:.2g}): add larger sizes, "
            f"at least {CROSSINGS_FOR_A_CORRECTION + 1} in all, or more particles."
        )
    return result, doubts


class Crossing(NamedTuple):
    """Where the Binder cumulants of two sizes are the same."""

    small: int
    large: int
    value: float
    errors: tuple[float, float]  # of either size's cumulant, over the difference of the slopes
    slope: float  # of the larger size minus that of the smaller
    binder: float  # the value both have

    @property
    def error(self) -> float:
        return float(np.hypot(*self.errors))


def crossing(small: Size, large: Size, coupling: str, bracket: tuple[float, float]) -> Crossing:
    """By Newton's method from the middle of the bracket; it may leave it by its own width at most."""
    at, width = 0.5 * sum(bracket), bracket[1] - bracket[0]
    for _ in range(STEPS):
        a, b = small.at(coupling, at), large.at(coupling, at)
        slope = float(b["binder_slope"] - a["binder_slope"])
        step = -float(b["binder"] - a["binder"]) / slope
        errors = (float(a["binder_err"]) / slope, float(b["binder_err"]) / slope)
        if abs(step) < CONVERGED * np.hypot(*errors):
            return Crossing(small.length, large.length, at, errors, slope, float(a["binder"]))
        at += float(np.clip(step, -width / 2, width / 2))
        if not bracket[0] - width <= at <= bracket[1] + width:
            break
    raise ValueError(f"Those of L = {small.length} and {large.length} do not cross near {coupling} = {at:.5g}.")


def extrapolate(pairs: list[Crossing]) -> Fit:
    """The crossings of neighbouring sizes to infinite size.

    With B_L(c) = B* + s_L (c - c_inf) + A L^(-omega), two sizes cross at

        c_ab = c_inf + A (L_a^(-omega) - L_b^(-omega)) / (s_b - s_a).

    Neighbouring crossings share a size, and their errors with it.  Two crossings are too few to tell a correction.
    """
    value = np.array([pair.value for pair in pairs])
    covariance = np.diag([pair.error**2 for pair in pairs])
    for i, (one, next_one) in enumerate(pairwise(pairs)):
        # The shared size moves one crossing up and the other down.
        covariance[i, i + 1] = covariance[i + 1, i] = -one.errors[1] * next_one.errors[0]
    if len(pairs) < CROSSINGS_FOR_A_CORRECTION:
        return least_squares(np.ones((len(pairs), 1)), value, covariance)

    def correction(omega: float) -> Array:
        return np.array([(pair.small**-omega - pair.large**-omega) / pair.slope for pair in pairs])

    return with_correction(correction, value, covariance)


def _add_binder(result: xr.Dataset, lengths: Array, fit: Fit) -> None:
    """B* at the critical point, with the same kind of correction; the error of the point moves it along the slopes."""
    binder, error = result["binder"].values, result["binder_err"].values
    if len(lengths) > CROSSINGS_FOR_A_CORRECTION:
        found = with_correction(lambda omega: (lengths / lengths[0]) ** -omega, binder, error)
    else:
        found = largest_sizes(np.ones((len(lengths), 1)), binder, error, lengths)
    along = abs(float(np.average(result["binder_slope"].values, weights=1 / error**2))) * fit.error[0]
    add_fit(result, "binder_critical", found.with_further_error(0, along), 0, lengths)


def _add_nu(result: xr.Dataset, sizes: list[Size], coupling: str, binder: float, width: float) -> None:
    """1/nu from the slopes of every size where its own Binder cumulant has one and the same value.

    B is a function of (c - c_inf) L^(1/nu) alone, so that equal B means equal distance in the units of the size: no
    knowledge of the critical point enters.  The error of B moves that place, and the slope with it.
    """
    rows = []
    for size in sizes:
        at = size.where(coupling, binder, float(result[f"{coupling}_critical"]), width)
        here = size.at(coupling, at)
        slope = float(here["binder_slope"])
        moved = size.at(coupling, at + float(here["binder_err"]) / slope, "auto")
        rows.append((slope, float(np.hypot(float(here["binder_slope_err"]), float(moved["binder_slope"]) - slope))))
    value, error = np.array(rows).T
    result["slope"] = ("size", value, {"long_name": f"slope of the Binder cumulant where it is {binder:.4g}"})
    result["slope_err"] = ("size", error, {"long_name": "standard error"})
    lengths = result["size"].values
    fit = power_law(lengths, value, error)
    exponent = fit.value[1]
    add_fit(result, "nu", fit.with_parameter(1, 1 / exponent, fit.error[1] / exponent**2), 1, lengths)


def _add_gamma(result: xr.Dataset, sizes: list[Size], coupling: str) -> None:
    """gamma/nu from V <m^2> at the critical point, whose own error moves it."""
    lengths, critical = result["size"].values, float(result[f"{coupling}_critical"])
    fit = power_law(lengths, result["fluctuation"].values, result["fluctuation_err"].values)
    there = critical + float(result[f"{coupling}_critical_err"])
    moved = np.array([float(size.at(coupling, there, "auto")["fluctuation"]) for size in sizes])
    along = power_law(lengths, moved, result["fluctuation_err"].values).value[1] - fit.value[1]
    add_fit(result, "gamma_over_nu", fit.with_further_error(1, along), 1, lengths)


def _add_curves(result: xr.Dataset, sizes: list[Size], coupling: str, critical: float, point: xr.Dataset) -> None:
    """Binder cumulants around the critical point, for the figure: as far as the smallest slope changes them by 0.1."""
    width = 0.1 / float(np.abs(point["binder_slope"]).min())
    axis = critical + np.linspace(-1, 1, 21) * width
    rows = []
    for size in sizes:
        row = np.full((len(axis), 2), np.nan)
        for i, value in enumerate(axis):
            try:
                found = size.at(coupling, float(value), "auto")
            except ValueError:  # too far from this ladder
                continue
            row[i] = float(found["binder"]), float(found["binder_err"])
        rows.append(row)
    curves = np.array(rows)
    result["binder_curve"] = (("size", f"{coupling}_axis"), curves[..., 0], {"long_name": "Binder cumulant"})
    result["binder_curve_err"] = (("size", f"{coupling}_axis"), curves[..., 1], {"long_name": "standard error"})
    result[f"{coupling}_axis"] = ((f"{coupling}_axis",), axis, {"long_name": coupling})
