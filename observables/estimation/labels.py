"""Labels of a result: coordinates, units, long names and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from observables.estimation.errors import Uncertain

LONG_NAMES = {
    "log_z": "logarithm of the partition function, log E_prior[exp(-beta U)]",
    "energy": "mean energy <U>",
    "heat_capacity": "heat capacity beta^2 (<U^2> - <U>^2)",
    "entropy": "entropy relative to the prior, log Z + beta <U>",
    "free_energy": "free energy",
    "log_g": "logarithm of the density of states (prior probability per unit energy)",
    "log_p": "logarithm of the probability density of the energy",
    "ordered_share": "probability of the ordered phase",
    "log_odds": "log of the odds of the ordered phase",
    "binder": "Binder cumulant 1 - <m^4> / (3 <m^2>^2)",
    "susceptibility": "susceptibility V (<m^2> - <|m|>^2)",
    "ess": "effective samples of the answer, (sum W)^2 / sum W^2",
    "beta": "inverse temperature",
}


def dataset(
    uncertain: Uncertain,
    answers: Mapping[str, tuple[Any, Any]],
    extra: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
) -> xr.Dataset:
    """Each answer as name and name_err on the grid of targets (and extra dimensions), with its effective samples.

    `drop` names the coordinates that are answers themselves.
    """
    targets = uncertain.found.targets
    variables: dict[str, xr.Variable] = {}
    for name, (value, error) in answers.items():
        variables[name] = targets.array(np.asarray(value), extra)
        variables[name + "_err"] = targets.array(np.asarray(error), extra)
    variables["ess"] = targets.array(uncertain.found.ess)
    return label(
        xr.Dataset(variables, coords={name: at for name, at in targets.coords.items() if name not in drop}), uncertain
    )


def label(result: xr.Dataset, uncertain: Uncertain) -> xr.Dataset:
    """Long names and units of all variables, and the attributes of the pool."""
    for name in result.variables:
        text = str(name)
        base = text.removesuffix("_err")
        long_name = LONG_NAMES.get(base, base.replace("_", " "))
        result[name].attrs["long_name"] = ("standard error of " if text.endswith("_err") else "") + long_name
        result[name].attrs["units"] = "1"
    return result.assign_attrs(uncertain.found.pool.attrs, errors_from=uncertain.method)
