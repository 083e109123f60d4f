"""At which coupling do two phases weigh the same?  The root of the log odds, from one ladder, with its error.

With U = ... + c X, the log odds of the ordered phase have the exact slope

    d log(Z_ord / Z_dis) / dc = -beta (<X>_ord - <X>_dis),

so that Newton's method needs one pass over the samples a step and the error of the root is the error of one more step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.errors import Uncertain
from observables.estimation.estimator import Columns, Estimate, Targets, estimate, refuse_unsupported
from observables.estimation.labels import dataset
from observables.order import check_recorded
from observables.samples.of_ladders import Samples
from observables.samples.pool import Pool, Source

Array = np.ndarray

NEWTON_STEPS = 40
LARGEST_STEP = 4.0  # nats of log odds a step may move: what was sampled should overlap with what is asked next
CONVERGED = 1e-6  # nats of log odds


def equal_weight(
    ladder: Source,
    coupling: str = "mu2",
    by: str = "q",
    cut: float = 1.25,
    beta: float = 1.0,
    *,
    share: float = 0.5,
    errors: str = "auto",
    **couplings: Any,
) -> xr.Dataset:
    """The value of `coupling` at which the ordered phase (`by` >= `cut`) has the given share, one half by default.

    The dataset has this value under the coupling's name with its error, the slope of the log odds there
    (log_odds_slope), the mean of the coupling's observable in either phase, and the root of every block of replicas by
    itself (<coupling>_block).  `couplings` fixes the others.
    """
    pool = Pool.of(ladder)
    check_recorded(pool, by)
    if coupling not in pool.couplings or coupling in couplings:
        known = ", ".join(name for name in pool.couplings if name not in couplings) or "none"
        raise ValueError(f"This ladder has no free coupling {coupling!r} to solve for; there are: {known}.")
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1, but {share!r} was given.")
    start, observable, factor = pool.couplings[coupling]
    wanted = float(np.log(share / (1 - share)))

    def moments(replica: Samples, energy: Array) -> Columns:
        ordered = (replica.observable(by) >= cut).astype(float)
        conjugate = factor * replica.observable(observable).astype(float)
        return Columns([ordered, ordered * conjugate, conjugate])

    def excess(mean: Array) -> tuple[Array, Array]:
        """log odds above the wanted ones, and their slope."""
        return np.log(mean[:, 0]) - np.log1p(-mean[:, 0]) - wanted, -beta * np.subtract(*_in_phases(mean))

    def at(value: float) -> Estimate:
        targets = Targets.grid(pool, beta, {coupling: value, **couplings})
        if targets.dims:
            raise ValueError(f"A coexistence point has one target: {targets.dims[0]} must be a single number.")
        return estimate(pool, targets, moments, check=False)

    def newton(log_z: Array, mean: Array) -> Array:
        above, slope = excess(mean)
        return root - above / slope

    root = float(start)
    for _ in range(NEWTON_STEPS):
        found = at(root)
        mean = found.pooled()[1]
        if not 0 < mean[0, 0] < 1:
            phase = "ordered" if mean[0, 0] == 0 else "disordered"
            raise ValueError(
                f"The ladder has no sample of the {phase} phase (cut {by} = {cut:g}) at {coupling} = {root:g}, so no "
                f"{coupling} of equal weight can be found; run a ladder nearer to it."
            )
        above, slope = (float(part[0]) for part in excess(mean))
        if abs(above) < CONVERGED:
            break
        root -= float(np.clip(above, -LARGEST_STEP, LARGEST_STEP)) / slope
    else:
        raise ValueError(f"No {coupling} at which {by} >= {cut:g} has the share {share:g} was found near {start:g}.")
    refuse_unsupported(found)
    uncertain = Uncertain(found, errors)
    answers = {
        coupling: uncertain.of(newton),
        "log_odds_slope": uncertain.of(lambda log_z, mean: excess(mean)[1]),
        f"{observable}_ordered": uncertain.of(lambda log_z, mean: _in_phases(mean)[0] / factor),
        f"{observable}_disordered": uncertain.of(lambda log_z, mean: _in_phases(mean)[1] / factor),
    }
    result = dataset(uncertain, answers, drop=(coupling,))
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = [newton(*found.pooled([b]))[0] for b in range(len(found.log_z))]
    words = {"long_name": f"{coupling} of one block of replicas by itself, to first order", "units": "1"}
    result[f"{coupling}_block"] = ("block", alone, words)
    return result.assign_attrs(phase_by=by, phase_cut=float(cut), share=float(share))


def _in_phases(mean: Array) -> tuple[Array, Array]:
    """<X> in the ordered and in the disordered phase."""
    ordered, both, all_of_it = mean[:, 0], mean[:, 1], mean[:, 2]
    return both / ordered, (all_of_it - both) / (1 - ordered)
