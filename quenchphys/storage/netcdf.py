"""How does a ladder get to disk and back?  One netCDF-4 file, written whole or not at all.

The file is the tree of `quenchphys.ladder` as it is: groups levels, particles, prior and configurations, with every
setting in the attributes of the root.  `xarray.open_datatree` and any netCDF or HDF5 tool read it without quenchphys.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.parallel.processes import first
from quenchphys.storage.checksum import broken, seal
from quenchphys.storage.streaming import append, without_large

ENGINE: Literal["h5netcdf"] = "h5netcdf"
GROUPS = ("levels", "particles", "prior", "configurations")
FORMAT = "quenchphys ladder 1"
OVERHEAD = 1 << 18  # bytes of a file beside its data, amply

# What a stranger needs to read the file; a variable that brings its own long_name keeps it.
LONG_NAMES = {
    "levels/energy": "level energy E_k: the population was drawn from prior * (E_k - U)_+^softness",
    "levels/beta": "inverse temperature beta_k: the population was drawn from prior * exp(-beta_k U)",
    "levels/log_volume": "logarithm of the volume G_k, the prior average of the factor of the level",
    "levels/acceptance": "acceptance rate of the mutation",
    "levels/step_size": "step size of the mutation",
    "levels/ess": "effective sample size of the carried weights, as a fraction of the particles",
    "levels/lineages": "number of distinct ancestors at the first level",
    "levels/resampled": "whether the population was resampled before the mutation",
    "levels/gradients": "gradient evaluations a particle",
    "levels/level_count": "number of levels of the replica",
    "particles/energy": "energy U of the particle",
    "particles/log_weight": "logarithm of the carried weight; the weights of a level add up to one",
    "particles/parent": "index of the particle's parent at the level before (of the prior draw at the first level)",
    "prior/energy": "energy U of the prior draw",
    "configurations/field": "configuration",
    "configurations/level": "level of the configuration's particle",
    "configurations/particle": "index of the configuration's particle in its level",
}


def save(ladder: Ladder | xr.DataTree, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a ladder to `path`, all or nothing; an existing file stays unless `overwrite` is set."""
    return write_netcdf(_described(ladder.tree if isinstance(ladder, Ladder) else ladder), path, overwrite=overwrite)


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
    """Refuse a file that is not there or not as it was written, before HDF5 looks at it."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no {what} at {path}.")
    if path.is_dir():
        raise IsADirectoryError(f"A {what} is one file, but {path} is a directory.")
    if broken(path):
        raise ValueError(f"{path} is not as it was written: it was damaged, or another program changed it.")
    return path


def check_writable(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Refuse a path that could not be written, before any work is done for it."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"The output is one file, but {path} is a directory.")
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already; ask to overwrite it (overwrite=True, --overwrite) to replace it."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written, because the directory {path.parent} does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written, because the directory {path.parent} is read-only.")
    return path


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
        part.chmod(0o666 & ~_umask())
        _flush(part)
        if overwrite:
            part.replace(path)
        else:
            _name_once(part, path)
        _flush(path.parent)
    except FileExistsError:
        raise
    except OSError as cause:
        raise OSError(f"{path} cannot be written: {reason(cause)}.") from None
    finally:
        part.unlink(missing_ok=True)
    return path


def reason(cause: BaseException) -> str:
    """Why something went wrong, in one line, without the addresses and numbers that libraries put around it."""
    text = str(cause).strip()
    quoted = re.search("error message = '([^']+)'", text)
    if quoted is not None:
        return quoted.group(1)
    return getattr(cause, "strerror", None) or (text.splitlines() or [type(cause).__name__])[0][:200].rstrip(".")


def load(path: str | os.PathLike[str]) -> Ladder:
    """Read a ladder into memory.  Nothing in a file is ever executed."""
    path = check_readable(path, "ladder")
    try:
        with xr.open_datatree(path, engine=ENGINE) as opened:
            tree = opened.load()
    except PermissionError:
        raise
    except Exception as cause:  # the reader's own exceptions are many, and say nothing about ladders
        raise ValueError(f"{path} is not a readable netCDF-4 file, so it holds no ladder.") from cause
    problem = _what_is_wrong(tree)
    if problem:
        raise ValueError(f"{path} does not hold a ladder: {problem}.")
    return Ladder(tree)


def _what_is_wrong(tree: xr.DataTree) -> str | None:
    missing = [group for group in GROUPS if group not in tree.children]
    if missing:
        return f"it has no group {missing[0]!r}"
    for name in ("method", "softness", "settings", "couplings", "phases", "outcome"):
        if name not in tree.attrs:
            return f"its attribute {name!r} is missing"
    if tree.attrs["method"] not in ("quench", "temper"):
        return f"its method is {tree.attrs['method']!r}, neither 'quench' nor 'temper'"
    if tree.attrs["outcome"] not in [outcome.value for outcome in Outcome]:
        return f"its outcome {tree.attrs['outcome']!r} is unknown"
    for name in ("settings", "couplings", "phases"):
        try:
            if not isinstance(json.loads(tree.attrs[name]), dict):
                return f"its attribute {name!r} is not a JSON object"
        except (TypeError, ValueError):
            return f"its attribute {name!r} is not JSON"
    level = "energy" if tree.attrs["method"] == "quench" else "beta"
    expected: dict[str, dict[str, tuple[str, ...]]] = {
        "levels": {level: ("replica", "level"), "log_volume": ("replica", "level")},
        "particles": dict.fromkeys(("energy", "log_weight", "parent"), ("replica", "level", "particle")),
        "prior": {"energy": ("replica", "draw")},
    }
    for group, variables in expected.items():
        for name, dims in variables.items():
            if name not in tree[group].data_vars:
                return f"the variable {group}/{name} is missing"
            if tree[group][name].dims != dims:
                return f"the variable {group}/{name} has the dimensions {tree[group][name].dims}, not {dims}"
    return None


def _described(tree: xr.DataTree) -> xr.DataTree:
    """The tree with long names and units everywhere, and attributes that netCDF can hold."""
    tree = tree.copy()
    tree.attrs = {"format": FORMAT} | {name: _plain(value) for name, value in tree.attrs.items()}
    for group in tree.children:
        described = tree[group].to_dataset()
        for name, variable in described.variables.items():
            variable.attrs.setdefault("long_name", LONG_NAMES.get(f"{group}/{name}", str(name)))
            variable.attrs.setdefault("units", "1")
        tree[group].dataset = described
    return tree


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, str | int | float) or hasattr(value, "dtype") else json.dumps(value)


def _check_room(part: Path, data: xr.DataTree | xr.Dataset) -> None:
    """Take the space and give it back: the HDF5 library may crash when a disk is full."""
    datasets = [node.dataset for node in data.subtree] if isinstance(data, xr.DataTree) else [data]
    size = sum(dataset.nbytes for dataset in datasets) + OVERHEAD
    with open(part, "r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        finally:
            file.truncate(0)


def _umask() -> int:
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
    """Give the finished file its name, unless another file took that name in the meantime."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise FileExistsError(f"{path} exists already; another program has just written it.") from None
    except OSError:  # a file system without hard links
        part.replace(path)
