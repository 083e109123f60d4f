"""Second-order transitions: the coupling at which the Binder cumulants of several sizes cross, and the exponents there.

At the critical coupling the Binder cumulant B is the same at all sizes, its slope grows as L^(1/nu), and V <m^2> as
L^(gamma/nu).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from workflows.budget import LadderSettings
from workflows.cluster import run_all
from workflows.model_family import ModelFamily
from workflows.scaling.fits import ACCEPTED, Fit, add_fit, largest_sizes, least_squares, power_law, with_correction
from workflows.store import Study

Array = np.ndarray

STEPS = 12  # of Newton's method, at most
CROSSINGS_FOR_A_CORRECTION = 3
SIZES_TO_TRUST = 4
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
    families: dict[int, ModelFamily],
    bracket: tuple[float, float],
    settings: LadderSettings,
    study: Study,
    client: Any = None,
) -> tuple[xr.Dataset, list[str]]:
    """The critical point and the exponents, and the reasons for doubt.  One ladder a size, in the middle of the bracket."""
    coupling = next(iter(families.values())).coupling
    middle = 0.5 * sum(bracket)
    sizes: list[Size] = []
    made = _made_by(client, families, middle, settings, study) if client is not None else {}
    for L, family in families.items():
        label = f"L = {L}, {coupling} = {middle:.6g}"
        ladder = made.get(L) or study.ladder(f"L{L}_{middle:.9g}", family.at(middle), settings, label)
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
    attributes = {"long_name": f"{coupling} at which the Binder cumulants of this size and the one before cross"}
    result["crossing"] = ("size", [np.nan, *(pair.value for pair in pairs)], attributes)
    result["crossing_err"] = ("size", [np.nan, *(pair.error for pair in pairs)], {"long_name": "standard error"})
    _add_slopes(result, sizes, coupling, critical, pairs[-1].binder, bracket[1] - bracket[0])
    laws = [
        Law(f"{coupling}_critical", fit, extrapolate(pairs[1:]) if len(pairs) > 1 else None, 0, lengths[1:]),
        _binder(result, lengths, fit),
        _nu(result, lengths),
        _gamma(result, sizes, coupling, critical, fit.error[0]),
    ]
    for law in laws:
        law.add_to(result)
    _add_curves(result, sizes, coupling, critical, point)
    doubts = [
        f"L = {size.length}: the ladder ended with '{size.ladder.outcome.value}'."
        for size in sizes
        if not size.ladder.outcome.trusted
    ]
    if len(sizes) < SIZES_TO_TRUST:
        doubts.append(
            f"Corrections to scaling cannot be told from {len(sizes)} sizes; at least {SIZES_TO_TRUST} are needed."
        )
    return result, doubts + [doubt for law in laws if (doubt := law.doubt())]


def _made_by(
    client: Any, families: dict[int, ModelFamily], value: float, settings: LadderSettings, study: Study
) -> dict[int, qp.Ladder]:
    """Ladders of all sizes, run on a cluster: written where the study finds them, or else sent back."""
    calls = [
        (family, value, settings, f"L{L}_{value:.9g}", study.path, study.request, study.overwrite)
        for L, family in families.items()
    ]
    sent = run_all(client, size_ladder, calls)
    return {} if study.path is not None else dict(zip(families, sent, strict=True))


def size_ladder(
    family: ModelFamily,
    value: float,
    settings: LadderSettings,
    name: str,
    out: Path | None,
    request: dict[str, Any],
    overwrite: bool,
) -> qp.Ladder | None:
    """The ladder of one size; None if it was written to the folder of a study that another process holds open."""
    part = Study(None, request, progress=False, overwrite=overwrite)
    part.path = out  # locked and prepared by the process that asked for this
    ladder = part.ladder(name, family.at(value), settings, name)
    return ladder if out is None else None


class Law(NamedTuple):
    """A number from a fit to all sizes, and the same without the smallest of them: a correction to scaling moves it."""

    name: str
    fit: Fit
    without: Fit | None  # None where too few points are left
    parameter: int
    sizes: Array  # of the points

    @property
    def value(self) -> float:
        return float(self.fit.value[self.parameter])

    @property
    def error(self) -> float:
        return float(self.fit.error[self.parameter])

    def add_to(self, result: xr.Dataset) -> None:
        add_fit(result, self.name, self.fit, self.parameter, self.sizes)
        moved = np.nan if self.without is None else float(self.without.value[self.parameter])
        words = {"long_name": f"{self.name} without the smallest size that took part in its fit"}
        result[f"{self.name}_without_smallest"] = xr.Variable((), moved, words)

    def doubt(self) -> str:
        """Why the number might be wrong, in a sentence; empty if nothing speaks against it."""
        number = f"{self.name.replace('_', ' ')} = {self.value:.5g} +- {self.error:.2g}"
        if self.fit.p_value < ACCEPTED:
            return (
                f"The sizes do not follow the law that gives {number} (p = {self.fit.p_value:.2g}): add larger sizes, or "
                "more particles."
            )
        if self.without is None:
            return ""
        moved = float(self.without.value[self.parameter])
        if not abs(moved - self.value) > self.error:
            return ""
        smallest = int(min(self.sizes[self.fit.used]))
        return (
            f"Without L = {smallest} {number} would be {moved:.5g}, more than its error away: corrections to scaling are "
            "not small enough; add larger sizes."
        )


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


def _binder(result: xr.Dataset, lengths: Array, critical: Fit) -> Law:
    """B* at the critical point, with the same kind of correction; the error of the point moves it along the slopes."""
    binder, error = result["binder"].values, result["binder_err"].values

    def fitted(used: slice) -> Fit:
        some = lengths[used]
        if len(some) > CROSSINGS_FOR_A_CORRECTION:
            return with_correction(lambda omega: (some / some[0]) ** -omega, binder[used], error[used])
        return largest_sizes(np.ones((len(some), 1)), binder[used], error[used], some)

    along = abs(float(np.average(result["binder_slope"].values, weights=1 / error**2))) * critical.error[0]
    found = fitted(slice(None)).with_further_error(0, along)
    return Law("binder_critical", found, fitted(slice(1, None)), 0, lengths)


def _add_slopes(
    result: xr.Dataset, sizes: list[Size], coupling: str, critical: float, binder: float, width: float
) -> None:
    """The slope of every size's Binder cumulant where that has one and the same value.

    B is a function of (c - c_inf) L^(1/nu) alone, so that equal B means equal distance in the units of the size: no
    knowledge of the critical point enters.  The error of B moves that place, and the slope with it.
    """
    rows = []
    for size in sizes:
        at = size.where(coupling, binder, critical, width)
        here = size.at(coupling, at)
        slope = float(here["binder_slope"])
        moved = size.at(coupling, at + float(here["binder_err"]) / slope, "auto")
        rows.append((slope, float(np.hypot(float(here["binder_slope_err"]), float(moved["binder_slope"]) - slope))))
    value, error = np.array(rows).T
    result["slope"] = ("size", value, {"long_name": f"slope of the Binder cumulant where it is {binder:.4g}"})
    result["slope_err"] = ("size", error, {"long_name": "standard error"})


def without_smallest(fit: Fit, lengths: Array, y: Array, error: Array) -> Fit | None:
    """The power law without the smallest size that took part in a fit of it; None if no two sizes are left."""
    some = np.flatnonzero(fit.used)[1:]
    return power_law(lengths[some], y[some], error[some]) if len(some) > 1 else None


def _nu(result: xr.Dataset, lengths: Array) -> Law:
    """1/nu from the slopes."""
    slope, error = result["slope"].values, result["slope_err"].values

    def inverted(fit: Fit) -> Fit:
        exponent = fit.value[1]
        return fit.with_parameter(1, 1 / exponent, fit.error[1] / exponent**2)

    fit = power_law(lengths, slope, error)
    without = without_smallest(fit, lengths, slope, error)
    return Law("nu", inverted(fit), None if without is None else inverted(without), 1, lengths)


def _gamma(result: xr.Dataset, sizes: list[Size], coupling: str, critical: float, critical_err: float) -> Law:
    """gamma/nu from V <m^2> at the critical point, whose own error moves it."""
    lengths, value, error = (result[name].values for name in ("size", "fluctuation", "fluctuation_err"))
    fit = power_law(lengths, value, error)
    there = critical + critical_err
    moved = np.array([float(size.at(coupling, there, "auto")["fluctuation"]) for size in sizes])
    along = power_law(lengths, moved, error).value[1] - fit.value[1]
    without = without_smallest(fit, lengths, value, error)
    return Law("gamma_over_nu", fit.with_further_error(1, along), without, 1, lengths)


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
