"""Checkpoints: a run can be killed at any moment and continues where it was.

    folder/run.json            the run: method, problem, settings, versions
    folder/prior.npz           the prior draws
    folder/record/             what was recorded so far, one file a variable, appended block by block
    folder/generations/N/      the state after N levels (orbax): population, random keys, adaptation, evidence; two are kept
    folder/lock                held while a run uses the folder

A generation is written in the background.  It names the number of levels it belongs to and digests of its contents, of the
prior draws, and of the record up to that number of levels; the record is cut there when a run continues from it.  A
generation that cannot be read, or one of whose digests does not match, is skipped in favour of the one before.  Nothing in
these files is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from quenchphys.console.messages import one_line, why_not_written
from quenchphys.identity import difference
from quenchphys.parallel.processes import agreed, first
from quenchphys.plain_values import plain, real, whole
from quenchphys.storage.atomic_files import remove_leftovers, write_whole
from quenchphys.storage.lock import Lock
from quenchphys.storage.record import check_record

GENERATIONS = 2
PATIENCE = 7 * 24 * 3600  # seconds that a generation may take: a run may be stopped while it is written
Arrays = dict[str, np.ndarray]


class Unusable(ValueError):
    """A checkpoint of another run, or one that cannot be read."""


class Generation(NamedTuple):
    """What a checkpoint holds of one moment."""

    once: Arrays
    """The prior draws, and what else is made once."""
    state: Arrays
    """The population."""
    host: Arrays
    """What the host has learnt from it."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run keeps its state, and how often: after so many minutes, or after so many levels if these come first.

    Parameters
    ----------
    folder
        A folder for this run alone; it is made if it does not exist.
    minutes
        Time between two checkpoints.
    levels
        Number of levels between two checkpoints; None: only the time counts.

    Examples
    --------
    >>> ladder = qp.quench(model, checkpoint=qp.Checkpoint("state", minutes=1))
    """

    folder: str | os.PathLike[str]
    minutes: float = 5.0
    levels: int | None = None

    def __post_init__(self) -> None:
        if real("minutes between checkpoints", self.minutes) <= 0 or math.isnan(self.minutes):
            raise ValueError(f"minutes between checkpoints must be positive; {self.minutes!r} was given")
        if self.levels is not None:
            whole("levels between checkpoints", self.levels, 1)


@contextmanager
def opened(
    checkpoint: Checkpoint | str | os.PathLike[str] | None, identity: Mapping[str, Any]
) -> Iterator[Store | None]:
    """The store of a run, locked while it is open; None without a checkpoint."""
    if checkpoint is None:
        yield None
        return
    wanted = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    folder = Path(wanted.folder)
    if not first():
        yield Store(folder, wanted, identity)
        return
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"A checkpoint is a folder, but {folder} is a file.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise type(cause)(f"The checkpoint folder {folder} cannot be written: {cause.strerror}.") from None
    with Lock(
        folder / "lock", f"Another run is using the checkpoint folder {folder}; give this run another folder."
    ):
        remove_leftovers(folder, folder / "record")
        store = Store(folder, wanted, identity)
        try:
            yield store
        finally:
            store.close()


class Store:
    """The files of one unfinished run, written by the first process and read by all."""

    def __init__(self, folder: Path, wanted: Checkpoint, identity: Mapping[str, Any]):
        self.folder, self._wanted = folder, wanted
        self._manager: Any = None
        self._saved_level, self._saved_time = 0, time.monotonic()
        self._prior_digest = ""
        if not first():
            return
        now = json.loads(json.dumps(plain("the settings of a run", identity)))
        before = _read_json(folder / "run.json")
        if before is None:
            if any(entry.name != "lock" for entry in folder.iterdir()):
                raise FileExistsError(
                    f"{folder} holds other files and no checkpoint; give an empty folder or a new one."
                )
            text = json.dumps(now, indent=2)
            write_whole(folder / "run.json", lambda part: part.write_text(text))
        elif difference(before, now):
            raise Unusable(_refusal(folder, before, now))

    @property
    def record(self) -> Path:
        """The folder of the record."""
        return self.folder / "record"

    @property
    def _generations(self) -> Path:
        return (self.folder / "generations").absolute()

    def begin(self, prior: Arrays) -> None:
        """Write what is made once: the prior draws."""
        if not first():
            return
        self._prior_digest = digest(prior)
        write_whole(self.folder / "prior.npz", lambda part: _savez(part, prior), overwrite=True)
        self.record.mkdir(exist_ok=True)

    def latest(self) -> Generation | None:
        """The newest generation that can be read."""
        found = self._newest() if first() else None
        level = agreed(self._saved_level if found is not None else 0)
        if level and not first():
            self._saved_level, found = level, self._read(level)
        return found

    def _newest(self) -> Generation | None:
        if not self._generations.is_dir():
            return None
        generations = self._open().all_steps()
        skipped: dict[int, str] = {}
        for level in sorted(generations, reverse=True):
            try:
                found = self._read(level)
            except Exception as cause:  # torn, corrupted, or half deleted: whatever it is, the one before may be whole
                skipped[level] = one_line(cause)
                continue
            for other, why in skipped.items():
                print(f"Skipping the checkpoint after {other} levels: {why}.", file=sys.stderr, flush=True)
            for newer in [other for other in generations if other > level]:
                self._open().delete(newer)
            self._saved_level = level
            return found
        if generations:
            # They may be readable elsewhere or later, so a run that begins again does not delete them.
            raise Unusable(
                f"No checkpoint in {self.folder} can be read ({skipped[min(skipped)]}); move the folder away, or give "
                "another one."
            )
        return None

    def _read(self, level: int) -> Generation:
        import orbax.checkpoint as ocp  # takes seconds to import, and a short run never needs it

        items = ocp.args.Composite(
            state=ocp.args.StandardRestore(), host=ocp.args.StandardRestore(), seal=ocp.args.JsonRestore()
        )
        found = self._open().restore(level, args=items)
        state, host = ({k: np.asarray(v) for k, v in found[item].items()} for item in ("state", "host"))
        if found["seal"]["digest"] != digest(state | host):
            raise ValueError("its digest does not match")
        check_record(self.record, level, {name: value for name, value in host.items() if name.startswith("record ")})
        with np.load(self.folder / "prior.npz", allow_pickle=False) as kept:
            prior = {name: kept[name] for name in kept.files}
        self._prior_digest = digest(prior)
        if found["seal"]["prior"] != self._prior_digest:
            raise ValueError("the prior draws beside it are not as they were written")
        return Generation(prior, state, host)

    def due(self, level: int) -> bool:
        """Whether it is time for another generation."""
        levels = math.inf if self._wanted.levels is None else self._wanted.levels
        late = time.monotonic() - self._saved_time >= 60 * self._wanted.minutes
        return bool(agreed(late or level - self._saved_level >= levels))

    def save(self, level: int, state: Arrays, host: Arrays) -> None:
        """Write a generation in the background; waits only for the one before.

        If that one failed, this one is written by another writer while the run waits: losing one generation is no reason
        to end a run, a disk that accepts none is.
        """
        import orbax.checkpoint as ocp

        if level == self._saved_level:
            return
        if not first():
            self._saved_level = level
            return
        items = ocp.args.Composite(
            state=ocp.args.StandardSave(state),
            host=ocp.args.StandardSave(host),
            seal=ocp.args.JsonSave({"digest": digest(state | host), "prior": self._prior_digest}),
        )
        try:
            self._open().save(level, args=items)
        except Exception:
            with suppress(Exception):  # it failed, and says so again
                self._open().close()
            self._manager = None
            try:
                self._open().save(level, args=items, force=True)
                self._open().wait_until_finished()
            except Exception as cause:
                self._manager = None
                raise self._cannot_be_written(cause) from None
        self._saved_level, self._saved_time = level, time.monotonic()

    def close(self) -> None:
        """Wait for the last generation."""
        if self._manager is not None:
            manager, self._manager = self._manager, None
            try:
                manager.wait_until_finished()
                manager.close()
            except Exception as cause:
                raise self._cannot_be_written(cause) from None

    def _cannot_be_written(self, cause: Exception) -> OSError:
        return OSError(f"The checkpoint in {self.folder} cannot be written: {why_not_written(cause)}.")

    def _open(self) -> Any:
        import orbax.checkpoint as ocp

        if self._manager is None:
            self._generations.mkdir(exist_ok=True)
            alone = ocp.options.MultiprocessingOptions(
                primary_host=jax.process_index(),
                active_processes={jax.process_index()},
                barrier_sync_key_prefix=f"process{jax.process_index()}",
            )
            options = ocp.CheckpointManagerOptions(
                max_to_keep=GENERATIONS,
                enable_async_checkpointing=True,
                async_options=ocp.AsyncOptions(timeout_secs=PATIENCE),
                create=False,
                multiprocessing_options=alone,
            )
            self._manager = ocp.CheckpointManager(self._generations, options=options)
        return self._manager


def _refusal(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Why the run in a folder is not this one."""
    was, is_now = before.get("format"), now.get("format")
    if was != is_now and isinstance(was, int) and isinstance(is_now, int):
        return (
            f"The checkpoint in {folder} was written by {'an earlier' if was < is_now else 'a later'} version of quenchphys "
            f"(format {was}, this one is {is_now}): finish it with that version or give another folder."
        )
    return (
        f"The checkpoint in {folder} belongs to another run: {difference(before, now)}; give another folder, or the same "
        "problem and settings."
    )


def digest(arrays: Arrays) -> str:
    """Digest of names, shapes and contents."""
    seal = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        array = np.ascontiguousarray(array)
        seal.update(f"{name} {array.dtype} {array.shape}".encode())
        seal.update(array.tobytes())
    return seal.hexdigest()


def _savez(part: Path, arrays: Arrays) -> None:
    with open(part, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _read_json(file: Path) -> dict[str, Any] | None:
    if not file.exists():
        return None
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        raise Unusable(f"{file} cannot be read, so the checkpoint beside it cannot be used.") from None
    return found if isinstance(found, dict) else {}
