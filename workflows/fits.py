"""How is a line put through measured points?  Weighted least squares, with the quality of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

Array = np.ndarray

ACCEPTED = 0.05  # p-value below which a fit is not believed


class Fit(NamedTuple):
    value: Array  # (k,) the parameters
    error: Array  # (k,)
    chi2: float
    dof: int
    used: Array  # (n,) which points took part

    @property
    def p_value(self) -> float:
        return float(stats.chi2.sf(self.chi2, self.dof)) if self.dof > 0 else float("nan")


def least_squares(design: Array, y: Array, error: Array, used: Array | None = None) -> Fit:
    """Minimise sum ((y - design @ parameters)/error)^2; the error bars of the points are taken as they are."""
    used = np.ones(len(y), bool) if used is None else used
    a, b = design[used] / error[used, None], y[used] / error[used]
    covariance = np.linalg.inv(a.T @ a)
    value = covariance @ (a.T @ b)
    chi2 = float(((b - a @ value) ** 2).sum())
    return Fit(value, np.sqrt(np.diagonal(covariance)), chi2, int(used.sum()) - design.shape[1], used)


def largest_sizes(design: Array, y: Array, error: Array, sizes: Sequence[int] | Array) -> Fit:
    """The fit to all sizes, or to as many of the largest ones as it describes.

    Corrections to a scaling law die out with the size.  Small sizes are left out one by one until the p-value is
    accepted, as long as one degree of freedom is left.
    """
    order = np.argsort(sizes)
    fit = least_squares(design, y, error)
    for dropped in range(1, len(order) - design.shape[1]):
        if fit.p_value >= ACCEPTED:
            break
        used = np.ones(len(order), bool)
        used[order[:dropped]] = False
        fit = least_squares(design, y, error, used)
    return fit


def power_law(sizes: Sequence[int] | Array, y: Array, error: Array) -> Fit:
    """y = a L^x as a straight line in logarithms: the parameters are log a and x."""
    design = np.stack([np.ones(len(sizes)), np.log(sizes)], axis=1)
    return largest_sizes(design, np.log(np.abs(y)), error / np.abs(y), sizes)


def add_fit(result: xr.Dataset, name: str, fit: Fit, parameter: int, sizes: np.ndarray) -> None:
    """One parameter of a fit, its error and its quality."""
    result[name] = xr.Variable((), fit.value[parameter])
    result[f"{name}_err"] = xr.Variable((), fit.error[parameter])
    result[f"{name}_chi2"] = xr.Variable((), fit.chi2, {"long_name": f"chi squared of the fit of {name}"})
    result[f"{name}_dof"] = xr.Variable((), fit.dof, {"long_name": "degrees of freedom of the fit"})
    result[f"{name}_p_value"] = xr.Variable((), fit.p_value, {"long_name": "probability of a larger chi squared"})
    result[f"{name}_smallest_size"] = xr.Variable((), int(min(np.asarray(sizes)[fit.used])))
