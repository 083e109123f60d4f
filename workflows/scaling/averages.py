"""Fits with a correction to scaling, averaged over what nobody knows: its exponent, and the smallest size the law holds for.

Every model is a linear fit with one exponent omega of the correction, to the sizes from some smallest one on.  Its weight is

    exp(-chi^2/2 - number of points left out)

(Jay and Neil 2021: leaving out a point costs as much as a parameter).  The variance of the average is that within the
models and that between them, so that the error covers the choice of the ansatz.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from workflows.scaling.fits import OMEGA, Fit, least_squares

Array = np.ndarray
Design = Callable[[float | None], Array]  # of an omega: (point, parameter), the wanted parameter first; None: no correction


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


def averaged(design: Design, y: Array, covariance: Array, sizes: Array, omega: float | None = None) -> Average | None:
    """The average over exponents and smallest sizes; None where no fit has a degree of freedom.

    Parameters
    ----------
    design
        The design matrix for an exponent; for None that of the law without a correction.
    y, covariance
        Points and their covariance.
    sizes
        The size, or the smaller of two, that a point is from.
    omega
        The exponent, if it is known.
    """
    exponents = list(OMEGA) if omega is None else [omega]
    models = _models(design, y, covariance, sizes, exponents)
    corrected = bool(models)
    models = models or _models(design, y, covariance, sizes, [None])
    if not models:
        return None
    fits = [fit for fit, _ in models]
    log_weight = np.array([-0.5 * fit.chi2 - left_out for fit, left_out in models])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    values, errors = (np.array([getattr(fit, name)[0] for fit in fits]) for name in ("value", "error"))
    value = float(weight @ values)
    variance = float(weight @ (errors**2 + (values - value) ** 2))
    return Average(value, variance**0.5, fits[int(weight.argmax())], max(fit.p_value for fit in fits), corrected)


def _models(
    design: Design, y: Array, covariance: Array, sizes: Array, exponents: Sequence[float | None]
) -> list[tuple[Fit, int]]:
    """All fits with a degree of freedom, and the number of points that each leaves out."""
    found = []
    for smallest in np.unique(sizes):
        used = sizes >= smallest
        for omega in exponents:
            matrix = design(omega)
            if used.sum() <= matrix.shape[1]:
                continue
            if np.linalg.matrix_rank(matrix[used]) < matrix.shape[1]:
                continue
            found.append((least_squares(matrix, y, covariance, used), int((~used).sum())))
    return found
