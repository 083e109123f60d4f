"""Where does a study keep its work?  One result file, and beside it the ladders it rests on.

    run.nc                     the result, a dataset
    run.ladders/request.json   what was asked for
    run.ladders/*.nc           the ladders, each written as soon as it is finished
    run.ladders/*.checkpoint   the ladder that was interrupted, if one was

A study that is called again with the same request takes up the ladders it finds instead of sampling again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

import quenchphys as qp
from quenchphys.console.interruption import Interrupted, interruptible
from quenchphys.fingerprint import difference
from quenchphys.parallel.processes import agreed, any_of, first
from quenchphys.storage.netcdf import ENGINE, check_readable, check_writable, write_netcdf, write_whole
from workflows.budget import Effort
from workflows.narrator import Narrator

Request = Mapping[str, Any]  # plain numbers, strings, lists and dicts


class Study:
    """The files of one study, written by the first process; without `out` nothing is written.

    An existing result is refused unless `overwrite` is set; ladders of another request are then thrown away.
    """

    def __init__(
        self, out: str | os.PathLike[str] | None, request: Request, narrator: Narrator, *, overwrite: bool = False
    ):
        self._request: dict[str, Any] = json.loads(json.dumps(dict(request)))
        self.narrator = narrator
        self._overwrite = overwrite
        if not first():
            self.path = None if out is None else Path(out)
            return
        self.path = None if out is None else check_writable(out, overwrite=overwrite)
        if self.path is None:
            return
        self.folder.mkdir(exist_ok=True)
        before = self._read_request()
        if before not in (None, self._request):
            if not overwrite:
                raise FileExistsError(
                    f"{self.folder} holds ladders of another request ({difference(before, self._request)}); choose another "
                    "output, or ask to overwrite it (overwrite=True, --overwrite)."
                )
            shutil.rmtree(self.folder)
            self.folder.mkdir()
        if before != self._request:
            text = json.dumps(self._request, indent=2)
            write_whole(self.folder / "request.json", lambda part: part.write_text(text), overwrite=True)

    @property
    def folder(self) -> Path:
        assert self.path is not None
        return ladders_of(self.path)

    def ladder(
        self, name: str, problem: Any, effort: Effort, words: str, stop: qp.stopping.StopRule | None = None
    ) -> qp.Ladder:
        """The ladder of this name: from disk if it is there, else a new one, which is then kept."""
        file = None if self.path is None else self.folder / f"{name}.nc"
        if file is not None and agreed(file.exists()):
            self.narrator.say(f"{words}: taken from {file}")
            return qp.Ladder.load(file)
        self.narrator.say(f"{words}, {effort.replicas} x {effort.particles} particles")
        if file is None:
            return effort.quench(problem, stop, self.narrator.progress, None)
        checkpoint = file.with_suffix(".checkpoint")
        try:
            ladder = effort.quench(problem, stop, self.narrator.progress, checkpoint)
        except Interrupted as stopped:
            raise Interrupted(f"Interrupted; the same command goes on from what is in {self.folder}.") from stopped
        ladder.save(file)
        if first():
            shutil.rmtree(checkpoint)
        return ladder

    def dataset(self, name: str, words: str, make: Callable[[], xr.Dataset]) -> xr.Dataset:
        """Part of the work, of this name: from disk if it is there, else made, and then kept."""
        file = None if self.path is None else self.folder / f"{name}.nc"
        if file is not None and agreed(file.exists()):
            self.narrator.say(f"{words}: taken from {file}")
            return read_netcdf(file)
        if file is None:
            return make()
        with interruptible() as asked:
            found = make()
            if first():
                write_netcdf(found, file)
            if any_of(bool(asked)):
                raise Interrupted(f"Interrupted; the same command goes on from what is in {self.folder}.")
        return found

    def finish(self, result: xr.Dataset) -> xr.Dataset:
        """Label the result with its request, and write it."""
        result = result.assign_attrs(request=json.dumps(self._request), quenchphys_version=qp.__version__)
        if self.path is not None:
            write_netcdf(result, self.path, overwrite=self._overwrite)
            self.narrator.say(f"result: {self.path}")
        return result

    def _read_request(self) -> dict[str, Any] | None:
        file = self.folder / "request.json"
        if not file.exists():
            return None
        try:
            read = json.loads(file.read_text())
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}


def ladders_of(out: str | os.PathLike[str]) -> Path:
    """The folder beside a result in which its ladders are kept."""
    return Path(out).with_suffix(".ladders")


def finished(out: Path, request: Request) -> xr.Dataset | None:
    """A result that was asked for in the same words before, if there is one."""
    if not out.exists():
        return None
    result = load_result(out)
    return result if json.loads(result.attrs["request"]) == json.loads(json.dumps(dict(request))) else None


def load_result(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read what a workflow wrote."""
    result = read_netcdf(path)
    if "request" not in result.attrs or "workflow" not in result.attrs:
        raise ValueError(f"{path} does not hold the result of a workflow: it does not say what was asked for.")
    return result


def read_netcdf(path: str | os.PathLike[str]) -> xr.Dataset:
    path = check_readable(path, "result")
    try:
        return xr.load_dataset(path, engine=ENGINE)
    except PermissionError:
        raise
    except Exception as cause:  # the reader's own exceptions are many, and say nothing about results
        raise ValueError(f"{path} is not a readable netCDF-4 file, so it holds no result.") from cause
