"""A lock that one run holds while it writes to a place: released by the system however the process ends."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import IO

HELD = (errno.EWOULDBLOCK, errno.EACCES)  # what the system says if another process has the lock


class InUse(RuntimeError):
    """Another run is writing to the same place."""


class Lock:
    """A lock on a file that is made for it and removed with it.

    Parameters
    ----------
    file
        Name of the lock file; its folder must exist.
    refusal
        What to say if another run holds the lock.

    Raises
    ------
    InUse
        If another run holds it, in this process or any other on this file system.
    """

    def __init__(self, file: Path, refusal: str):
        self._file = file
        self._held: IO[str] | None = None
        while self._held is None:
            opened = _open(file)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as cause:
                opened.close()
                if cause.errno in HELD:
                    raise InUse(refusal) from None
                raise OSError(f"{file} cannot be locked: {cause.strerror}.") from None
            # Between opening and locking, whoever held the lock may have removed the file: it locks nothing then.
            if _same(file, opened):
                self._held = opened
            else:
                opened.close()

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        if self._held is not None:
            held, self._held = self._held, None
            self._file.unlink(missing_ok=True)
            held.close()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        if getattr(self, "_held", None) is not None:
            self.release()


def beside(path: Path) -> Path:
    """The name of the lock file of a folder or file: hidden, and in the same place, so that it survives its removal."""
    return path.parent / f".{path.name}.lock"


def _open(file: Path) -> IO[str]:
    try:
        return open(file, "a")
    except OSError as cause:
        raise type(cause)(f"{file} cannot be written: {cause.strerror}.") from None


def _same(file: Path, opened: IO[str]) -> bool:
    try:
        now = os.stat(file)
    except FileNotFoundError:
        return False
    then = os.fstat(opened.fileno())
    return (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino)
