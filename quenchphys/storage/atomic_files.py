"""Files and folders that appear, change their names and disappear in one step, so that a kill leaves all or nothing."""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quenchphys.console.messages import why_not_written
from quenchphys.parallel.processes import first


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


def set_aside(path: Path) -> Path:
    """Rename a file or folder to the first free name of the kind run.replaced-1.nc, in one step; the new name.

    Only whoever holds the lock of the files may do this, because another process might find the same name free.
    """
    names = (path.with_name(f"{path.stem}.replaced-{number}{path.suffix}") for number in itertools.count(1))
    new = next(name for name in names if not os.path.lexists(name))
    return path.rename(new)


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
