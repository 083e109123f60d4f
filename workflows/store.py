"""The files of a study: one result, and beside it the ladders and walks it was computed from.

    run.nc                     the result, a dataset
    run.ladders/request.json   the request: workflow, model and settings
    run.ladders/*.nc           ladders and parts of a walk, each written as soon as it is finished
    run.ladders/*.checkpoint   the state of a ladder that was interrupted

A study that is run again with the same request uses the files it finds instead of sampling again.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

import quenchphys as qp
from quenchphys.console.interruption import Interrupted, interruptible
from quenchphys.identity import difference
from quenchphys.parallel.processes import agreed, any_of, first
from quenchphys.problem import view
from quenchphys.stopping import StopRule
from quenchphys.storage.netcdf import ENGINE, check_readable, check_writable, write_netcdf, write_whole
from workflows.budget import LadderSettings

FORMAT = 3  # of requests and kept files; in earlier ones a request held settings that were not used

Request = Mapping[str, Any]  # plain numbers, strings, lists and dicts


def request_of(workflow: str, model: Mapping[str, Any], settings: Mapping[str, Any]) -> Request:
    """What must be equal for kept ladders to be used again: the workflow, its model, and every setting that is used."""
    return {"workflow": workflow, "format": FORMAT, **model, **settings}


def identity_of(problem: Any) -> dict[str, Any]:
    """What identifies a problem in a request."""
    seen = view(problem)
    return {"model": seen.name, "parameters": seen.parameters}


class Study:
    """Keeps the ladders, walks and result of one study, and shows what it is doing.

    Files are written by the first process only.

    Parameters
    ----------
    out
        File of the result; None: nothing is written.
    request
        What the study computes, see `request_of`.  A folder with ladders of another request is refused.
    progress
        Show messages on standard error; None: if that is a terminal.
    overwrite
        Replace an existing result.  Ladders of another request are deleted, those of the same are used again.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] | None,
        request: Request,
        *,
        progress: bool | None = None,
        overwrite: bool = False,
    ):
        self.progress = progress
        self._request = _as_read(request)
        self._overwrite = overwrite
        self.path = None if out is None else Path(out)
        if self.path is not None and first():
            check_writable(self.path, overwrite=overwrite)
            self._open_folder()

    @property
    def folder(self) -> Path:
        """Where ladders and walks are kept."""
        assert self.path is not None
        return self.path.with_suffix(".ladders")

    def message(self, text: str) -> None:
        """Show one line on standard error."""
        if self.progress or (self.progress is None and sys.stderr.isatty()):
            print(text, file=sys.stderr, flush=True)

    def ladder(
        self, name: str, problem: Any, settings: LadderSettings, label: str, stop: StopRule | None = None
    ) -> qp.Ladder:
        """The ladder of this name, from its file or newly run; an interrupted one is continued from its checkpoint."""
        file = self._file(name)
        if file is not None and agreed(file.exists()):
            self.message(f"{label}: read from {file}")
            return qp.Ladder.load(file)
        self.message(f"{label}, {settings.replicas} x {settings.particles} particles")
        if file is None:
            return settings.quench(problem, stop, self.progress, None)
        checkpoint = file.with_suffix(".checkpoint")
        try:
            ladder = settings.quench(problem, stop, self.progress, checkpoint)
        except Interrupted as stopped:
            raise self._interrupted() from stopped
        ladder.save(file)
        if first():
            shutil.rmtree(checkpoint)
        return ladder

    def walk(self, name: str, label: str, make: Callable[[], qp.Walk]) -> qp.Walk:
        """The walk of this name, from its file or newly run."""
        file = self._file(name)
        if file is None:
            return make()
        if agreed(file.exists()):
            self.message(f"{label}: read from {file}")
            return qp.Walk.load(file)
        with interruptible() as interrupted:
            found = make()
            found.save(file)
            if any_of(bool(interrupted)):
                raise self._interrupted()
        return found

    def finish(self, result: xr.Dataset) -> xr.Dataset:
        """Add the request to the result, and write it."""
        result = result.assign_attrs(request=json.dumps(self._request), quenchphys_version=qp.__version__)
        if self.path is not None:
            write_netcdf(result, self.path, overwrite=self._overwrite)
            self.message(f"result: {self.path}")
        return result

    def _file(self, name: str) -> Path | None:
        return None if self.path is None else self.folder / f"{name}.nc"

    def _interrupted(self) -> Interrupted:
        return Interrupted(f"Interrupted.  Run the same command again to continue from {self.folder}.")

    def _open_folder(self) -> None:
        """Make the folder, or check that what it holds belongs to the same request."""
        self.folder.mkdir(exist_ok=True)
        before = self._kept_request()
        if before == self._request:
            return
        if before is not None:
            if not self._overwrite:
                raise FileExistsError(
                    f"{self.folder} holds ladders of another request ({_why_other(before, self._request)}); choose another "
                    "output, or overwrite it (overwrite=True, --overwrite)."
                )
            shutil.rmtree(self.folder)
            self.folder.mkdir()
        text = json.dumps(self._request, indent=2)
        write_whole(self.folder / "request.json", lambda part: part.write_text(text), overwrite=True)

    def _kept_request(self) -> dict[str, Any] | None:
        file = self.folder / "request.json"
        if not file.exists():
            return None
        try:
            read = json.loads(file.read_text())
        except (OSError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}


def finished(out: Path, request: Request) -> xr.Dataset | None:
    """The result in a file, if it is there and answers the same request."""
    if not out.exists():
        return None
    result = load_result(out)
    return result if json.loads(result.attrs["request"]) == _as_read(request) else None


def load_result(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read the result of a workflow from the file it was written to.

    Parameters
    ----------
    path
        File that was given as `out` to `coexistence`, `finite_size_scaling` or `partition_function`, or as --out to the
        `quenchphys` command.

    Returns
    -------
    Dataset
        As the workflow returned it.  The attributes `workflow` and `request` (JSON) hold what was computed, `trusted` is 1
        or 0, and `why` gives the reasons for doubt.

    Examples
    --------
    >>> point = workflows.load_result("run.nc")
    >>> float(point.mu2), float(point.mu2_err), bool(point.trusted)
    """
    result = read_netcdf(path)
    if "request" not in result.attrs or "workflow" not in result.attrs:
        raise ValueError(f"{path} does not hold the result of a workflow: its attributes contain no request.")
    return result


def read_netcdf(path: str | os.PathLike[str]) -> xr.Dataset:
    path = check_readable(path, "result")
    try:
        return xr.load_dataset(path, engine=ENGINE)
    except PermissionError:
        raise
    except Exception as cause:  # the reader's own exceptions are many, and none mentions results
        raise ValueError(f"{path} is not a readable netCDF-4 file, so it holds no result.") from cause


def _as_read(request: Request) -> dict[str, Any]:
    """The request as it is after writing and reading: tuples are lists then."""
    return json.loads(json.dumps(dict(request)))


def _why_other(before: Request, now: Request) -> str:
    if not before:
        return "its request.json cannot be read"
    if before.get("format") != now.get("format"):
        return "of an earlier version of quenchphys"
    return difference(before, now)
