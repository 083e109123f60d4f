"""Results as flat tables: one row for each number, whatever the dimensions of a result are.

    quantity, phase, size, ..., value, error, units

A dataset turned into one rectangular table would have a row for every combination of all its axes, far too many of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import quenchphys as qp

OF_WALKS = ("acceptance", "step_size", "weight_energy", "weight_log")
LAST = ("value", "error", "units")


def to_dataframe(result: xr.Dataset | qp.Ladder | qp.Walk) -> pd.DataFrame:
    """A result as a flat table with one row for each number.

    Parameters
    ----------
    result
        What a workflow or a function of `observables` returned; of a ladder its levels, of a walk its groups and weight.

    Returns
    -------
    pandas.DataFrame
        The columns quantity, one for each dimension (empty where a quantity does not have it; a dimension that is called
        quantity itself is quantity_axis), value, error (empty where there is none) and units.

    Examples
    --------
    >>> table = workflows.to_dataframe(workflows.load_result("run.nc"))
    >>> table[table.quantity == "q"]
    >>> table.to_csv("run.csv", index=False)
    """
    data = dataset_of(result)
    numbers = [str(name) for name, values in data.data_vars.items() if values.dtype.kind in "biuf"]
    names = [name for name in numbers if not _is_error(data, name)]
    dims = list(dict.fromkeys(_column(dim) for name in names for dim in data[name].dims))
    parts = [_rows(data, name) for name in names]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["quantity", *LAST])
    return table.reindex(columns=["quantity", *dims, *LAST])


def to_json(result: xr.Dataset | qp.Ladder | qp.Walk) -> str:
    """A result as JSON: `attributes`, `axes`, and under `quantities` the value, error, units and dims of each name.

    Parameters
    ----------
    result
        As in `to_dataframe`.

    Returns
    -------
    str
        Values are numbers or nested lists; null stands for NaN.
    """
    data = dataset_of(result)
    quantities = {}
    for name in map(str, data.data_vars):
        if _is_error(data, name):
            continue
        one = data[name]
        quantities[name] = {
            "value": _plain(one.values),
            "error": _plain(data[f"{name}_err"].values) if f"{name}_err" in data else None,
            "units": one.attrs.get("units", ""),
            "meaning": one.attrs.get("long_name", ""),
            "dims": list(map(str, one.dims)),
        }
    axes = {str(dim): _plain(data[dim].values) for dim in data.dims if dim in data.coords}
    attributes = {str(key): _plain_attribute(value) for key, value in {**data.attrs}.items()}
    return json.dumps({"attributes": attributes, "axes": axes, "quantities": quantities}, indent=1, allow_nan=False)


def dataset_of(result: xr.Dataset | qp.Ladder | qp.Walk) -> xr.Dataset:
    """What is told of a run in a table: the levels of a ladder, the groups of a walk; a result as it is."""
    if isinstance(result, qp.Ladder):
        return result.levels.assign_attrs(result.attrs)
    if isinstance(result, qp.Walk):
        return result.data[[name for name in OF_WALKS if name in result.data]]
    if not isinstance(result, xr.Dataset):
        raise TypeError(f"A result, a ladder or a walk can be a table, but {type(result).__name__} was given.")
    return result


def _is_error(data: xr.Dataset, name: str) -> bool:
    """Whether a variable is the error of another one."""
    return name.endswith("_err") and name.removesuffix("_err") in data


def _column(dim: Hashable) -> str:
    """The name of the column of a dimension; some results have a dimension called quantity."""
    return f"{dim}_axis" if dim in ("quantity", *LAST) else str(dim)


def _rows(data: xr.Dataset, name: str) -> pd.DataFrame:
    one = data[name]
    grid = np.indices(one.shape).reshape(one.ndim, one.size)
    columns: dict[str, Any] = {"quantity": name}
    for dim, index in zip(one.dims, grid, strict=True):
        columns[_column(dim)] = (data[dim].values if dim in data.coords else np.arange(one.sizes[dim]))[index]
    columns["value"] = one.values.ravel().astype(float)
    columns["error"] = data[f"{name}_err"].values.ravel() if f"{name}_err" in data else np.nan
    columns["units"] = one.attrs.get("units", "")
    return pd.DataFrame(columns, index=range(one.size))


def _plain(values: np.ndarray) -> Any:
    """Numbers, texts and nested lists that JSON can hold."""
    if values.ndim:
        return [_plain(part) for part in values]
    value = values.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain_attribute(value: Any) -> Any:
    """An attribute, where it holds JSON itself as what it says."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value if isinstance(value, str | int) else _plain(np.asarray(value))
