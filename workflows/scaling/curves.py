"""Curves over the coupling near a critical point: Binder cumulant, xi/L and V <m^2> of one size, with jackknife samples.

    B = 1 - <m^4>/(3 <m^2>^2),     (xi/L)^2 = (V <m^2>/S(k_min) - 1)/(khat_min L)^2,     chi = V <m^2>

The rows of a table are the estimate from all blocks and those without one block each, so that the covariance of anything
that is read from the curves of several sizes is a sum of jackknife covariances, one for each size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

import observables
from observables.estimation.estimator import ESS_FLOOR, estimate
from observables.estimation.moments import Columns
from observables.estimation.targets import Targets

Array = np.ndarray

POINTS = 33  # of a curve
FEWEST_POINTS = 6  # that the samples must support
NEWTON_STEPS = 4  # from a straight line between two of many points


@dataclass(frozen=True)
class Curves:
    """Curves of one size on a grid of the coupling; tables are (1 + blocks, point), the first row from all blocks."""

    length: int
    axis: Array
    tables: Mapping[str, Array]

    @cached_property
    def _splines(self) -> dict[str, CubicSpline]:
        return {name: CubicSpline(self.axis, table, axis=1) for name, table in self.tables.items()}

    @property
    def rows(self) -> int:
        return len(next(iter(self.tables.values())))

    @cached_property
    def each(self) -> list[Curves]:
        """Every row as curves of its own: from all blocks, then without one of them."""
        return [
            replace(self, tables={name: table[row : row + 1] for name, table in self.tables.items()})
            for row in range(self.rows)
        ]

    def value(self, name: str, at: float) -> Array:
        """A curve at one coupling, (row,)."""
        return self._splines[name](at)

    def slope(self, name: str, at: float) -> Array:
        """Its derivative, (row,)."""
        return self._splines[name](at, 1)

    def error(self, name: str, at: float) -> float:
        """Jackknife error of a curve at one coupling."""
        without = self.value(name, at)[1:]
        return float(np.sqrt((len(without) - 1) * without.var()))

    def where(self, name: str, wanted: float) -> float:
        """The coupling at which the first row has a value, nearest to the middle of the axis; NaN if there is none."""
        spline = self._splines[name]
        return _root(self.axis, self.tables[name][0] - wanted, lambda c: (spline(c)[0] - wanted, spline(c, 1)[0]))

    def crossing(self, other: Curves, name: str) -> float:
        """The coupling at which the first rows of two sizes are equal; NaN if there is none where both are known."""
        low, high = max(self.axis[0], other.axis[0]), min(self.axis[-1], other.axis[-1])
        if low >= high:
            return float("nan")
        axis = np.linspace(low, high, POINTS)
        one, two = self._splines[name], other._splines[name]
        return _root(axis, one(axis)[0] - two(axis)[0], lambda c: (one(c)[0] - two(c)[0], one(c, 1)[0] - two(c, 1)[0]))


def _root(axis: Array, values: Array, function: Callable[[float], tuple[float, float]]) -> float:
    """The zero nearest to the middle of the axis: from a change of sign between points, by Newton's method."""
    changes = np.flatnonzero(np.sign(values[:-1]) != np.sign(values[1:]))
    if not len(changes):
        return float("nan")
    i = int(changes[np.abs(axis[changes] - axis.mean()).argmin()])
    at = float(axis[i] - values[i] * (axis[i + 1] - axis[i]) / (values[i + 1] - values[i]))
    for _ in range(NEWTON_STEPS):
        value, slope = function(at)
        at = float(np.clip(at - value / slope, axis[i], axis[i + 1]))
    return at


def curves_of(pool: observables.Pool, length: int, coupling: str, ends: tuple[float, float], wave: float) -> Curves:
    """Curves between two couplings, as far as the samples support them; `wave` is khat_min^2, or NaN without momenta."""
    axis = np.linspace(*ends, POINTS)
    here: dict[str, Any] = {coupling: axis}
    with_wave = "s_min" in pool.observables and np.isfinite(wave)
    names = ("m2", "m4", "s_min") if with_wave else ("m2", "m4")
    found = estimate(
        pool,
        Targets.grid(pool, 1.0, here),
        lambda samples, energy: Columns([samples.observable(name).astype(float) for name in names]),
        check=False,
    )
    supported = _run_through_middle(found.ess >= ESS_FLOOR)
    if supported.sum() < FEWEST_POINTS:
        raise ValueError(f"The samples of L = {length} do not support {coupling} between {ends[0]:.6g} and {ends[1]:.6g}.")
    means = [found.pooled()[1], *(found.without(b)[1] for b in range(len(found.log_z)))]
    mean = np.array(means)[:, supported]  # (row, point, moment)
    m2, m4 = mean[..., 0], mean[..., 1]
    volume = float(pool.run.dimension)
    tables = {"binder": 1 - m4 / (3 * m2**2), "fluctuation": volume * m2}
    if with_wave:
        squared = (volume * m2 / mean[..., 2] - 1) / wave
        tables["ratio"] = np.sqrt(np.maximum(squared, 0.0)) / length
    return Curves(length, axis[supported], tables)


def _run_through_middle(good: Array) -> Array:
    """The unbroken run of good points that is nearest to the middle."""
    places = np.flatnonzero(good)
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []
    middle = (len(good) - 1) / 2
    chosen = min(runs, key=lambda run: np.abs(run - middle).min(), default=np.array([], int))
    return np.isin(np.arange(len(good)), chosen)


def joint(sizes: Sequence[Curves], read: Callable[[Sequence[Curves]], Array]) -> tuple[Array, Array]:
    """Numbers that are read from the curves of all sizes, and their full covariance.

    cov = sum over sizes of (B - 1)/B sum_b d_b d_b^T, d_b the change of the numbers without block b of that size, about
    their mean.
    """
    whole = [size.each[0] for size in sizes]
    value = read(whole)
    covariance = np.zeros((len(value), len(value)))
    for number, size in enumerate(sizes):
        blocks = size.rows - 1
        moved = np.array([
            read([*whole[:number], one, *whole[number + 1 :]]) for one in size.each[1:]
        ])  # fmt: skip
        away = moved - moved.mean(axis=0)
        covariance += (blocks - 1) / blocks * away.T @ away
    return value, covariance
