"""The table of an experiment: the paper's value, ours, both errors, and the deviation in combined errors.

    z = (ours - paper) / sqrt(s_ours^2 + s_paper^2)        z_exact = (ours - exact) / sqrt(s_ours^2 + s_exact^2)

The paper states the standard deviation over its seeds.  With n seeds the error of their mean is

    s_paper^2 = t_n^2 deviation^2 / n + unit^2 / 12

where t_n is the ratio of Student's quantile to the normal one at one standard deviation, because a deviation from three
seeds is hardly known, and unit is that of the last digit that was printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy import stats

SIGNIFICANT = 3.0  # combined errors, from which a deviation is named

WORDS = {
    "case": "problem",
    "method": "method",
    "quantity": "what was measured",
    "paper": "value in the paper",
    "paper_err": "standard error of the value in the paper",
    "ours": "our value",
    "ours_err": "standard error of our value",
    "exact": "what the method should give, where that is known",
    "exact_err": "standard error of the exact value, where it is a reference that was measured",
    "deviation": "(ours - paper) / combined error",
    "deviation_exact": "(ours - exact) / combined error",
    "gradients": "gradients (likelihood evaluations of nested sampling) that all seeds took",
}


@dataclass(frozen=True)
class Stated:
    """A number as the paper prints it."""

    value: float
    error: float = math.nan
    """Standard error of the mean over seeds; NaN where the paper states none."""


def stated(value: str, deviation: str | None = None, seeds: int = 3) -> Stated:
    """A number of the paper from its printed digits, and the standard deviation over seeds beside it.

    Parameters
    ----------
    value
        As it is printed, such as "-0.02"; the last digit says how it was rounded.
    deviation
        As it is printed; None: the paper states none.
    seeds
        How many runs it is the mean of.

    Examples
    --------
    >>> stated("-0.89", "0.71", seeds=10)
    Stated(value=-0.89, error=0.23...)
    """
    if deviation is None:
        return Stated(float(value))
    unit = 10.0 ** -len(value.partition(".")[2])
    student = stats.t.ppf(stats.norm.cdf(1.0), seeds - 1)
    return Stated(float(value), math.hypot(student * float(deviation) / math.sqrt(seeds), unit / math.sqrt(12)))


@dataclass(frozen=True)
class Row:
    """One number of the table."""

    case: str
    """The problem, such as "gaussian 10"."""
    method: str
    """QES, SMC, NS, ...; with a comma and a word where the settings are our own."""
    quantity: str
    ours: float
    ours_err: float = math.nan
    """Standard error; NaN for a number that has none, such as a count: it is shown and not judged."""
    paper: Stated | None = None
    exact: float = math.nan
    """What this method should give where that is known, be it the truth or a failure that the paper found."""
    gradients: float = math.nan
    exact_err: float = 0.0
    """Standard error of `exact`, where it is a reference that was measured."""
    comparable: bool = True
    """False: our settings differ so much from the paper's that the two values need not agree."""


def collect(rows: Iterable[Row]) -> xr.Dataset:
    """The table as a dataset over `row`.

    Parameters
    ----------
    rows
        In the order in which they are shown.

    Returns
    -------
    Dataset
        case, method and quantity; paper, ours and exact with errors and deviations; gradients.
    """
    given = list(rows)
    texts = {name: [getattr(row, name) for row in given] for name in ("case", "method", "quantity")}
    columns = {
        "paper": [row.paper.value if row.paper else math.nan for row in given],
        "paper_err": [row.paper.error if row.paper else math.nan for row in given],
        "ours": [row.ours for row in given],
        "ours_err": [row.ours_err for row in given],
        "exact": [row.exact for row in given],
        "exact_err": [row.exact_err for row in given],
        "gradients": [row.gradients for row in given],
    }
    data = {name: np.array(values, float) for name, values in columns.items()}
    combined = np.hypot(data["ours_err"], data["paper_err"])
    comparable = np.array([row.comparable for row in given], bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        data["deviation"] = np.where(comparable, (data["ours"] - data["paper"]) / combined, np.nan)
        data["deviation_exact"] = (data["ours"] - data["exact"]) / np.hypot(data["ours_err"], data["exact_err"])
    labelled = {name: ("row", values, {"long_name": WORDS[name]}) for name, values in (texts | data).items()}
    return xr.Dataset(labelled)


def doubts(table: xr.Dataset, others: Sequence[str] = ()) -> str:
    """Every deviation that is too large, in words; from the exact value where there is one, else from the paper's."""
    found = list(others)
    for row in range(table.sizes["row"]):
        at = table.isel(row=row)
        name = f"{at['quantity'].item()} of {at['method'].item()} on {at['case'].item()}"
        exact = math.isfinite(at["exact"].item())
        z = at["deviation_exact" if exact else "deviation"].item()
        if not math.isfinite(at["ours"].item()):
            found.append(f"{name} is undefined.")
        elif abs(z) > SIGNIFICANT:
            found.append(f"{name} is {z:+.1f} errors from the {'exact' if exact else 'printed'} value.")
    return " ".join(found)
