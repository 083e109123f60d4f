"""Canonical chains at several lam and sizes, each read where the correlation length is the size of the lattice.

Between a critical and a first-order line the chains still cross by themselves.  At each lam and size mu2 is sought where

    xi/L = 1,     (xi/L)^2 = (V <m^2>/S(k_min) - 1)/(khat_min L)^2,

which lies between what the Ising class (0.905) and tricritical lattices have, and there the Binder cumulant, V <m^2> and the
slope of xi/L are read.  Scouts look for the place by Newton's method: with s = log(V <m^2>/S - 1)/2 of their averages,

    d<O>/d mu2 = -cov(O, phi2)/2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from quenchphys.console.progress import WalkMeter
from workflows.budget import Use, WalkSettings, seed_of
from workflows.model_family import ModelFamily
from workflows.scaling.curves import Curves, curves_of
from workflows.store import Study
from workflows.tricritical.chains import LONG, warm_up_of

Array = np.ndarray

RATIO = 1.0  # of xi and L
SCOUT_SWEEPS = 256
MOST_SCOUTS = 8
CLOSE = 0.15  # of log(xi/L), within which scouts stop
LONGEST_STEP = 0.1  # of mu2, in Newton's method
APART = 0.2  # of xi/L, from one coupling to the next
PLACES = (-1, 0, 1)
NEAREST = 3  # points of a line, through which a parabola is laid
BEYOND = 2.0  # couplings apart, up to which curves go
READ = ("mu2", "binder", "fluctuation", "slope")


class Reading(NamedTuple):
    """What one size says at one lam, where xi/L = 1: (row,), from all groups and without each of them."""

    mu2: Array
    binder: Array
    fluctuation: Array
    slope: Array


def sample(
    family_at: Callable[[float, int], ModelFamily],
    lams: Sequence[float],
    sizes: Sequence[int],
    line: Mapping[float, float],
    settings: WalkSettings,
    study: Study,
) -> dict[tuple[float, int], Curves]:
    """Curves over mu2 of every lam and size; `line` is where the transition was found before."""
    known = dict(line)
    found: dict[tuple[float, int], Curves] = {}
    for lam in lams:
        at = predicted(lam, known)
        for L in sizes:
            found[lam, L] = _curves(family_at(lam, L), lam, L, at, settings, study)
            at = found[lam, L].where("ratio", RATIO)
        known[lam] = at
    return found


def predicted(lam: float, line: Mapping[float, float]) -> float:
    """mu2 at a further lam, by a parabola through the nearest points."""
    near = sorted(line, key=lambda known: abs(known - lam))[:NEAREST]
    # About lam, so that the constant of the polynomial is the answer.
    return float(np.polyfit(np.array(near) - lam, [line[known] for known in near], len(near) - 1)[-1])


def _curves(family: ModelFamily, lam: float, L: int, start: float, settings: WalkSettings, study: Study) -> Curves:
    centre, slope = _scouted(family, lam, L, start, settings, study)
    apart = APART / abs(slope)
    walks = [_walk(family, lam, L, centre + i * apart, settings.sweeps, settings, study) for i in PLACES]
    study.analyse()
    ends = centre - BEYOND * apart, centre + BEYOND * apart
    curves = curves_of(observables.Pool(walks), L, family.coupling, ends, _wave(family, centre))
    if not all(np.isfinite(one.where("ratio", RATIO)) for one in curves.each):
        raise RuntimeError(
            f"At lam = {lam:g} and L = {L} xi/L is nowhere {RATIO:g} near mu2 = {centre:.5g}: use more sweeps."
        )
    return curves


def _scouted(
    family: ModelFamily, lam: float, L: int, at: float, settings: WalkSettings, study: Study
) -> tuple[float, float]:
    """mu2 at which xi/L is about 1, and the slope of xi/L there."""
    for _ in range(MOST_SCOUTS):
        walk = _walk(family, lam, L, at, SCOUT_SWEEPS, settings, study)
        ratio, slope = ratio_and_slope(walk.data, _wave(family, at), L)
        step = -np.log(ratio / RATIO) * ratio / slope
        following = at + float(np.clip(step, -LONGEST_STEP, LONGEST_STEP))
        if abs(np.log(ratio / RATIO)) < CLOSE:
            return following, slope
        at = following
    raise RuntimeError(
        f"{MOST_SCOUTS} scouts did not find where xi/L is {RATIO:g} at lam = {lam:g} and L = {L}; the last "
        f"were at mu2 = {at:.5g}."
    )


def ratio_and_slope(data: xr.Dataset, wave: float, L: int) -> tuple[float, float]:
    """xi/L of one walk and its slope in mu2; `wave` is khat_min^2."""
    values = {name: data[name].values.astype(float).ravel() for name in ("m2", "s_min", "phi2")}
    volume = float(L) ** 2
    mean = {name: value.mean() for name, value in values.items()}
    moved = {name: -0.5 * np.cov(values[name], values["phi2"])[0, 1] for name in ("m2", "s_min")}
    excess = max(volume * mean["m2"] / mean["s_min"] - 1, 1e-3)  # S(k_min) of a short walk may exceed V <m^2>
    change = volume * mean["m2"] / mean["s_min"] * (moved["m2"] / mean["m2"] - moved["s_min"] / mean["s_min"])
    ratio = np.sqrt(excess / wave) / L
    return float(ratio), float(ratio * change / (2 * excess))


def _walk(
    family: ModelFamily, lam: float, L: int, mu2: float, sweeps: int, settings: WalkSettings, study: Study
) -> qp.Walk:
    name = f"lam{lam:.9g}_L{L}_{mu2:.9g}_{sweeps}"
    label = f"L = {L}, lam = {lam:g}, mu2 = {mu2:.6g}"
    meter = WalkMeter(study.display, sweeps)
    meter.part(0, sweeps, label)

    def make() -> qp.Walk:
        return qp.canonical(
            family.at(mu2),
            sweeps=sweeps,
            warm_up=warm_up_of(sweeps),
            groups=settings.groups,
            chains=settings.chains,
            kernel=LONG,
            seed=seed_of(settings.seed, Use.CHAINS, int.from_bytes(name.encode(), "big")),
            progress=meter,
        )

    return study.walk(name, label, make, family.at(mu2))


def _wave(family: ModelFamily, mu2: float) -> float:
    """khat^2 of the smallest momentum."""
    return float(family.at(mu2).lattice.lowest_eigenvalue)


def reading(curves: Curves) -> Reading:
    """What curves say where xi/L = 1."""
    rows = []
    for one in curves.each:
        at = one.where("ratio", RATIO)
        values = (one.value("binder", at)[0], one.value("fluctuation", at)[0], one.slope("ratio", at)[0])
        rows.append((at, *(float(value) for value in values)))
    return Reading(*np.array(rows).T)


def error_of(rows: Array) -> float:
    """Jackknife error of a number with rows from all groups and without each of them."""
    without = rows[1:]
    return float(np.sqrt((len(without) - 1) * without.var()))


def table_of(found: Mapping[tuple[float, int], Curves], lams: Sequence[float], sizes: Sequence[int]) -> xr.Dataset:
    """Readings over `lam` and `size`; between the two largest sizes the effective exponents and the crossing of xi/L."""
    result = xr.Dataset(
        coords={
            "lam": ("lam", list(lams), {"long_name": "lam of canonical chains"}),
            "size": ("size", list(sizes), {"long_name": "linear size"}),
        }
    )
    readings = {key: reading(curves) for key, curves in found.items()}
    words = {
        "mu2": f"mu2 at which xi/L = {RATIO:g}",
        "binder": f"Binder cumulant where xi/L = {RATIO:g}",
        "fluctuation": f"V <m^2> where xi/L = {RATIO:g}",
        "slope": f"slope of xi/L where it is {RATIO:g}",
    }
    for name in READ:
        rows = [[getattr(readings[lam, L], name) for L in sizes] for lam in lams]
        value = [[float(cell[0]) for cell in row] for row in rows]
        error = [[error_of(cell) for cell in row] for row in rows]
        result[name] = (("lam", "size"), value, {"long_name": words[name]})
        result[f"{name}_err"] = (("lam", "size"), error, {"long_name": "standard error"})
    _add_exponents(result, sizes)
    _add_crossings(result, found, lams, sizes)
    return result


def _add_exponents(result: xr.Dataset, sizes: Sequence[int]) -> None:
    """gamma/nu and 1/nu between the two largest sizes, each where xi/L = 1."""
    apart = np.log(sizes[-1] / sizes[-2])
    for label, name in (("gamma_over_nu", "fluctuation"), ("inverse_nu", "slope")):
        value, error = np.abs(result[name].values[:, -2:]), result[f"{name}_err"].values[:, -2:]
        words = f"effective exponent of {name} between L = {sizes[-2]} and {sizes[-1]}"
        result[label] = ("lam", np.log(value[:, 1] / value[:, 0]) / apart, {"long_name": words})
        spread = np.sqrt(((error / value) ** 2).sum(axis=1)) / apart
        result[f"{label}_err"] = ("lam", spread, {"long_name": "standard error"})


def _add_crossings(
    result: xr.Dataset, found: Mapping[tuple[float, int], Curves], lams: Sequence[float], sizes: Sequence[int]
) -> None:
    """mu2 at which xi/L of the two largest sizes is equal; NaN where they do not cross."""
    values, errors = [], []
    for lam in lams:
        small, large = (found[lam, L] for L in sizes[-2:])
        first = small.each[0].crossing(large.each[0], "ratio")
        variance = 0.0
        for rows in (
            [one.crossing(large.each[0], "ratio") for one in small.each[1:]],
            [small.each[0].crossing(one, "ratio") for one in large.each[1:]],
        ):
            variance += (len(rows) - 1) * float(np.var(rows))
        values.append(first)
        errors.append(variance**0.5)
    words = f"mu2 at which xi/L of L = {sizes[-2]} and {sizes[-1]} is equal"
    result["mu2_crossing"] = ("lam", values, {"long_name": words})
    result["mu2_crossing_err"] = ("lam", errors, {"long_name": "standard error"})
