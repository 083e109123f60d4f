"""The record of a growing ladder: in memory while it is small, in files when it is not.

A `Column` holds one variable as rows (level, replica, ...).  Above `MEMORY_LIMIT` bytes for all columns together the
rows go to unnamed temporary files that are mapped, so that the host's memory stays bounded however long the ladder.  With
the folder of a checkpoint, they go to files there from the beginning, and a later run continues them if they are as they
were written: the digests of all columns so far are part of every checkpoint.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from quenchphys.console.messages import why_not_written
from quenchphys.parallel.processes import first
from quenchphys.storage.atomic_files import write_whole

MEMORY_LIMIT = 1 << 30


class Column:
    """A growing array of rows."""

    def __init__(self, file: IO[bytes] | None = None, rows: int = 0) -> None:
        self._blocks: list[np.ndarray] = []
        self._file = file
        self._rows = rows
        self.digest = hashlib.sha256()
        self.shape: tuple[int, ...] = ()
        self.dtype: np.dtype = np.dtype(np.float32)

    @property
    def in_memory(self) -> int:
        """Bytes held in memory."""
        return 0 if self._file else sum(block.nbytes for block in self._blocks)

    def extend(self, rows: np.ndarray) -> None:
        """Append rows."""
        self.shape, self.dtype = rows.shape[1:], rows.dtype
        self._rows += len(rows)
        if self._file:
            self.digest.update(_bytes(rows))
            self._file.write(_bytes(rows))
        else:
            self._blocks.append(np.asarray(rows))

    def spill(self) -> None:
        """Move everything to a temporary file, which vanishes with the array mapped onto it."""
        file = self._file = tempfile.TemporaryFile(prefix="quenchphys-")  # noqa: SIM115
        for block in self._blocks:
            file.write(_bytes(block))
        self._blocks = []

    def flush(self) -> None:
        """Make sure that the rows survive the process."""
        if self._file:
            self._file.flush()
            os.fsync(self._file.fileno())

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return self._rows * math.prod(self.shape) * self.dtype.itemsize

    def taken(self, to_memory: bool) -> np.ndarray | None:
        """A copy of what the file holds, where no other program can change it; None if it is not what was written.

        The copy is in memory, or in an unnamed temporary file that is mapped.
        """
        assert self._file is not None
        self._file.flush()
        copy: IO[bytes] = io.BytesIO() if to_memory else tempfile.TemporaryFile(prefix="quenchphys-")  # noqa: SIM115
        # Read through the open file: it may have lost its name.
        with open(os.dup(self._file.fileno()), "rb") as file:
            file.seek(0)
            found = _digest(file, self.size, copy)
            file.seek(0, os.SEEK_END)
        if found.digest() != self.digest.digest():
            return None
        size = (self._rows, *self.shape)
        if isinstance(copy, io.BytesIO):
            array = np.frombuffer(copy.getbuffer(), self.dtype).reshape(size)
            array.flags.writeable = False
            return array
        copy.flush()
        return np.memmap(copy, dtype=self.dtype, mode="r", shape=size)

    def finish(self, rows: int) -> np.ndarray:
        """The first `rows` rows, as (replica, level, ...)."""
        if self._file:
            self._file.flush()
            size = (self._rows, *self.shape)
            # Read-only: pages that were read can be given back.
            array: np.ndarray = np.memmap(self._file, dtype=self.dtype, mode="r", shape=size)
        else:
            array = np.concatenate(self._blocks)
            self._blocks = []
        return array[:rows].swapaxes(0, 1)


class Record:
    """Named columns that share one limit of memory, or one folder."""

    def __init__(self, limit: int = MEMORY_LIMIT, folder: Path | None = None) -> None:
        self._columns: dict[str, Column] = {}
        self._limit = limit
        self._spilled = False
        self._folder = folder

    @staticmethod
    def resume(folder: Path, rows: int) -> Record:
        """The record a folder holds, cut to its first `rows` rows; a process that does not write there has a copy."""
        record = Record(folder=folder if first() else None)
        for path, kept in _listed(folder):
            size = kept.size(rows)
            if not first():
                column = Column()
                column.extend(np.fromfile(path, kept.dtype, size // kept.dtype.itemsize).reshape(rows, *kept.shape))
                record._columns[kept.name] = column
                continue
            with open(path, "rb") as old:
                digest = _digest(old, size)
            if path.stat().st_size > size:
                # A ladder may still be mapped onto the longer file, so it is replaced, not cut.
                write_whole(path, partial(_copy_beginning, path, size), overwrite=True)
            file = open(path, "r+b")  # noqa: SIM115
            file.seek(size)
            column = Column(file, rows)
            column.shape, column.dtype, column.digest = kept.shape, kept.dtype, digest
            record._columns[kept.name] = column
        return record

    def seal(self) -> dict[str, np.ndarray]:
        """Names and digests of all columns so far, as arrays for a checkpoint."""
        return {f"record {name}": np.frombuffer(c.digest.digest(), np.uint8) for name, c in self._columns.items()}

    def extend(self, **rows: np.ndarray) -> None:
        """Append rows (level, replica, ...) to the columns of these names."""
        with self._in_words():
            self._extend(rows)

    def _extend(self, rows: dict[str, np.ndarray]) -> None:
        for name, block in rows.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = Column(self._new_file())
            if self._spilled and not column._file:
                column.spill()
            column.extend(block)
        if not self._spilled and sum(c.in_memory for c in self._columns.values()) > self._limit:
            self._spilled = True
            for column in self._columns.values():
                column.spill()

    def flush(self) -> None:
        """Make sure that everything so far survives the process."""
        with self._in_words():
            for column in self._columns.values():
                column.flush()
        if self._folder is not None:
            listed = {name: (column.dtype.str, list(column.shape)) for name, column in self._columns.items()}
            write_whole(self._folder / "columns.json", lambda part: part.write_text(json.dumps(listed)), overwrite=True)

    def finish(self, rows: int) -> dict[str, np.ndarray]:
        """The first `rows` levels of every column, as (replica, level, ...); refused if another program changed a file."""
        with self._in_words():
            if self._folder is None:
                return {name: column.finish(rows) for name, column in self._columns.items()}
            small = sum(column.size for column in self._columns.values()) <= self._limit
            found = {name: column.taken(to_memory=small) for name, column in self._columns.items()}
        whole = {name: array[:rows].swapaxes(0, 1) for name, array in found.items() if array is not None}
        if changed := found.keys() - whole.keys():
            raise ValueError(
                f"The record in {self._folder} was changed while the run was writing to it ({min(changed)}); run the same "
                "call again to continue from before."
            )
        return whole

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except OSError as cause:
            place = self._folder or f"{tempfile.gettempdir()} (TMPDIR chooses another folder)"
            raise OSError(f"The record in {place} cannot be written: {why_not_written(cause)}.") from None

    def _new_file(self) -> IO[bytes] | None:
        if self._folder is None:
            return None
        path = _file(self._folder, len(self._columns))
        path.unlink(missing_ok=True)  # a ladder may still be mapped onto the old one
        return open(path, "w+b")


class Kept(NamedTuple):
    """A column as the list of a folder has it."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]

    def size(self, rows: int) -> int:
        """Bytes of so many rows."""
        return rows * math.prod(self.shape) * self.dtype.itemsize


