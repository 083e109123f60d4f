"""Where is a continuous transition?  Binder cumulants of several sizes that meet at one coupling, and their exponents."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from workflows.effort import Effort
from workflows.family import Family
from workflows.fits import Fit, add_fit, largest_sizes, power_law, with_correction
from workflows.study import Study

Array = np.ndarray

STEPS = 12
SIZES_FOR_A_CORRECTION = 4
CONVERGED = 1e-3  # of its error, by which the critical coupling may still move


class Size(NamedTuple):
    """One size: its samples, and the fluctuations at any coupling near by."""

    length: int
    ladder: qp.Ladder
    pool: observables.Pool

    def at(self, coupling: str, value: float) -> xr.Dataset:
        # Errors from a few replicas are too uncertain themselves to weigh sizes against each other.
        here: dict[str, Any] = {coupling: value}
        return observables.binder(self.pool, coupling, errors="genealogy", **here)


def critical_point(
    lines: dict[int, Family], bracket: tuple[float, float], efforts: dict[int, Effort], study: Study
) -> xr.Dataset:
    """One ladder a size, all in the middle of the bracket."""
    coupling = next(iter(lines.values())).coupling
    middle = 0.5 * sum(bracket)
    sizes: list[Size] = []
    for L, line in lines.items():
        ladder = study.ladder(f"L{L}_{middle:.9g}", line.at(middle), efforts[L], f"L = {L}, {coupling} = {middle:.6g}")
        sizes.append(Size(L, ladder, observables.Pool(ladder)))
    try:
        fit, point = meeting(sizes, coupling, middle)
    except ValueError as cause:
        raise ValueError(
            f"The critical point is too far from {coupling} = {middle:g}, the middle of the bracket, to be seen from there: "
            f"move or narrow the bracket.  {cause}"
        ) from cause
    lengths = np.array([size.length for size in sizes])
    critical, error = fit.value[0], fit.error[0]
    if not bracket[0] <= critical <= bracket[1]:
        side, end = ("below", bracket[0]) if critical < bracket[0] else ("above", bracket[1])
        said = ", ".join(f"{float(b):.3f} at L = {L}" for L, b in zip(lengths, point["binder"], strict=True))
        raise ValueError(
            f"The Binder cumulants do not meet in the bracket: at {coupling} = {critical:g} they are {said}, so the "
            f"critical point lies {side} {end:g} (near {critical:.5g})."
        )
    result = point.assign_coords(size=("size", lengths, {"long_name": "linear size"}))
    add_fit(result, f"{coupling}_critical", fit, 0, lengths)
    add_fit(result, "binder_critical", fit, 1, lengths)
    _add_exponents(result, sizes, coupling, critical, error)
    _add_curves(result, sizes, coupling, critical, point)
    doubtful = [
        f"L = {size.length}: the ladder ended with '{size.ladder.outcome.value}'."
        for size in sizes
        if not size.ladder.outcome.trusted
    ]
    if not fit.believed:
        doubtful.append(
            f"The Binder cumulants of these sizes do not meet in one point (p = {fit.p_value:.2g}): corrections to scaling "
            f"are visible; add larger sizes, at least {SIZES_FOR_A_CORRECTION} in all."
        )
    why = " ".join(doubtful)
    return result.assign_attrs(
        workflow="finite_size_scaling", coupling=coupling, order="second", trusted=int(not why), why=why
    )


def meeting(sizes: list[Size], coupling: str, start: float) -> tuple[Fit, xr.Dataset]:
    """The coupling c and the value B* at which all Binder cumulants agree, by least squares.

    B_L(c) is followed along its slope from where it was measured, B_L(c0) + B_L'(c0) (c - c0) = B* + A L^(-omega), until
    c0 = c.  The correction to scaling is left out where there are too few sizes to tell it.
    """
    at = start
    lengths = [size.length for size in sizes]
    for _ in range(STEPS):
        point = xr.concat([size.at(coupling, at) for size in sizes], dim="size", combine_attrs="drop")
        slope = point["binder_slope"].values
        # Unknowns (c - c0, B*): B_L(c0) = B* - slope (c - c0).
        design = np.stack([-slope, np.ones(len(slope))], axis=1)
        law = with_correction if len(sizes) >= SIZES_FOR_A_CORRECTION else largest_sizes
        fit = law(design, point["binder"].values, point["binder_err"].values, lengths)
        moved, at = fit.value[0], at + fit.value[0]
        fit.value[0] = at
        if abs(moved) < CONVERGED * fit.error[0]:
            break
    return fit, point


def _add_exponents(result: xr.Dataset, sizes: list[Size], coupling: str, critical: float, error: float) -> None:
    """1/nu from the slopes, gamma/nu from V <m^2>, at the critical point; its own error moves both."""
    lengths = [size.length for size in sizes]
    for name, variable in (("nu", "binder_slope"), ("gamma_over_nu", "fluctuation")):
        there = {
            shift: xr.concat(
                [size.at(coupling, critical + shift * error) for size in sizes], "size", combine_attrs="drop"
            )
            for shift in (-1, 0, 1)
        }
        fits = {
            shift: power_law(lengths, data[variable].values, data[f"{variable}_err"].values)
            for shift, data in there.items()
        }
        fit = fits[0]
        fit.error[1] = float(np.hypot(fit.error[1], 0.5 * (fits[1].value[1] - fits[-1].value[1])))
        if name == "nu":
            exponent = fit.value[1]
            fit.value[1], fit.error[1] = 1 / exponent, fit.error[1] / exponent**2
        add_fit(result, name, fit, 1, np.array(lengths))


def _add_curves(result: xr.Dataset, sizes: list[Size], coupling: str, critical: float, point: xr.Dataset) -> None:
    """Binder cumulants around the critical point, for the eye: as wide as the smallest size changes by 0.1."""
    width = 0.1 / float(np.abs(point["binder_slope"]).min())
    axis = critical + np.linspace(-1, 1, 21) * width
    rows = []
    for size in sizes:
        row = np.full((len(axis), 2), np.nan)
        for i, value in enumerate(axis):
            try:
                found = size.at(coupling, float(value))
            except ValueError:  # too far from this ladder
                continue
            row[i] = float(found["binder"]), float(found["binder_err"])
        rows.append(row)
    curves = np.array(rows)
    result["binder_curve"] = (("size", f"{coupling}_axis"), curves[..., 0], {"long_name": "Binder cumulant"})
    result["binder_curve_err"] = (("size", f"{coupling}_axis"), curves[..., 1], {"long_name": "standard error"})
    result[f"{coupling}_axis"] = ((f"{coupling}_axis",), axis, {"long_name": coupling})
