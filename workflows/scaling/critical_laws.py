"""The numbers of a critical point, each from a joint fit to what the curves of all sizes say.

With R = B or xi/L and its slope s_L, all sizes have at a coupling c near c_inf

    R_L(c) = R* + s_L (c - c_inf) + A L^(-omega) + A' L^(-omega - 1).

Both R are fitted together, with one c_inf and corrections of their own; every crossing of two sizes follows from that.
Where the universality class is known, so are the R*, and what is fitted is c_inf and the corrections.
Where one of the R has the same value at all sizes, the slopes of both grow as L^(1/nu) and V <m^2> as L^(gamma/nu), times
1 + b L^(-omega) + b' L^(-omega - 1).  All such series are fitted together, with one exponent and corrections of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import xarray as xr

from workflows.scaling.averages import MOST, Average, Design, averaged
from workflows.scaling.curves import Curves, joint
from workflows.scaling.fits import ACCEPTED, FEWEST_SIZES

Array = np.ndarray

RATIOS = ("binder", "ratio")
FEWEST_CROSSINGS = 2
STEPS = 8  # of the coupling at which both R are fitted
NEAR = 0.02  # errors of the coupling, within which it moves no more
# Errors by which a number may differ from what the largest sizes say: a correction with one unknown exponent is hardly known
# to better than a fifth.
EXTRAPOLATED = 5.0
BLOCKS_FOR_EACH = 4  # of a series of slopes: the covariance of more numbers is not known well enough
SIGNIFICANT = 3.0  # errors of the largest sizes themselves, within which they say nothing


@dataclass(frozen=True)
class Law:
    """A number from fits to all sizes, and the same without the smallest of them: a correction to scaling moves it."""

    name: str
    found: Average
    without: Average | None  # None where too few points are left
    sizes: Array  # of the points
    largest: Sequence[tuple[float, float]] = ()  # the number as the largest sizes alone have it by each R, with its error

    @property
    def value(self) -> float:
        return self.found.value

    @property
    def error(self) -> float:
        return self.found.error

    def add_to(self, result: xr.Dataset) -> None:
        best = self.found.best
        words = {
            "chi2": (best.chi2, f"chi squared of the best fit of {self.name}"),
            "dof": (best.dof, "degrees of freedom of the best fit"),
            "p_value": (best.p_value, "probability of a larger chi squared than that of the best fit"),
            "smallest_size": (int(min(self.sizes[best.used])), "smallest size in the best fit"),
            "without_smallest": (
                np.nan if self.without is None else self.without.value,
                f"{self.name} without the smallest size",
            ),
        }
        result[self.name] = xr.Variable((), self.value)
        result[f"{self.name}_err"] = xr.Variable((), self.error, {"long_name": "standard error, choice of the fit included"})
        for word, (value, long_name) in words.items():
            result[f"{self.name}_{word}"] = xr.Variable((), value, {"long_name": long_name})

    def doubt(self) -> str:
        """Why the number might be wrong, in a sentence; empty if nothing speaks against it."""
        number = f"{self.name.replace('_', ' ')} = {self.value:.5g} +- {self.error:.2g}"
        if not self.found.corrected:
            return f"There are too few sizes to tell corrections to scaling from {number}."
        if not self.found.p_value > ACCEPTED:
            return (
                f"The sizes do not follow the law that gives {number} (p = {self.found.p_value:.2g} at best): add larger "
                "sizes, or more sweeps."
            )
        smallest = int(min(self.sizes))
        if self.without is None:
            return f"There are too few sizes to tell what {number} would be without L = {smallest}."
        if abs(self.without.value - self.value) > self.error:
            return (
                f"Without L = {smallest} {number} would be {self.without.value:.5g}, more than its error away: corrections "
                "to scaling are not small enough; add larger sizes."
            )
        for there, error in self.largest:
            distance = abs(there - self.value)
            if distance > EXTRAPOLATED * self.error and distance > SIGNIFICANT * error:
                return (
                    f"{number} is extrapolated by {distance / self.error:.0f} errors from the largest sizes, which have "
                    f"{there:.5g}: a correction to scaling that large is not known well enough; add larger sizes."
                )
        return ""


@dataclass(frozen=True)
class Crossings:
    """Where the curves of pairs of sizes cross, for each R: the coupling with its covariance, and both slopes there."""

    pairs: Sequence[tuple[int, int]]
    names: Array  # (point,)
    small: Array
    large: Array
    slopes: Array  # (point, 2)
    values: Array  # (point,) couplings
    covariance: Array

    @property
    def count(self) -> int:
        return len(self.names)


def pairs_of(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """(L, 2L) where at least two such pairs exist, else neighbouring sizes."""
    double = [(L, 2 * L) for L in lengths if 2 * L in lengths]
    return double if len(double) > 1 else list(pairwise(lengths))


def crossings_of(sizes: Sequence[Curves]) -> Crossings:
    """All crossings; refused where hardly any pair crosses."""
    number = {size.length: i for i, size in enumerate(sizes)}
    pairs = pairs_of([size.length for size in sizes])
    table = [(name, pair) for name in RATIOS if all(name in size.tables for size in sizes) for pair in pairs]

    def at(some: Sequence[Curves], name: str, pair: tuple[int, int]) -> float:
        return some[number[pair[0]]].crossing(some[number[pair[1]]], name)

    whole = [size.each[0] for size in sizes]

    def read(some: Sequence[Curves]) -> Array:
        return np.array([at(some, name, pair) for name, pair in table])

    values, covariance = joint(sizes, read)
    # A pair whose curves do not cross where both were sampled, in any of the jackknife samples, has nothing to say.
    there = np.isfinite(values) & np.isfinite(np.diagonal(covariance))
    if there.sum() < FEWEST_CROSSINGS:
        listed = ", ".join(f"{a} and {b}" for a, b in pairs)
        raise ValueError(f"Of the pairs L = {listed} fewer than {FEWEST_CROSSINGS} cross where both were sampled.")
    table = [row for row, known in zip(table, there, strict=True) if known]
    values, covariance = values[there], covariance[np.ix_(there, there)]
    slopes = [
        [whole[number[L]].slope(name, c)[0] for L in pair] for c, (name, pair) in zip(values, table, strict=True)
    ]  # fmt: skip
    return Crossings(
        pairs,
        np.array([name for name, _ in table]),
        np.array([float(a) for _, (a, _) in table]),
        np.array([float(b) for _, (_, b) in table]),
        np.array(slopes),
        values,
        covariance,
    )


def fitted_point(
    sizes: Sequence[Curves],
    crossings: Crossings,
    names: Mapping[str, str],
    omega: float | None,
    known: Mapping[str, float] | None = None,
) -> dict[str, Law]:
    """c_inf and the R* of every R, under the names given for "coupling" and for every R, from all sizes at once.

    The law is linear near c_inf: it is fitted to the R_L at the last answer, until that moves no more.  R* that are known
    are not fitted, and have no law.
    """
    ratios = [ratio for ratio in RATIOS if all(ratio in size.tables for size in sizes)]
    at = float(np.median(crossings.values))
    for _ in range(STEPS):
        found = _at_one_coupling(sizes, ratios, at, omega, known)
        step = float(np.clip(at + found.whole[0].value, *sizes[-1].axis[[0, -1]])) - at
        at += step
        if abs(step) < NEAR * found.whole[0].error:
            break
    largest = [_largest_couplings(sizes, crossings) if known is None else _couplings_of(sizes[-1], known)]
    fitted = ratios if known is None else []
    for ratio in fitted:
        along = float(sizes[-1].slope(ratio, at)[0]) * found.whole[0].error
        largest.append([(float(sizes[-1].value(ratio, at)[0]), float(np.hypot(sizes[-1].error(ratio, at), along)))])
    moved = [at - step, *(0.0 for _ in fitted)]  # the coupling was fitted as a distance
    laws = {}
    for number, name in enumerate([names["coupling"], *(names[ratio] for ratio in fitted)]):
        whole, without = (
            some and some[number]._replace(value=some[number].value + moved[number]) for some in (found.whole, found.without)
        )
        assert whole
        laws[name] = Law(name, whole, without or None, found.sizes, largest[number])
    return laws


def _largest_couplings(sizes: Sequence[Curves], crossings: Crossings) -> list[tuple[float, float]]:
    """Where the curves of the largest sizes cross, by each R, with errors."""
    error = np.sqrt(np.diagonal(crossings.covariance))
    ends = [np.flatnonzero(crossings.names == ratio)[-1] for ratio in dict.fromkeys(crossings.names)]
    return [(float(crossings.values[i]), float(error[i])) for i in ends]


def _couplings_of(size: Curves, known: Mapping[str, float]) -> list[tuple[float, float]]:
    """Where one size has the known R*, with errors."""
    found = []
    for ratio, value in known.items():
        at = size.where(ratio, value) if ratio in size.tables else np.nan
        if np.isfinite(at):
            found.append((at, size.error(ratio, at) / abs(float(size.slope(ratio, at)[0]))))
    return found


def _at_one_coupling(
    sizes: Sequence[Curves], ratios: Sequence[str], at: float, omega: float | None, known: Mapping[str, float] | None
) -> _Fitted:
    """The distance of c_inf from a coupling, and the R* unless they are known, from the sizes that were sampled there."""
    sizes = [size for size in sizes if size.axis[0] <= at <= size.axis[-1]]
    table = [(ratio, i) for ratio in ratios for i in range(len(sizes))]
    y, covariance = joint(sizes, lambda some: np.array([some[i].value(ratio, at)[0] for ratio, i in table]))
    names = np.array([ratio for ratio, _ in table])
    lengths = np.array([float(sizes[i].length) for _, i in table])
    slopes = np.array([sizes[i].slope(ratio, at)[0] for ratio, i in table])

    def design(exponents: tuple[float, ...]) -> Array:
        columns = [-slopes[:, None], *([_each(names, np.ones(len(names)))] if known is None else [])]
        return np.hstack([*columns, *(_each(names, lengths**-one) for one in exponents)])

    if known is not None:
        y = y - np.array([known[name] for name in names])
    # The R* that are known leave room for another correction.
    wanted, corrections = (1 + len(ratios), MOST) if known is None else (1, MOST + 1)
    blocks = min(size.rows for size in sizes) - 1
    found = _fitted(design, y, _widened(covariance, lengths, blocks), lengths, omega, wanted, corrections)
    if found is None:
        raise ValueError("There are too few sizes for the critical coupling: at least three are needed.")
    return found


class _Fitted(NamedTuple):
    """Averages from all sizes, and without the smallest where a correction is left; the size of every point."""

    whole: Sequence[Average]
    without: Sequence[Average] | None
    sizes: Array


def _fitted(
    design: Design,
    y: Array,
    covariance: Array,
    sizes: Array,
    omega: float | None,
    wanted: int = 1,
    corrections: int = MOST,
) -> _Fitted | None:
    whole = averaged(design, y, covariance, sizes, omega, wanted, corrections)
    if whole is None:
        return None
    rest = sizes > sizes.min()

    def fewer(exponents: tuple[float, ...]) -> Array:
        return design(exponents)[rest]

    without = averaged(fewer, y[rest], covariance[np.ix_(rest, rest)], sizes[rest], omega, wanted, corrections)
    return _Fitted(whole, without if without is not None and without[0].corrected else None, sizes)


def exponent(sizes: Sequence[Curves], what: str, fixed: Mapping[str, float], name: str, omega: float | None) -> Law:
    """x of quantities that grow as L^x where an R has a fixed value: the slope of every R, or V <m^2>.

    The slope of each R is read where each of them has its value, and all these series are fitted together.  Their
    corrections differ in size and in sign (a slope may grow too fast where its own R is fixed, and too slowly where the
    other is): none of them alone tells how far away the limit is.
    """
    blocks = min(size.rows for size in sizes) - 1
    series = _series(what, list(fixed))[: max(len(fixed), blocks // BLOCKS_FOR_EACH)]

    def of_size(size: Curves) -> list[float]:
        places = {ratio: size.where(ratio, value) for ratio, value in fixed.items()}
        read = size.slope if what == "slope" else size.value
        return [abs(float(read(quantity, places[ratio])[0])) for quantity, ratio in series]

    # Of every jackknife sample once; `joint` asks for each of them as often as there are blocks of all sizes.
    table = {id(one): np.log(of_size(one)) for size in sizes for one in size.each}
    y, covariance = joint(sizes, lambda some: np.array([table[id(one)] for one in some]).T.ravel())
    number = np.repeat(np.arange(len(series)), len(sizes))
    lengths = np.tile([float(size.length) for size in sizes], len(series))
    # A size that does not have the value where it was sampled has nothing to say.
    there = np.isfinite(y) & np.isfinite(np.diagonal(covariance))
    there &= np.bincount(number[there], minlength=len(series))[number] >= FEWEST_SIZES
    if not there.any():
        raise ValueError(f"There are too few sizes for {name.replace('_', ' ')}: at least three are needed.")
    y, covariance, number, lengths = y[there], covariance[np.ix_(there, there)], number[there], lengths[there]

    def design(exponents: tuple[float, ...]) -> Array:
        corrections = [_each(number, lengths**-one) for one in exponents]
        return np.hstack([np.log(lengths)[:, None], _each(number, np.ones(len(lengths))), *corrections])

    found = _fitted(design, y, _widened(covariance, lengths, blocks), lengths, omega)
    if found is None:
        raise ValueError(f"There are too few sizes for {name.replace('_', ' ')}: at least three are needed.")
    without = None if found.without is None else found.without[0]
    ends = [np.flatnonzero(number == one)[-2:] for one in dict.fromkeys(number)]
    return Law(name, found.whole[0], without, lengths, [_last_step(y, covariance, lengths, end) for end in ends])


def _series(what: str, ratios: Sequence[str]) -> list[tuple[str, str]]:
    """(quantity, R that is fixed): of slopes first those where their own R is fixed."""
    if what != "slope":
        return [(what, ratio) for ratio in ratios]
    return [(one, one) for one in ratios] + [(one, other) for other in ratios for one in ratios if one != other]


def _last_step(y: Array, covariance: Array, lengths: Array, end: Array) -> tuple[float, float]:
    """The exponent from two sizes alone, with its error."""
    weight = np.array([-1.0, 1.0]) / np.log(lengths[end[1]] / lengths[end[0]])
    return float(weight @ y[end]), float(weight @ covariance[np.ix_(end, end)] @ weight) ** 0.5


def _widened(covariance: Array, lengths: Array, blocks: int) -> Array:
    """The covariance whose inverse is unbiased.

    That of q numbers of a size from B blocks has an inverse that is too large by (B - 1)/(B - q - 2) (Hartlap et al.
    2007), so that chi^2 is too large and errors of fits are too small.
    """
    most = int(np.unique(lengths, return_counts=True)[1].max())
    return covariance * (blocks - 1) / max(blocks - most - 2, 1)


def _each(names: Array, shape: Array) -> Array:
    """One column for each name, with the shape at its points and zero elsewhere."""
    columns = [np.where(names == name, shape, 0.0) for name in dict.fromkeys(names)]
    return np.column_stack([_scaled(column) for column in columns])


def _scaled(column: Array) -> Array:
    """Of largest entry one, so that no fit loses digits."""
    return column / max(float(np.abs(column).max()), 1e-300)
