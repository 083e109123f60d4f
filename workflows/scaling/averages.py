"""Fits with corrections to scaling, averaged over what nobody knows: their exponent and number, and the smallest size.

Every model is a linear fit with the exponent omega of a correction, or with two corrections omega and omega + 1, to the
sizes from some smallest one on.  Its weight is

    exp(-chi^2/2 - number of parameters - number of points left out)

(Jay and Neil 2021: leaving out a point costs as much as a parameter).  The variance of the average is that within the
models and that between them, so that the error covers the choice of the ansatz.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from workflows.scaling.fits import OMEGA, Fit, least_squares

Array = np.ndarray
MOST = 2  # corrections; one alone is not enough where two of opposite sign nearly cancel on small lattices
# Of the exponents of the corrections, none, one or two: (point, parameter), with the wanted parameters first.
Design = Callable[[tuple[float, ...]], Array]


class Average(NamedTuple):
    """One number from many fits."""

    value: float
    error: float
    best: Fit
    """The fit of largest weight."""
    p_value: float
    """The largest of all fits."""
    corrected: bool
    """False where there were too few points for a correction."""


def averaged(
    design: Design,
    y: Array,
    covariance: Array,
    sizes: Array,
    omega: float | None = None,
    wanted: int = 1,
    corrections: int = MOST,
) -> list[Average] | None:
    """The averages of the first parameters over all models; None where no fit has a degree of freedom.

    Parameters
    ----------
    design
        The design matrix for some exponents; for none of them that of the law without a correction.
    y, covariance
        Points and their covariance.
    sizes
        The size that a point is from.
    omega
        The exponent of the first correction, if it is known.
    wanted
        How many parameters are wanted.
    corrections
        How many corrections there are at most, with the exponents omega, omega + 1, ...
    """
    first = [float(one) for one in OMEGA] if omega is None else [float(omega)]
    models = _models(design, y, covariance, sizes, [e for one in first for e in _series(one, corrections)])
    corrected = bool(models)
    models = models or _models(design, y, covariance, sizes, [()])
    if not models:
        return None
    fits = [fit for fit, _ in models]
    log_weight = np.array([-0.5 * fit.chi2 - len(fit.value) - left_out for fit, left_out in models])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    best, p_value = fits[int(weight.argmax())], max(fit.p_value for fit in fits)
    found = []
    for number in range(wanted):
        values, errors = (np.array([getattr(fit, name)[number] for fit in fits]) for name in ("value", "error"))
        found.append(Average(*_mixed(weight, values, errors), best, p_value, corrected))
    return found


def _series(first: float, most: int) -> list[tuple[float, ...]]:
    """The exponents of one correction, of two, ..."""
    return [tuple(first + n for n in range(count)) for count in range(1, most + 1)]


def _mixed(weight: Array, values: Array, errors: Array) -> tuple[float, float]:
    """Mean and standard deviation of a mixture of answers: the variance within them and that between them."""
    value = float(weight @ values)
    variance = float(weight @ (errors**2 + (values - value) ** 2))
    return value, variance**0.5


def _models(
    design: Design, y: Array, covariance: Array, sizes: Array, exponents: Sequence[tuple[float, ...]]
) -> list[tuple[Fit, int]]:
    """All fits with a degree of freedom, and the number of points that each leaves out."""
    found = []
    for smallest in np.unique(sizes):
        used = sizes >= smallest
        for some in exponents:
            matrix = design(some)
            if used.sum() <= matrix.shape[1]:
                continue
            if np.linalg.matrix_rank(matrix[used]) < matrix.shape[1]:
                continue
            found.append((least_squares(matrix, y, covariance, used), int((~used).sum())))
    return found
