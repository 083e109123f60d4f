"""The numbers of a critical point, each from a joint fit to what the curves of all sizes say.

With R = B or xi/L, R_L(c) = R* + s_L (c - c_inf) + A L^(-omega), two sizes a and b cross at

    c_ab = c_inf + A (a^(-omega) - b^(-omega))/(s_b - s_a),

at c_inf all sizes have R* + A L^(-omega), and where R has one and the same value at all sizes, its slope grows as L^(1/nu)
and V <m^2> as L^(gamma/nu), times 1 + b L^(-omega).  Both R are fitted together: what they share is the wanted number, and
each has its own correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import xarray as xr

from workflows.scaling.averages import Average, Design, averaged
from workflows.scaling.curves import Curves, joint
from workflows.scaling.fits import ACCEPTED

Array = np.ndarray

RATIOS = ("binder", "ratio")
FEWEST_CROSSINGS = 2
# Errors by which a number may differ from what the largest sizes say: a correction with one unknown exponent is hardly known
# to better than a fifth.
EXTRAPOLATED = 5.0
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

    def shape(self, omega: float) -> Array:
        """The correction of each crossing for A = 1."""
        return (self.small**-omega - self.large**-omega) / (self.slopes[:, 1] - self.slopes[:, 0])


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


def critical_coupling(crossings: Crossings, name: str, omega: float | None) -> Law:
    """c_inf from the crossings of both R."""

    def design(omega: float | None) -> Array:
        ones = np.ones((crossings.count, 1))
        return ones if omega is None else np.hstack([ones, _each(crossings.names, crossings.shape(omega))])

    error = np.sqrt(np.diagonal(crossings.covariance))
    ends = [np.flatnonzero(crossings.names == ratio)[-1] for ratio in dict.fromkeys(crossings.names)]
    last = [(float(crossings.values[i]), float(error[i])) for i in ends]
    return _law(name, design, crossings.values, crossings.covariance, crossings.small, omega, last)


def critical_value(sizes: Sequence[Curves], which: str, critical: Law, name: str, omega: float | None) -> Law:
    """R* of one R from all sizes at c_inf, whose error moves them together along their slopes."""
    at = critical.value
    y, covariance = joint(sizes, lambda some: np.array([size.value(which, at)[0] for size in some]))
    along = np.array([size.slope(which, at)[0] for size in sizes]) * critical.error
    lengths = np.array([float(size.length) for size in sizes])

    def design(omega: float | None) -> Array:
        ones = np.ones((len(sizes), 1))
        return ones if omega is None else np.column_stack([ones, _scaled(lengths**-omega)])

    covariance = covariance + np.outer(along, along)
    return _law(name, design, y, covariance, lengths, omega, [(float(y[-1]), float(covariance[-1, -1]) ** 0.5)])


def exponent(sizes: Sequence[Curves], what: str, fixed: dict[str, float], name: str, omega: float | None) -> Law:
    """x of a quantity that grows as L^x (1 + b L^-omega) where R has a fixed value: the slope of R, or V <m^2>."""
    table = [(ratio, i) for ratio in fixed for i in range(len(sizes))]

    def read(some: Sequence[Curves]) -> Array:
        found = []
        for ratio, i in table:
            at = some[i].where(ratio, fixed[ratio])
            value = some[i].slope(ratio, at)[0] if what == "slope" else some[i].value(what, at)[0]
            found.append(np.log(np.abs(value)))
        return np.array(found)

    y, covariance = joint(sizes, read)
    # A size that does not have the value where it was sampled has nothing to say.
    there = np.isfinite(y) & np.isfinite(np.diagonal(covariance))
    table = [row for row, known in zip(table, there, strict=True) if known]
    y, covariance = y[there], covariance[np.ix_(there, there)]
    names = np.array([ratio for ratio, _ in table])
    lengths = np.array([float(sizes[i].length) for _, i in table])

    def design(omega: float | None) -> Array:
        columns = [np.log(lengths)[:, None], _each(names, np.ones(len(names)))]
        if omega is not None:
            columns.append(_each(names, lengths**-omega))
        return np.hstack(columns)

    last = []
    for ratio in dict.fromkeys(names):
        if len(ends := np.flatnonzero(names == ratio)[-2:]) == 2:
            weight = np.array([-1.0, 1.0]) / np.diff(np.log(lengths[ends]))
            variance = weight @ covariance[np.ix_(ends, ends)] @ weight
            last.append((float(weight @ y[ends]), float(variance) ** 0.5))
    return _law(name, design, y, covariance, lengths, omega, last)


def _law(
    name: str,
    design: Design,
    y: Array,
    covariance: Array,
    sizes: Array,
    omega: float | None,
    largest: Sequence[tuple[float, float]],
) -> Law:
    found = averaged(design, y, covariance, sizes, omega)
    if found is None:
        raise ValueError(f"There are too few sizes for {name.replace('_', ' ')}: at least three are needed.")
    rest = sizes > sizes.min()

    def fewer(omega: float | None) -> Array:
        return design(omega)[rest]

    without = averaged(fewer, y[rest], covariance[np.ix_(rest, rest)], sizes[rest], omega) if rest.any() else None
    return Law(name, found, without if without is not None and without.corrected else None, sizes, largest)


def _each(names: Array, shape: Array) -> Array:
    """One column for each name, with the shape at its points and zero elsewhere."""
    columns = [np.where(names == name, shape, 0.0) for name in dict.fromkeys(names)]
    return np.column_stack([_scaled(column) for column in columns])


def _scaled(column: Array) -> Array:
    """Of largest entry one, so that no fit loses digits."""
    return column / max(float(np.abs(column).max()), 1e-300)
