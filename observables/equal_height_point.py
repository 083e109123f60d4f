"""At which coupling are the two peaks of P(q) equally high, and how deep is the valley between them?

With U = ... + c f X a coupling tilts the distribution, and the heights of the two peaks move apart nearly as

    d log(P_ord / P_dis) / dc = -beta f (<X>_ord - <X>_dis)

(exactly so where X is a multiple of q, with the X of the peaks), so that a few secant steps find the root.  Peaks and
valley are read off local parabolas through log P in the bins around them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from observables.estimation.errors import Answer, Uncertain
from observables.estimation.estimator import Targets, estimate
from observables.estimation.labels import dataset
from observables.histogram import apply, bins_of, edges_for, local_fit, weighted_values
from observables.order import check_recorded
from observables.samples.pool import Pool, Source

Array = np.ndarray

BINS = 60  # over the range that holds the distribution
WINDOW = 3  # bins to either side of a point that take part in its parabola
CONVERGED = 1e-4  # nats
FRACTION = 0.1  # of the standard error, which is as good
STEPS = 20
LARGEST_STEP = 4.0  # nats


class _Landscape(NamedTuple):
    """log P over the bins at one value of the coupling, and where its peaks and its valley are."""

    uncertain: Uncertain
    smooth: Array
    log_width: Array
    centres: Array
    low: int
    valley: int
    high: int

    def heights(self, log_z: Array, mean: Array) -> Array:
        """log P at the disordered peak, the valley and the ordered peak, (T, 3)."""
        with np.errstate(divide="ignore"):
            log_p = np.log(mean) - self.log_width
        return apply(self.smooth, log_p)[:, [self.low, self.valley, self.high]]

    def difference(self) -> Answer:
        return self.uncertain.of(lambda log_z, mean: (h := self.heights(log_z, mean))[:, 2] - h[:, 0])

    def barrier(self) -> Answer:
        """The depth of the valley below the mean of the two peaks, equal where they are equally high."""
        return self.uncertain.of(lambda log_z, mean: self.heights(log_z, mean) @ np.array([0.5, -1.0, 0.5]))


def equal_height(
    ladder: Source,
    coupling: str = "mu2",
    by: str = "q",
    cut: float = 1.25,
    beta: float = 1.0,
    *,
    start: float | None = None,
    errors: str = "auto",
    **couplings: float,
) -> xr.Dataset:
    """The value of `coupling` at which P(`by`) has equally high peaks on either side of `cut`, with the barrier there.

    barrier = log(P_peak / P_valley); low_peak, valley and high_peak are where they lie.  `start` is where the search
    begins, the ladder's own coupling by default; `couplings` fixes the others.
    """
    pool = Pool.of(ladder)
    check_recorded(pool, by)
    if coupling not in pool.couplings or coupling in couplings:
        known = ", ".join(name for name in pool.couplings if name not in couplings) or "none"
        raise ValueError(f"This ladder has no free coupling {coupling!r} to solve for; there are: {known}.")
    at = pool.couplings[coupling][0] if start is None else float(start)
    seen: list[tuple[float, float]] = []
    for _ in range(STEPS):
        found = _landscape(pool, Targets.grid(pool, beta, {coupling: at, **couplings}), by, cut, errors)
        difference, difference_err = (float(part[0]) for part in found.difference())
        if not np.isfinite(difference):
            raise ValueError(f"P({by}) has no two peaks around {by} = {cut:g} at {coupling} = {at:g}.")
        seen.append((at, difference))
        slope = _slope(pool, seen, found, coupling, by, beta)
        # Bins follow the coupling, so that the heights jump by a fraction of their error: a root may lie in a jump.
        if abs(difference) < max(CONVERGED, FRACTION * difference_err):
            break
        at -= float(np.clip(difference, -LARGEST_STEP, LARGEST_STEP)) / slope
    else:
        raise ValueError(f"No {coupling} at which the peaks of P({by}) are equally high was found near {seen[0][0]:g}.")
    answers = {
        coupling: Answer(np.array([at]), np.array([abs(difference_err / slope)])),
        "barrier": found.barrier(),
    }
    result = dataset(found.uncertain, answers, drop=(coupling,))
    for name, place in (("low_peak", found.low), ("valley", found.valley), ("high_peak", found.high)):
        result[name] = xr.Variable((), found.centres[place], {"long_name": f"{by} at the {name.replace('_', ' ')}"})
    return result.assign_attrs(phase_by=by, phase_cut=float(cut))


def _landscape(pool: Pool, targets: Targets, by: str, cut: float, errors: str) -> _Landscape:
    edges = edges_for(*weighted_values(pool, targets, by), BINS)
    centres = 0.5 * (edges[1:] + edges[:-1])
    uncertain = Uncertain(estimate(pool, targets, lambda replica, _: bins_of(replica.observable(by), edges)), errors)
    share = uncertain.found.pooled()[1][0]
    smooth, _, _ = local_fit(centres, share, WINDOW, degree=2)
    with np.errstate(divide="ignore"):
        curve = apply(smooth, np.log(share) - np.log(np.diff(edges)))
    curve = np.where(np.isfinite(curve) & (share > 0), curve, -np.inf)
    below, above = np.where(centres < cut, curve, -np.inf), np.where(centres >= cut, curve, -np.inf)
    low, high = int(np.argmax(below)), int(np.argmax(above))
    between = np.where(np.isfinite(curve[low : high + 1]), curve[low : high + 1], np.inf)
    return _Landscape(uncertain, smooth, np.log(np.diff(edges)), centres, low, low + int(np.argmin(between)), high)


def _slope(
    pool: Pool, seen: list[tuple[float, float]], found: _Landscape, coupling: str, by: str, beta: float
) -> float:
    """How fast the difference of the heights moves: from two values of the coupling, at first from the formula above."""
    if len(seen) > 1 and abs(seen[-1][0] - seen[-2][0]) > 0:
        (before, there), (now, here) = seen[-2:]
        if abs(here - there) > 10 * CONVERGED:
            return (here - there) / (now - before)
    _, conjugate, factor = pool.couplings[coupling]
    replica = pool.replicas[0]
    x, order = replica.observable(conjugate), replica.observable(by)
    # <X> near either peak, from all samples there: good enough to begin with.
    width = 0.25 * (found.centres[found.high] - found.centres[found.low])
    near = [float(np.nanmean(x[np.abs(order - found.centres[place]) < width])) for place in (found.low, found.high)]
    return -beta * factor * (near[1] - near[0])
