"""Labelled data on disk: one netCDF-4 file, written whole or not at all.

The file holds a tree of datasets, or one dataset, as it is.  `xarray.open_datatree` and any netCDF or HDF5 tool read it
without quenchphys.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from quenchphys.storage.atomic_files import write_whole
from quenchphys.storage.checksum import broken, seal, sealed
from quenchphys.storage.streaming import append, without_large

ENGINE: Literal["h5netcdf"] = "h5netcdf"
UNVERIFIED = "unverified"  # attribute of data that was read from a file without a seal; it is not written
OVERHEAD = 1 << 18  # bytes of a file beside its data, amply


def write_netcdf(data: xr.DataTree | xr.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write labelled data as one sealed file, all or nothing."""

    def write(part: Path) -> None:
        _check_room(part, data)
        small, large = without_large(data) if isinstance(data, xr.DataTree) else (data, {})
        small = small.copy()
        small.attrs.pop(UNVERIFIED, None)
        small.to_netcdf(part, engine=ENGINE)
        if large:
            append(part, large)
        seal(part)

    return write_whole(path, write, overwrite=overwrite)


def check_readable(path: str | os.PathLike[str], what: str) -> Path:
    """Refuse a file that does not exist or is not as it was written, before HDF5 reads it."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no {what} at {path}.")
    if path.is_dir():
        raise IsADirectoryError(f"A {what} is one file, but {path} is a directory.")
    if not path.is_file():  # reading from a pipe would wait for a writer
        raise ValueError(f"{path} is no ordinary file, so it holds no {what}.")
    if broken(path):
        raise ValueError(f"{path} is not as it was written: it was damaged, or another program changed it.")
    return path


def read_netcdf(path: str | os.PathLike[str], what: str) -> xr.DataTree:
    """Read a whole file into memory; `what` says in a refusal what it should have held.

    Nothing in a file is ever executed.  A file that another program wrote, such as xarray, has no seal: it is read, and the
    attribute `unverified` says so.
    """
    path = check_readable(path, what)
    try:
        with xr.open_datatree(path, engine=ENGINE) as opened:
            tree = opened.load()
        if not sealed(path):
            tree.attrs[UNVERIFIED] = "another program wrote this file, without a checksum"
        return tree
    except PermissionError:
        raise PermissionError(f"{path} cannot be read: permission denied.") from None
    except Exception as cause:  # the reader's own exceptions are many, and say nothing about the file
        raise ValueError(f"{path} is not a readable netCDF-4 file, so it holds no {what}.") from cause


def json_fault(attrs: Mapping[Any, Any], names: tuple[str, ...]) -> str | None:
    """The first of these attributes that is not the text of a JSON object, in words."""
    for name in names:
        if name not in attrs:
            return f"its attribute {name!r} is missing"
        try:
            if not isinstance(json.loads(attrs[name]), dict):
                return f"its attribute {name!r} is not a JSON object"
        except (TypeError, ValueError):
            return f"its attribute {name!r} is not JSON"
    return None


def plain_attributes(attrs: Mapping[Any, Any]) -> dict[Any, Any]:
    """Attributes that netCDF can hold: numbers and texts as they are, anything else as JSON."""
    return {name: _plain(value) for name, value in attrs.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, str | int | float) or hasattr(value, "dtype") else json.dumps(value)


def _check_room(part: Path, data: xr.DataTree | xr.Dataset) -> None:
    """Allocate the space and release it: the HDF5 library may crash when a disk is full."""
    datasets = [node.dataset for node in data.subtree] if isinstance(data, xr.DataTree) else [data]
    size = sum(dataset.nbytes for dataset in datasets) + OVERHEAD
    with open(part, "r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        finally:
            file.truncate(0)