def check_record(folder: Path, rows: int, seal: Mapping[str, np.ndarray]) -> None:
    """Refuse a record whose first `rows` rows are not those with the digests of `seal`."""
    listed = _listed(folder)
    if {f"record {kept.name}" for _, kept in listed} != set(seal):
        raise ValueError(f"the record in {folder} has other columns than its checkpoint says")
    for path, kept in listed:
        size = kept.size(rows)
        if not path.exists() or path.stat().st_size < size:
            raise ValueError(f"the record in {folder} is shorter than its checkpoint says: {kept.name} has too few levels")
        with open(path, "rb") as file:
            found = _digest(file, size).digest()
        if found != np.asarray(seal[f"record {kept.name}"], np.uint8).tobytes():
            raise ValueError(f"the record in {folder} is not as it was written: {kept.name} was changed")


def blanked(rows: dict[str, np.ndarray], begin: int, count: np.ndarray) -> dict[str, np.ndarray]:
    """Rows (level, replica, ...) from level `begin` on, blank where a replica has ended after `count` levels.

    Blank is NaN, -1 in integers, and False.
    """
    for array in rows.values():
        blank = np.nan if array.dtype.kind == "f" else (-1 if array.dtype.kind == "i" else False)
        for r, end in enumerate(count):
            array[max(0, end - begin) :, r] = blank
    return rows


def _listed(folder: Path) -> list[tuple[Path, Kept]]:
    """The columns of a folder with their files."""
    try:
        listed: dict[str, Any] = json.loads((folder / "columns.json").read_text())
        kept = [Kept(name, np.dtype(dtype), tuple(map(int, shape))) for name, (dtype, shape) in listed.items()]
    except (OSError, ValueError, TypeError, AttributeError):
        raise ValueError(f"{folder / 'columns.json'} cannot be read, so the record beside it cannot be used") from None
    return [(_file(folder, number), column) for number, column in enumerate(kept)]


def _bytes(array: np.ndarray) -> memoryview:
    """What an array has in memory.  Its own `tofile` does not say why a file cannot be written."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _digest(file: IO[bytes], size: int, copy: IO[bytes] | None = None) -> Any:
    """Digest of the next bytes of a file, which are copied on the way if that is asked for."""
    found = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, 1 << 22))):
        found.update(part)
        if copy is not None:
            copy.write(part)
        size -= len(part)
    return found


def _copy_beginning(source: Path, size: int, target: Path) -> None:
    with open(source, "rb") as old, open(target, "wb") as new:
        while size > 0 and (part := old.read(min(size, 1 << 24))):
            new.write(part)
            size -= len(part)


def _file(folder: Path, number: int) -> Path:
    # Numbered, because an observable may have a name that no file can have.
    return folder / f"column-{number:03d}.bin"
