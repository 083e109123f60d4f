"""Second-order transitions: the critical coupling, the universal ratios there and the exponents, and whether to trust them.

What is sampled, see `critical_sampling`; the curves of every size, see `curves`; the laws, see `critical_laws`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from workflows.budget import LadderSettings, WalkSettings
from workflows.model_family import ModelFamily
from workflows.scaling.critical_laws import (
    RATIOS,
    Crossings,
    Law,
    crossings_of,
    exponent,
    fitted_point,
)
from workflows.scaling.critical_sampling import TIMES, Sampled, sample_chains, sample_ladders
from workflows.scaling.curves import Curves
from workflows.scaling.universality import Ratios
from workflows.store import Study

Array = np.ndarray

SIZES_TO_TRUST = 4
GROUPS_TO_TRUST = 8  # from fewer, the errors themselves are too uncertain
FORGOTTEN = 4.0  # times tau, the least burn-in of chains
AXIS_POINTS = 21


def critical_point(
    families: dict[int, ModelFamily],
    bracket: tuple[float, float],
    settings: WalkSettings | LadderSettings,
    study: Study,
    client: Any = None,
    omega: float | None = None,
    known: Ratios | None = None,
) -> tuple[xr.Dataset, list[str]]:
    """The critical point and the exponents, and the reasons for doubt."""
    coupling = next(iter(families.values())).coupling
    try:
        if isinstance(settings, WalkSettings):
            sampled = sample_chains(families, bracket, settings, study, client)
        else:
            sampled = sample_ladders(families, bracket, settings, study, client)
        study.analyse()
        sizes = [one.curves for one in sampled]
        crossings = crossings_of(sizes)
    except ValueError as cause:
        raise ValueError(
            f"No crossing of the Binder cumulants was found in the bracket, {coupling} from {bracket[0]:g} to "
            f"{bracket[1]:g}: move or narrow it.  {cause}"
        ) from cause
    names = {"coupling": f"{coupling}_critical", "binder": "binder_critical", "ratio": "xi_over_L_critical"}
    at_critical = fitted_point(sizes, crossings, names, omega, known)
    critical = at_critical[names["coupling"]]
    _check_inside(critical, crossings, bracket, coupling)
    result = _at(sizes, critical.value)
    _add_crossings(result, crossings, coupling)
    laws = [*at_critical.values(), *_exponents(result, sizes, crossings, omega)]
    for law in laws:
        law.add_to(result)
    _add_eta(result)
    _add_times(result, sampled)
    _add_curves(result, sizes, coupling, critical.value)
    return result, _doubts(sampled) + [doubt for law in laws if (doubt := law.doubt())]


def _doubts(sampled: Sequence[Sampled]) -> list[str]:
    """Doubts on the data, before any fit."""
    found = [
        f"L = {one.curves.length}: the ladder ended with '{ladder.outcome.value}'."
        for one in sampled
        for ladder in one.pool.ladders
        if not ladder.outcome.trusted
    ]
    for one in sampled:
        name, (tau, _) = max(one.times.items(), key=lambda item: item[1][0], default=("", (0.0, 0.0)))
        if tau * FORGOTTEN > one.burn_in:
            found.append(
                f"L = {one.curves.length}: the autocorrelation time of {name} is {tau:.0f} sweeps, and a burn-in of "
                f"{one.burn_in} sweeps is less than {FORGOTTEN:g} times that: the chains remember their start; more sweeps "
                "are needed."
            )
    if len(sampled) < SIZES_TO_TRUST:
        found.append(
            f"Corrections to scaling cannot be told from {len(sampled)} sizes; at least {SIZES_TO_TRUST} are needed."
        )
    if (groups := min(one.curves.rows - 1 for one in sampled)) < GROUPS_TO_TRUST:
        found.append(f"Errors from {groups} chains or replicas are too uncertain; at least {GROUPS_TO_TRUST} are needed.")
    return found


def _check_inside(critical: Law, crossings: Crossings, bracket: tuple[float, float], coupling: str) -> None:
    if bracket[0] <= critical.value <= bracket[1]:
        return
    side, end = ("below", bracket[0]) if critical.value < bracket[0] else ("above", bracket[1])
    places = zip(crossings.values, crossings.small, crossings.large, strict=True)
    listed = ", ".join(f"{value:.5g} for L = {a:g} and {b:g}" for value, a, b in places)
    raise ValueError(
        f"The critical point lies {side} {end:g}, outside of the bracket: the curves cross at {coupling} = {listed}."
    )


def _at(sizes: Sequence[Curves], critical: float) -> xr.Dataset:
    """What every size says at the critical point."""
    lengths = [size.length for size in sizes]
    result = xr.Dataset(coords={"size": ("size", lengths, {"long_name": "linear size"})})
    words = {"binder": "Binder cumulant", "ratio": "xi/L, second-moment correlation length", "fluctuation": "V <m^2>"}
    for name, long_name in words.items():
        if all(name in size.tables for size in sizes):
            label = "xi_over_L" if name == "ratio" else name
            values = [float(size.value(name, critical)[0]) for size in sizes]
            result[label] = ("size", values, {"long_name": f"{long_name} at the critical point"})
            errors = [size.error(name, critical) for size in sizes]
            result[f"{label}_err"] = ("size", errors, {"long_name": "standard error"})
    return result


def _add_crossings(result: xr.Dataset, crossings: Crossings, coupling: str) -> None:
    """Crossings of each pair, at the larger size."""
    error = np.sqrt(np.diagonal(crossings.covariance))
    for ratio, label in zip(RATIOS, ("crossing", "crossing_xi"), strict=True):
        some = crossings.names == ratio
        if not some.any():
            continue
        what = "Binder cumulants" if ratio == "binder" else "xi/L"
        words = f"{coupling} at which the {what} of this size and of a smaller one cross"
        for name, values, long_name in ((label, crossings.values, words), (f"{label}_err", error, "standard error")):
            column = np.full(result.sizes["size"], np.nan)
            column[np.searchsorted(result["size"].values, crossings.large[some])] = values[some]
            result[name] = ("size", column, {"long_name": long_name})


def _exponents(result: xr.Dataset, sizes: Sequence[Curves], crossings: Crossings, omega: float | None) -> list[Law]:
    """nu and gamma/nu, from slopes and fluctuations where B, and xi/L, have the values of the last crossing.

    Any value will do, also where the critical one is known: there the sizes were sampled, and small ones as well.
    """
    fixed: dict[str, float] = {}
    for ratio in dict.fromkeys(crossings.names.tolist()):
        last = int(np.flatnonzero(crossings.names == ratio)[-1])
        size = next(size for size in sizes if size.length == crossings.large[last])
        fixed[ratio] = float(size.value(ratio, crossings.values[last])[0])
    first, rows = next(iter(fixed)), []
    for size in sizes:
        each = np.array([one.slope(first, one.where(first, fixed[first]))[0] for one in size.each])
        rows.append((each[0], np.sqrt((len(each) - 2) * each[1:].var())))
    slope, error = np.array(rows).T
    result["slope"] = ("size", slope, {"long_name": f"slope of {first} where it is {fixed[first]:.4g}"})
    result["slope_err"] = ("size", error, {"long_name": "standard error"})
    inverse = exponent(sizes, "slope", fixed, "nu", omega)

    def inverted(found: Any) -> Any:
        """nu of 1/nu."""
        return None if found is None else found._replace(value=1 / found.value, error=found.error / found.value**2)

    largest = [(1 / value, error / value**2) for value, error in inverse.largest]
    nu = replace(inverse, found=inverted(inverse.found), without=inverted(inverse.without), largest=largest)
    return [nu, exponent(sizes, "fluctuation", fixed, "gamma_over_nu", omega)]


def _add_eta(result: xr.Dataset) -> None:
    """eta = 2 - gamma/nu."""
    result["eta"] = xr.Variable((), 2 - float(result["gamma_over_nu"]), {"long_name": "eta = 2 - gamma/nu"})
    result["eta_err"] = xr.Variable((), float(result["gamma_over_nu_err"]), {"long_name": "standard error"})


def _add_times(result: xr.Dataset, sampled: Sequence[Sampled]) -> None:
    """Integrated autocorrelation times of chains, by the Gamma method."""
    for name in TIMES:
        if all(name in one.times for one in sampled):
            tau, error = np.array([one.times[name] for one in sampled]).T
            words = {"long_name": f"integrated autocorrelation time of {name}, near the critical point", "units": "sweeps"}
            result[f"tau_{name}"] = ("size", tau, words)
            result[f"tau_{name}_err"] = ("size", error, {"long_name": "standard error", "units": "sweeps"})


def _add_curves(result: xr.Dataset, sizes: Sequence[Curves], coupling: str, critical: float) -> None:
    """Binder cumulants around the critical point, for the figure: as far as the smallest slope changes them by 0.1."""
    width = 0.1 / min(abs(float(size.slope("binder", critical)[0])) for size in sizes)
    axis = critical + np.linspace(-1, 1, AXIS_POINTS) * width
    curve, error = np.full((2, len(sizes), len(axis)), np.nan)
    for i, size in enumerate(sizes):
        for j in np.flatnonzero((axis >= size.axis[0]) & (axis <= size.axis[-1])):
            curve[i, j], error[i, j] = size.value("binder", axis[j])[0], size.error("binder", axis[j])
    result["binder_curve"] = (("size", f"{coupling}_axis"), curve, {"long_name": "Binder cumulant"})
    result["binder_curve_err"] = (("size", f"{coupling}_axis"), error, {"long_name": "standard error"})
    result[f"{coupling}_axis"] = ((f"{coupling}_axis",), axis, {"long_name": coupling})
