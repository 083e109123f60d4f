"""A seal at the end of a file, the SHA-256 of everything before it, which tells whether the file is as it was written.

HDF5 does not read beyond its own end of file, so sealed files open everywhere.  Without it a damaged file might be read as
if nothing had happened, or keep the HDF5 library busy forever.  A file without a seal is one that another program wrote.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

MARK = b"\nquenchphys-sha256:"
LENGTH = len(MARK) + 64 + 1
BLOCK = 1 << 22


def seal(path: Path) -> None:
    """Append the seal."""
    digest = _digest(path, path.stat().st_size)
    with open(path, "ab") as file:
        file.write(MARK + digest.encode() + b"\n")


def broken(path: Path) -> bool:
    """Whether the file has a seal that does not fit its contents."""
    size = path.stat().st_size
    if size < LENGTH:
        return False
    with open(path, "rb") as file:
        file.seek(size - LENGTH)
        end = file.read(LENGTH)
    if not end.startswith(MARK):
        return False
    return end[len(MARK) : -1].decode("ascii", "replace") != _digest(path, size - LENGTH)


def _digest(path: str | os.PathLike[str], size: int) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while size > 0 and (part := file.read(min(size, BLOCK))):
            found.update(part)
            size -= len(part)
    return found.hexdigest()
