"""Weighted least-squares fits of scaling laws, with the quality of each fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

Array = np.ndarray

FEWEST_SIZES = 3  # for a law with an error and a quality
ACCEPTED = 0.05  # p-value below which small sizes are left out
# p-value below which a result is not trusted; errors from eight replicas are themselves uncertain by a quarter.
BELIEVED = 0.01
# Exponents of corrections to scaling: 0.83 for Ising in three dimensions, 7/4 and 2 in two.
OMEGA = np.linspace(0.8, 2.5, 35)


class Fit(NamedTuple):
    """The parameters of a law, their errors, and how well it describes the points."""

    value: Array
    """(k,) the parameters"""
    error: Array
    """(k,) their standard errors"""
    chi2: float
    dof: int
    used: Array
    """(n,) which points took part"""

    @property
    def believed(self) -> bool:
        """False only where the points contradict the fit."""
        return not self.p_value < BELIEVED

    @property
    def p_value(self) -> float:
        """Probability of a larger chi squared; NaN without a degree of freedom."""
        return float(stats.chi2.sf(self.chi2, self.dof)) if self.dof > 0 else float("nan")

    def with_parameter(self, number: int, value: float, error: float) -> Fit:
        """The same fit with another value and error of one parameter, such as 1/x for x."""
        values, errors = self.value.copy(), self.error.copy()
        values[number], errors[number] = value, error
        return self._replace(value=values, error=errors)

    def with_further_error(self, number: int, error: float) -> Fit:
        """The same fit with an independent error of one parameter added in quadrature."""
        return self.with_parameter(number, self.value[number], np.hypot(self.error[number], error))


def least_squares(design: Array, y: Array, error: Array, used: Array | None = None) -> Fit:
    """Minimise sum ((y - design @ parameters)/error)^2; the error bars of the points are taken as they are.

    error: (n,) standard errors, or (n, n) the covariance of points that are not independent.
    """
    used = np.ones(len(y), bool) if used is None else used
    covariance = np.diag(error**2) if error.ndim == 1 else error
    # Whitened by the Cholesky factor, the points are independent and of error one.
    factor = np.linalg.cholesky(covariance[np.ix_(used, used)])
    a, b = np.linalg.solve(factor, design[used]), np.linalg.solve(factor, y[used])
    q, r = np.linalg.qr(a)  # a^T a would square the ratio of largest to smallest singular value
    inverse = np.linalg.inv(r)
    value = inverse @ (q.T @ b)
    chi2 = float(((b - a @ value) ** 2).sum())
    return Fit(value, np.sqrt((inverse**2).sum(axis=1)), chi2, int(used.sum()) - design.shape[1], used)


def largest_sizes(design: Array, y: Array, error: Array, sizes: Sequence[int] | Array) -> Fit:
    """The fit to all sizes, or to as many of the largest ones as it describes.

    Corrections to a scaling law vanish with growing size.  Small sizes are left out one by one until the p-value is
    accepted, as long as one degree of freedom is left.
    """
    order = np.argsort(sizes)
    fit = least_squares(design, y, error)
    for dropped in range(1, len(order) - design.shape[1]):
        if not fit.p_value < ACCEPTED:
            break
        used = np.ones(len(order), bool)
        used[order[:dropped]] = False
        fit = least_squares(design, y, error, used)
    return fit


def widened(fit: Fit) -> Fit:
    """The same fit with errors that cover the scatter about the law: sqrt(chi^2/dof) times larger, if that is > 1.

    For laws that hold for large sizes only, when it is not known from which on (Birge 1932).
    """
    scatter = np.sqrt(fit.chi2 / fit.dof) if fit.dof > 0 else 1.0
    return fit._replace(error=fit.error * max(1.0, scatter))


def with_correction(correction: Callable[[float], Array], y: Array, error: Array, over: Array = OMEGA) -> Fit:
    """A constant and a correction to scaling, y = constant + A correction(omega), where neither A nor omega is known.

    Every omega has its own linear fit, of weight exp(-chi^2/2); the parameters are averaged over a flat prior in omega,
    and their errors include the uncertainty of omega.
    """
    fits = []
    for omega in over:
        shape = correction(float(omega))
        fits.append(least_squares(np.column_stack([np.ones(len(y)), shape / np.abs(shape).max()]), y, error))
    chi2 = np.array([fit.chi2 for fit in fits])
    weight = np.exp(-0.5 * (chi2 - chi2.min()))
    weight /= weight.sum()
    values, errors = np.array([fit.value for fit in fits]), np.array([fit.error for fit in fits])
    value = weight @ values
    variance = weight @ (errors**2 + (values - value) ** 2)
    return Fit(value, np.sqrt(variance), float(chi2.min()), max(0, len(y) - 3), np.ones(len(y), bool))


def add_fit(result: xr.Dataset, name: str, fit: Fit, parameter: int, sizes: np.ndarray) -> None:
    """One parameter of a fit, its error and its quality."""
    result[name] = xr.Variable((), fit.value[parameter])
    result[f"{name}_err"] = xr.Variable((), fit.error[parameter])
    result[f"{name}_chi2"] = xr.Variable((), fit.chi2, {"long_name": f"chi squared of the fit of {name}"})
    result[f"{name}_dof"] = xr.Variable((), fit.dof, {"long_name": "degrees of freedom of the fit"})
    result[f"{name}_p_value"] = xr.Variable((), fit.p_value, {"long_name": "probability of a larger chi squared"})
    result[f"{name}_smallest_size"] = xr.Variable((), int(min(np.asarray(sizes)[fit.used])))
