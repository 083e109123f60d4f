"""Labelled data on disk: one netCDF-4 file, written whole or not at all.

The file holds a tree of datasets, or one dataset, as it is.  `xarray.open_datatree` and any netCDF or HDF5 tool read it
without quenchphys.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from quenchphys.console.messages import why_not_written
from quenchphys.parallel.processes import first
from quenchphys.storage.checksum import broken, seal
from quenchphys.storage.streaming import append, without_large

ENGINE: Literal["h5netcdf"] = "h5netcdf"
OVERHEAD = 1 << 18  # bytes of a file beside its data, amply


def write_netcdf(data: xr.DataTree | xr.Dataset, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write labelled data as one sealed file, all or nothing."""

    def write(part: Path) -> None:
        _check_room(part, data)
        small, large = without_large(data) if isinstance(data, xr.DataTree) else (data, {})
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


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a path that could not be written, before any work is done for it."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"The output is one file, but {path} is a directory.")
    if path.is_symlink() and not path.exists():
        raise FileNotFoundError(f"{path} cannot be written: it is a link to {path.readlink()}, which does not exist.")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} cannot be written, because it is no ordinary file.")
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already; use overwrite=True (--overwrite on the command line) to replace it."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written, because the directory {path.parent} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written, because the directory {path.parent} is read-only.")
    return path


def remove_leftovers(*folders: Path, of: str = "") -> None:
    """Remove unfinished files that a killed process left, if it was writing a file whose name begins with `of`.

    Only whoever holds the lock of the files may do this, because the files of a process that is still writing look alike.
    """
    for folder in folders:
        for part in folder.glob(f".{glob.escape(of)}*.part"):
            if part.is_dir():
                shutil.rmtree(part, ignore_errors=True)
            else:
                part.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], write: Callable[[Path], Any], *, overwrite: bool = False) -> Path:
    """Let `write` make a temporary file beside `path`, which then takes its name in one step.

    Of several processes the first alone writes.
    """
    if not first():
        return Path(path)
    path = check_writable(path, overwrite=overwrite)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        part.chmod(0o666 & ~umask())
        _flush(part)
        if overwrite:
            part.replace(path)
        else:
            _name_once(part, path)
        _flush(path.parent)
    except FileExistsError:
        raise
    except OSError as cause:
        raise OSError(f"{path} cannot be written: {why_not_written(cause)}.") from None
    finally:
        part.unlink(missing_ok=True)
    return path


def read_netcdf(path: str | os.PathLike[str], what: str) -> xr.DataTree:
    """Read a whole file into memory; `what` says in a refusal what it should have held.

    Nothing in a file is ever executed.
    """
    path = check_readable(path, what)
    try:
        with xr.open_datatree(path, engine=ENGINE) as opened:
            return opened.load()
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


def umask() -> int:
    """Permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush(path: Path) -> None:
    """Make sure that the bytes of a file, or the names in a directory, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name_once(part: Path, path: Path) -> None:
    """Rename the finished file, unless another file took the name in the meantime."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise FileExistsError(f"{path} exists already; another program has just written it.") from None
    except OSError:  # a file system without hard links
        part.replace(path)
