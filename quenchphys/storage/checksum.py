"""A seal at the end of a file, the SHA-256 of everything before it, which tells whether the file is as it was written.

HDF5 does not read beyond its own end of file, so sealed files open everywhere.  Without it a damaged file might be read as
if nothing had happened, or keep the HDF5 library busy forever.  A file that ends where HDF5 says it ends is one that another
program wrote, without a seal; anything else behind that end is a seal that was damaged.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

MARK = b"\nquenchphys-sha256:"
LENGTH = len(MARK) + 64 + 1
SIGNATURE = b"\x89HDF\r\n\x1a\n"
BLOCK = 1 << 22


def seal(path: Path) -> None:
    """Append the seal; refused if something else cut the file short, or made it longer, while it was written."""
    size = path.stat().st_size
    if (own := _end_of_hdf5(path)) is not None and size != own:
        raise OSError("another program changed the file while it was written")
    digest = _digest(path, size)
    with open(path, "ab") as file:
        file.write(MARK + digest.encode() + b"\n")


def sealed(path: Path) -> bool:
    """Whether the file has a seal, be it the right one or not."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - LENGTH))
        end = file.read(LENGTH)
    return len(end) == LENGTH and end.startswith(MARK)


def broken(path: Path) -> bool:
    """Whether the file has a seal that does not fit its contents, or the remains of one."""
    size = path.stat().st_size
    if sealed(path):
        with open(path, "rb") as file:
            file.seek(size - LENGTH + len(MARK))
            return file.read(64).decode("ascii", "replace") != _digest(path, size - LENGTH)
    own = _end_of_hdf5(path)
    return own is not None and size > own


def _end_of_hdf5(path: Path) -> int | None:
    """Where HDF5's own part of the file ends, from its superblock; None if it has none."""
    with open(path, "rb") as file:
        head = file.read(64)
    if not head.startswith(SIGNATURE) or len(head) < 64:
        return None
    at = {0: 40, 1: 44, 2: 28, 3: 28}.get(head[8])  # by the version of the superblock
    wide = head[13] if head[8] < 2 else head[9]  # bytes of an address
    return None if at is None or wide != 8 else int.from_bytes(head[at : at + 8], "little")


def _digest(path: str | os.PathLike[str], size: int) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while size > 0 and (part := file.read(min(size, BLOCK))):
            found.update(part)
            size -= len(part)
    return found.hexdigest()
