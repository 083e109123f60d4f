"""Arrays larger than memory, written to a file by blocks of levels; the memory of each is released once it is written."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import xarray as xr

LARGE = 16 << 20  # bytes of a variable that is written by blocks
BLOCK = 16 << 20  # bytes of a block


def blocks(array: np.ndarray, size: int = BLOCK) -> Iterator[slice]:
    """Slices of the second axis, the levels; pages read from an array on disk are released after each."""
    step = max(1, size // max(1, array.nbytes // max(1, array.shape[1])))
    for begin in range(0, array.shape[1], step):
        yield slice(begin, min(begin + step, array.shape[1]))
        release(array)


def release(array: np.ndarray) -> None:
    """Let the system take back the pages of an array that is mapped, read-only, onto a file."""
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)


def without_large(tree: xr.DataTree) -> tuple[xr.DataTree, dict[str, xr.Variable]]:
    """The tree without its large variables, and those by path."""
    small = tree.copy()
    large: dict[str, xr.Variable] = {}
    for group, node in tree.children.items():
        names = [str(n) for n, v in node.data_vars.items() if v.nbytes > LARGE and v.ndim >= 2 and v.dtype.kind in "fi"]
        large |= {f"{group}/{name}": node[name].variable for name in names}
        small[group].dataset = node.to_dataset().drop_vars(names)
    return small, large


def append(path: Path, large: dict[str, xr.Variable]) -> None:
    """Add variables to a netCDF-4 file, as xarray would have written them."""
    with h5netcdf.File(path, "a") as file:
        for place, variable in large.items():
            group, name = place.split("/", 1)
            for dim, length in variable.sizes.items():
                if dim not in file[group].dimensions:
                    file[group].dimensions[dim] = length
            fill = np.array(np.nan, variable.dtype) if variable.dtype.kind == "f" else None
            made = file[group].create_variable(name, variable.dims, variable.dtype, fillvalue=fill, fill_time="never")
            made.attrs.update(variable.attrs)
            array = variable.values
            for levels in blocks(array):
                made[:, levels] = array[:, levels]
