"""The two peaks of a distribution and the valley between them.

Three steps keep the answer honest.  The places are found on a fine histogram of all samples, smoothed: fine compared to
the valley, which may be sharp.  Around each place a window is opened in which log P changes by about one nat, or less if the
valley is shallow, cut into a few bins.  There a polynomial is fitted to log P, and its extremum is the height: no bin is
picked because its noise is high or low, and an error propagates through the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_filter

Array = np.ndarray

SMOOTHED_OVER = (5, 21)  # fine bins, at least and at most: a fortieth of all, so that a sharp valley is not filled
DEPARTURE = 1.0  # nats by which log P changes within a window, to either side, and at most this share of the valley's depth:
DEPARTURE_SHARE = 0.25  # half-way up to a peak log P bends back, and no polynomial of low degree follows it to the bottom
SHALLOWEST = 0.5  # nats: a valley less deep does not separate phases
BINS_PER_WINDOW = 12
RESOLVED = 6  # bins a window needs, or its extremum is not resolved
DEGREE = 4
LARGEST_TILT = 60.0  # nats by which two peaks may differ in height


def smoothed(log_p: Array, over: int | None = None) -> Array:
    """A curve through a fine histogram; bins without a value (NaN) are bridged, those at the ends stay NaN.

    over: the number of bins a parabola is fitted to, a fortieth of all unless given.
    """
    seen = np.flatnonzero(np.isfinite(log_p))
    if len(seen) < 5:
        return np.full(len(log_p), np.nan)
    inside = slice(seen[0], seen[-1] + 1)
    curve = np.full(len(log_p), np.nan)
    bridged = np.interp(np.arange(inside.start, inside.stop), seen, log_p[seen])
    window = int(np.clip(len(bridged) // 40, *SMOOTHED_OVER)) if over is None else min(over, len(bridged) // 2)
    window = max(3, window // 2 * 2 + 1)
    curve[inside] = savgol_filter(bridged, window, 2)
    return curve


def deepest_valley(log_p: Array) -> tuple[float, int, int, int]:
    """(depth, low, valley, high): the bin lying deepest below the lower of the highest bins to either side of it."""
    with_floor = np.where(np.isfinite(log_p), log_p, -np.inf)
    left = np.maximum.accumulate(with_floor)
    right = np.maximum.accumulate(with_floor[::-1])[::-1]
    with np.errstate(invalid="ignore"):
        depth = np.where(np.isfinite(log_p), np.minimum(left, right) - with_floor, -np.inf)
    valley = int(np.argmax(depth))
    return (
        float(depth[valley]),
        int(np.argmax(with_floor[: valley + 1])),
        valley,
        valley + int(np.argmax(with_floor[valley:])),
    )


def equal_heights(curve: Array, x: Array) -> float:
    """The tilt at which curve - tilt * x has its deepest valley, that is where its two peaks are equally high."""
    seen = x[np.isfinite(curve)]
    if not len(seen):
        return 0.0
    reach = LARGEST_TILT / (seen[-1] - seen[0])
    best = 0.0
    for _ in range(3):  # each round is thirty times finer
        tilts = best + np.linspace(-1, 1, 121) * reach
        best = float(max(tilts, key=lambda tilt: deepest_valley(curve - tilt * x)[0]))
        reach /= 30
    return best


@dataclass(frozen=True)
class Landmarks:
    """Low peak, valley and high peak of a curve over fine bins, each with a window of bins (as edges of fine bins)."""

    at: tuple[int, int, int]
    windows: tuple[Array, Array, Array]

    @staticmethod
    def of(curve: Array) -> Landmarks | None:
        """None where the curve has no valley, or too few bins in a window to say how deep it is."""
        depth, *at = deepest_valley(curve)
        if not depth > SHALLOWEST:
            return None
        low, valley, high = at
        ends = (0, valley), (low, high), (valley, len(curve) - 1)
        departure = min(DEPARTURE, DEPARTURE_SHARE * depth)
        windows = tuple(_window(curve, departure, place, *limits) for place, limits in zip(at, ends, strict=True))
        if min(map(len, windows)) - 1 < RESOLVED:
            return None
        return Landmarks((low, valley, high), (windows[0], windows[1], windows[2]))


def _window(curve: Array, departure: float, at: int, first: int, last: int) -> Array:
    """Edges, in fine bins, of the bins around a place: up to where the curve has changed by `departure` nats."""
    near = np.abs(curve - curve[at]) <= departure  # False where the curve is NaN
    left = right = at
    while left > first and near[left - 1]:
        left -= 1
    while right < last and near[right + 1]:
        right += 1
    count = min(BINS_PER_WINDOW, right - left + 1)
    return np.unique(np.linspace(left, right + 1, count + 1).round().astype(int))


def edges_of(landmarks: Sequence[Landmarks]) -> Array:
    """All edges of their windows together, in fine bins; the bins between windows belong to none."""
    return np.unique(np.concatenate([window for one in landmarks for window in one.windows]))


class Reading:
    """Height and place of one extremum, from log P in bins.

    u is the coordinate in which the polynomial is fitted (numbers of fine bins, in which log P is smooth even where it is
    steep in x), x what is reported.
    """

    def __init__(self, edges: Array, window: Array, x_edges: Array, sign: float):
        self.bins = np.flatnonzero((edges[:-1] >= window[0]) & (edges[1:] <= window[-1]))
        x_of = x_edges[edges]
        centres = 0.5 * (x_of[1:] + x_of[:-1])[self.bins]
        u = np.interp(centres, x_edges, np.arange(len(x_edges)))
        scale = max(u[-1] - u[0], 1e-12)
        degree = min(DEGREE, max(0, len(u) - 2))
        fit = np.linalg.pinv(np.vander((u - u[0]) / scale, degree + 1, increasing=True))
        where = np.linspace(0, 1, 201)
        self.curve = np.vander(where, degree + 1, increasing=True) @ fit  # (201, bins)
        self.places = np.interp(u[0] + scale * where, u, centres)
        self.sign = sign

    def __call__(self, log_p: Array) -> tuple[Array, Array]:
        """(height, place) for log P (T, bins)."""
        values = log_p[:, self.bins] @ self.curve.T
        best = np.argmax(self.sign * values, axis=1)
        return values[np.arange(len(values)), best], self.places[best]


def readings(edges: Array, landmarks: Landmarks, x_edges: Array) -> list[Reading]:
    """For low peak, valley and high peak."""
    signs = (1.0, -1.0, 1.0)
    return [Reading(edges, w, x_edges, sign) for w, sign in zip(landmarks.windows, signs, strict=True)]


def at_equal_heights(three: Sequence[Reading], log_p: Array, x: Array, tilt: float) -> Array:
    """What more tilt makes both peaks equally high, the depth of the valley then, and the three places: (T, 5).

    log P (T, bins) at x is tilted by -tilt * x before it is read.  Peaks move along with the tilt, but only their places
    enter.
    """
    (h_low, x_low), (h_valley, x_valley), (h_high, x_high) = (read(log_p - tilt * x) for read in three)
    more = (h_low - h_high) / (x_low - x_high)
    depth = h_low - more * x_low - (h_valley - more * x_valley)
    return np.stack([more, depth, x_low, x_valley, x_high], axis=1)
