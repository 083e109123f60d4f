"""Runs of different seeds joined into one: `quenchphys pool seed_*.nc --out all.nc`.

Ladders become one ladder with the replicas of all.  Results of a workflow are averaged number by number.  They have the same
settings, hence the same expected error, so every run has the same weight: weights from the stated errors would favour
whichever run underestimates its own.  With n runs of errors s_i

    value = mean of the values,     error^2 = sum s_i^2 / n^2,

unless the runs scatter more than their errors allow for (chi^2 with n - 1 degrees of freedom); then the scatter is the
error, and the result is not trusted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

import observables
import quenchphys as qp
from observables.estimation.errors import student_ratio
from quenchphys.identity import difference
from quenchphys.storage.atomic_files import check_writable
from quenchphys.storage.netcdf import write_netcdf
from workflows.store import load_result

SCATTER = 1e-3  # probability of a scatter as large as that of the runs, below which it is the error
SUMMED = ("wall_time", "gradients")  # attributes of work done

Source = str | os.PathLike[str] | xr.Dataset | qp.Ladder
Joined = xr.Dataset | qp.Ladder


def pool(runs: Sequence[Source], *, out: str | os.PathLike[str] | None = None, overwrite: bool = False) -> Joined:
    """Join ladders, or results of a workflow, that differ in their seeds alone.

    Parameters
    ----------
    runs
        At least two files, ladders or results.
    out
        File for what is joined.
    overwrite
        Replace an existing file.

    Returns
    -------
    Ladder or Dataset
        A ladder with the replicas of all ladders; or a result like those given, with smaller errors.  It can be shown,
        drawn and analysed as they can.  Curves are averaged on the axis of the first run.

    Examples
    --------
    >>> points = [workflows.coexistence(L=8, seed=seed) for seed in range(4)]
    >>> workflows.pool(points).mu2_err
    >>> workflows.pool(["seed_0.nc", "seed_1.nc"], out="all.nc")
    """
    if isinstance(runs, str | os.PathLike | xr.Dataset | qp.Ladder) or len(runs) < 2:
        raise ValueError("At least two runs of different seeds are needed, to be joined.")
    if out is not None:
        check_writable(out, overwrite=overwrite)
    names = [str(run) if isinstance(run, str | os.PathLike) else f"run {number}" for number, run in enumerate(runs)]
    found = [_read(run) for run in runs]
    ladders = [one for one in found if isinstance(one, qp.Ladder)]
    results = [one for one in found if isinstance(one, xr.Dataset)]
    if ladders and results:
        raise ValueError("Ladders and results of workflows cannot be joined with each other.")
    joined = _join_ladders(ladders, names) if ladders else _join_results(results, names)
    if out is not None:
        joined.save(out, overwrite=overwrite) if isinstance(joined, qp.Ladder) else write_netcdf(
            joined, out, overwrite=overwrite
        )
    return joined


def over_seeds(
    study: Callable[[int], xr.Dataset],
    seeds: Sequence[int],
    *,
    client: Any = None,
    out: str | os.PathLike[str] | None = None,
) -> Joined:
    """Run a study with several seeds, on a cluster if there is one, and join the results.

    Parameters
    ----------
    study
        A function of the seed that returns the result of a workflow.
    seeds
        At least two different whole numbers.
    client
        A `dask.distributed.Client`; every seed is a task of its own.  Default: one after the other.
    out
        File for the joined result.

    Returns
    -------
    Dataset
        As that of `pool`.

    Examples
    --------
    >>> def study(seed):
    ...     return workflows.coexistence(L=16, seed=seed, out=f"seed_{seed}.nc")
    >>> workflows.over_seeds(study, range(8), client=Client("tcp://head:8786"), out="all.nc")
    """
    from workflows.cluster import run_all

    if len(set(seeds)) < max(2, len(seeds)):
        raise ValueError(f"seeds must be at least two different whole numbers; got {list(seeds)!r}.")
    return pool(run_all(client, study, [(int(seed),) for seed in seeds]), out=out)


def _read(run: Source) -> Joined:
    if isinstance(run, xr.Dataset):
        if "request" not in run.attrs or "workflow" not in run.attrs:
            raise ValueError("A dataset to be joined must be the result of a workflow: its attributes contain no request.")
        return run
    if isinstance(run, qp.Ladder):
        return run
    if not Path(run).exists():
        raise FileNotFoundError(f"There is no file {run}.")
    try:
        return load_result(run)
    except ValueError:
        loaded = qp.load(run)
    if isinstance(loaded, qp.Walk):
        raise ValueError(
            f"{run} holds a walk, whose weight is that of its own pilot; join the results that walks belong to instead."
        )
    return loaded


def _check_seeds(requests: list[dict[str, Any]], names: list[str]) -> list[int]:
    """The seeds, refused if two are equal or anything else differs."""
    seeds = [request.pop("seed", None) for request in requests]
    for number, (request, seed) in enumerate(zip(requests, seeds, strict=True)):
        if json.dumps(request, sort_keys=True) != json.dumps(requests[0], sort_keys=True):
            why = difference(requests[0], request).replace(" was ", " is ").replace(" and is now ", " there and here ")
            raise ValueError(
                f"{names[number]} cannot be joined with {names[0]}, because only their seeds may differ: {why}."
            )
        if seed in seeds[:number]:
            raise ValueError(
                f"{names[seeds.index(seed)]} and {names[number]} have the same seed, {seed}: joined, they would only "
                "seem to have a smaller error."
            )
    return [int(seed) for seed in seeds]


def _join_ladders(ladders: list[qp.Ladder], names: list[str]) -> qp.Ladder:
    """One ladder with the replicas of all; shorter ones are padded as they are in every ladder."""
    requests = [
        {"problem": ladder.problem, "parameters": ladder.parameters, "couplings": ladder.couplings, "method": ladder.method}
        | {"softness": ladder.softness, "seed": ladder.attrs.get("seed")}
        | {name: value for name, value in ladder.settings.items() if name != "seed"}
        for ladder in ladders
    ]
    seeds = _check_seeds(requests, names)
    observables.Pool(ladders, volumes="telescoped")  # refuses other problems, and the same draws twice
    doubtful = [ladder for ladder in ladders if not ladder.outcome.trusted]
    groups = {}
    for group in ("levels", "particles", "prior", "configurations"):
        parts = [_padded(ladder.tree[group].to_dataset(), group, ladders) for ladder in ladders]
        groups[group] = xr.concat(parts, dim="replica", data_vars="minimal", coords="minimal", compat="override")
    attrs = dict((doubtful or ladders)[0].attrs) | {"seed": seeds[0], "seeds": json.dumps(seeds)}
    attrs["settings"] = json.dumps(ladders[0].settings | {"replicas": groups["prior"].sizes["replica"]})
    for name in SUMMED:
        if name in attrs:
            attrs[name] = sum(float(ladder.attrs[name]) for ladder in ladders)
    attrs.pop("study", None)
    return qp.Ladder(xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **groups}))


def _padded(data: xr.Dataset, group: str, ladders: list[qp.Ladder]) -> xr.Dataset:
    """The group of one ladder with as many levels, draws and configurations as the largest has: NaN, and -1 in integers."""
    wanted = {}
    for dim in ("level", "sample"):
        if dim in data.dims:
            wanted[dim] = max(ladder.tree[group].sizes[dim] for ladder in ladders) - data.sizes[dim]
    missing = {dim: (0, count) for dim, count in wanted.items() if count}
    if not missing:
        return data
    fill = {name: -1 for name, variable in data.variables.items() if variable.dtype.kind in "iu"}
    flags = {name: variable.astype(np.int8) for name, variable in data.data_vars.items() if variable.dtype.kind == "b"}
    padded = data.assign(flags).pad(missing, constant_values=fill)
    return padded.assign({name: padded[name].fillna(0).astype(bool) for name in flags})


def _join_results(results: list[xr.Dataset], names: list[str]) -> xr.Dataset:
    requests = [json.loads(result.attrs["request"]) for result in results]
    seeds = _check_seeds([dict(request) for request in requests], names)
    first = results[0]
    joined, scattered = xr.Dataset(attrs=first.attrs), []
    aligned = [_on_axes_of(first, result) for result in results]
    for name in map(str, first.data_vars):
        if name.endswith("_err") and name.removesuffix("_err") in first:
            continue
        columns = [one[name] for one in aligned]
        if "group" in first[name].dims:
            joined[name] = xr.concat(columns, dim="group")
        elif f"{name}_err" in first:
            value, error, many = _averaged(columns, [one[f"{name}_err"] for one in aligned])
            joined[name], joined[f"{name}_err"] = first[name].copy(data=value), first[f"{name}_err"].copy(data=error)
            scattered += [name] if many else []
        else:
            joined[name] = _without_error(name, columns)
    for law in [name.removesuffix("_p_value") for name in map(str, joined.data_vars) if name.endswith("_p_value")]:
        if f"{law}_chi2" in joined:
            chi2, dof = (joined[f"{law}_{part}"].values for part in ("chi2", "dof"))
            joined[f"{law}_p_value"] = joined[f"{law}_p_value"].copy(data=stats.chi2.sf(chi2, dof))
    doubts = [f"Seed {seed}: {one.attrs['why']}" for seed, one in zip(seeds, results, strict=True) if not one.trusted]
    if scattered:
        doubts.append(f"Runs of different seeds scatter more than their errors allow for: {', '.join(scattered)}.")
    request = json.dumps(requests[0] | {"seed": seeds})
    extra = {name: sum(float(one.attrs[name]) for one in results) for name in SUMMED if name in first.attrs}
    words = {"request": request, "seeds": json.dumps(seeds), "runs": len(results), "trusted": int(not doubts)}
    return joined.assign_attrs(words | extra | {"seed": seeds[0], "why": " ".join(doubts)})


def _averaged(values: list[xr.DataArray], errors: list[xr.DataArray]) -> tuple[np.ndarray, np.ndarray, bool]:
    """The mean, its error, and whether the scatter of the runs had to be that error anywhere."""
    table, error = (np.stack([one.values.astype(float) for one in rows]) for rows in (values, errors))
    count = len(table)
    mean, own = table.mean(axis=0), np.sqrt((error**2).sum(axis=0)) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        chi2 = ((table - mean) ** 2).sum(axis=0) / (error**2).mean(axis=0)
    # Errors of equal expected size; each known to a fifth, which a chi^2 of few runs cannot see.
    many = stats.chi2.sf(chi2, count - 1) < SCATTER
    scatter = table.std(axis=0, ddof=1) / np.sqrt(count) * student_ratio(np.array(count - 1.0))
    # Curves have hundreds of points, whose scatter is not a doubt about the whole.
    return mean, np.where(many, np.maximum(own, scatter), own), bool(np.any(many)) and mean.size <= 2


def _without_error(name: str, columns: list[xr.DataArray]) -> xr.DataArray:
    """Numbers without an error: chi^2, degrees of freedom and effective samples add up; anything else is averaged."""
    if columns[0].dtype.kind not in "iuf":
        return columns[0]
    table = np.stack([one.values for one in columns])
    if name.endswith(("_chi2", "_dof")) or name == "ess":
        return columns[0].copy(data=table.sum(axis=0))
    if name.endswith("_smallest_size"):
        return columns[0].copy(data=table.max(axis=0))
    same = all(np.array_equal(row, table[0], equal_nan=True) for row in table.astype(float))
    return columns[0] if same else columns[0].copy(data=table.astype(float).mean(axis=0))


def _on_axes_of(first: xr.Dataset, result: xr.Dataset) -> xr.Dataset:
    """A result with its curves on the axes of the first one, by straight lines between its points; NaN beyond them."""
    moved = {
        axis: first[axis]
        for axis in first.dims
        if str(axis).endswith("_axis") and not np.array_equal(first[axis].values, result[axis].values)
    }
    if not moved:
        return result
    curves = [name for name in result.data_vars if any(dim in moved for dim in result[name].dims)]
    there = result[curves].interp({axis: values.values for axis, values in moved.items()})
    return result.drop_vars(curves).drop_vars(list(moved)).merge(there, compat="no_conflicts")
