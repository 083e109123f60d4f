"""Two answers to one question: a coexistence point by chains that cross and by bridges to both phases."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr

MOST_APART = 4.0  # standard errors: by chance once in 16,000 studies


def both_answers(crossing: xr.Dataset, phases: xr.Dataset, coupling: str) -> xr.Dataset:
    """One answer from both, which are independent, and how far they are apart.

    Parameters
    ----------
    crossing, phases
        The coexistence point by either method.
    coupling
        The coupling that was found.

    Returns
    -------
    Dataset
        That of `crossing`, in which everything that both know with an error is their mean with weights 1/error^2;
        <coupling>_crossing, <coupling>_phases, and <coupling>_distance, their difference in standard errors.
    """
    result = crossing.copy()
    known = [str(name) for name in phases.data_vars if f"{name}_err" in phases and f"{name}_err" in crossing]
    for name in (name for name in known if phases[name].dims == crossing[name].dims):
        if not name.startswith("p_"):
            value, error = joined(*((one[name].values, one[f"{name}_err"].values) for one in (crossing, phases)))
            result[name] = crossing[name].copy(data=value)
            result[f"{name}_err"] = crossing[f"{name}_err"].copy(data=error)
    for label, one in (("crossing", crossing), ("phases", phases)):
        for end in ("", "_err"):
            words = {"long_name": f"{'standard error of ' * bool(end)}{coupling} by {label}"}
            result[f"{coupling}_{label}{end}"] = xr.Variable((), float(one[f"{coupling}{end}"]), words)
    difference = float(phases[coupling] - crossing[coupling])
    distance = difference / float(np.hypot(phases[f"{coupling}_err"], crossing[f"{coupling}_err"]))
    words = {"long_name": f"{coupling} by phases minus {coupling} by crossing, in standard errors"}
    result[f"{coupling}_distance"] = xr.Variable((), distance, words)
    result["mixed_weight"] = phases["mixed_weight"]
    doubts = [one.attrs["why"] for one in (crossing, phases) if one.attrs["why"]]
    if abs(distance) > MOST_APART:
        doubts.append(f"Crossing and phases give values of {coupling} that are {abs(distance):.1f} standard errors apart.")
        warnings.warn("The coexistence point is not to be trusted: " + doubts[-1], stacklevel=4)
    why = " ".join(doubts)
    return result.assign_attrs(method="both", trusted=int(not why), why=why)


def joined(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of two independent values with weights 1/error^2, and its error; where one has no error, the other alone."""
    values, errors = (np.stack(parts) for parts in zip(first, second, strict=True))
    usable = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    weights = np.where(usable, 1 / np.where(usable, errors, 1.0) ** 2, 0.0)
    total = weights.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(usable, weights * values, 0.0).sum(axis=0) / total
        return np.where(total > 0, mean, values[0]), np.where(total > 0, total**-0.5, errors[0])
