"""Comparison of models by their evidence: the Bayes factor of two runs."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import xarray as xr

from observables.samples.pool import Pool, Source
from observables.thermal import partition_function


def bayes_factor(
    first: Source | xr.Dataset, second: Source | xr.Dataset, beta: float = 1.0, *, errors: str = "auto"
) -> xr.Dataset:
    """log BF = log Z(first) - log Z(second): positive where the data favour the first model.

    Parameters
    ----------
    first, second : Ladder, Walk, several of them, Pool, or Dataset
        Runs of two models of the same data; or datasets with log_z and log_z_err, as `partition_function` and
        `quenchphys.laplace` return them.
    beta : float
        Inverse temperature; the evidence is Z(1).
    errors : {"auto", "replicas", "genealogy"}
        As in `partition_function`.

    Returns
    -------
    Dataset
        log_bf with log_bf_err, the errors of both models combined, and log_z with log_z_err over model.

    Examples
    --------
    >>> tanh, relu = (qp.targets.network("sonar.csv", activation=name) for name in ("tanh", "relu"))
    >>> found = observables.bayes_factor(qp.quench(tanh), qp.quench(relu))
    >>> float(found.log_bf), float(found.log_bf_err)
    """
    sources = [source if isinstance(source, xr.Dataset) else Pool.of(source) for source in (first, second)]
    data = [_data_of(source) for source in sources]
    if None not in data and data[0] != data[1]:
        raise ValueError(
            f"A Bayes factor compares two models of the same data, but these were trained on other examples: {data[0]} and "
            f"{data[1]}."
        )
    log_z, error = np.array([_log_z(source, beta, errors) for source in sources]).T
    result = xr.Dataset(
        {
            "log_bf": log_z[0] - log_z[1],
            "log_bf_err": math.hypot(*error),
            "log_z": ("model", log_z),
            "log_z_err": ("model", error),
        },
        coords={"model": ["first", "second"], "beta": float(beta)},
    )
    for name, long_name in (("log_bf", "log of the Bayes factor"), ("log_z", "log of the evidence")):
        result[name].attrs = {"long_name": long_name, "units": "1"}
        result[f"{name}_err"].attrs = {"long_name": f"standard error of the {long_name}", "units": "1"}
    return result


def _log_z(source: Pool | xr.Dataset, beta: float, errors: str) -> tuple[float, float]:
    """log Z and its error."""
    found = partition_function(source, beta, errors=errors) if isinstance(source, Pool) else source
    for name in ("log_z", "log_z_err"):
        if name not in found:
            raise ValueError(f"A dataset with the variables log_z and log_z_err is needed, but this one has no {name}.")
        if found[name].size != 1:
            raise ValueError(
                f"A Bayes factor is about one value of log Z for each model, but {name} has {found[name].size} of them."
            )
    if isinstance(source, xr.Dataset) and not np.isclose(float(found.get("beta", 1.0)), beta):
        raise ValueError(f"This dataset has log Z at beta = {float(found['beta']):g}, not at beta = {beta:g}.")
    return found["log_z"].item(), found["log_z_err"].item()


def _data_of(source: Pool | xr.Dataset) -> str | None:
    """The digest of the training data that a model carries among its parameters, where it does."""
    attrs: Any = source.attrs
    try:
        parameters = json.loads(attrs.get("parameters", "{}"))
    except (TypeError, ValueError):
        return None
    if not isinstance(parameters, dict) or "digest" not in parameters:
        return None
    split = f", split {parameters['split']}" if "split" in parameters else ""
    return f"{parameters.get('data', 'data')}{split} (digest {parameters['digest']})"
