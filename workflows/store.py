"""The files of a study: one result, and beside it the ladders and walks it was computed from.

    run.nc                     the result, a dataset
    run.ladders/request.json   the request: workflow, model and settings
    run.ladders/*.nc           ladders, parts of a walk and parts of a table, each written as soon as it is finished
    run.ladders/*.checkpoint   the state of a ladder that was interrupted
    run.replaced-1.ladders     the folder of another request, which --overwrite set aside
    .run.ladders.lock          held while a study runs

A study that is run again with the same request uses the files it finds instead of sampling again.  Every one of them carries
the request and the fingerprint of its problem, and one that carries others is never used.  The folder appears, and is set
aside, in one step, so that a kill at any moment leaves it whole; nothing that was sampled is ever deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import xarray as xr

import quenchphys as qp
from quenchphys.console.forecast import Stage
from quenchphys.console.interruption import PARTS_KEPT, Interrupted, interruptible
from quenchphys.console.progress import Display, LadderMeter
from quenchphys.identity import difference, fingerprint, remembering
from quenchphys.parallel.processes import agreed, any_of, first, several
from quenchphys.plain_values import plain
from quenchphys.stopping import StopRule
from quenchphys.storage.atomic_files import check_writable, remove_leftovers, set_aside, umask, write_whole
from quenchphys.storage.checkpoint import Unusable
from quenchphys.storage.checksum import sealed
from quenchphys.storage.lock import Lock, beside
from quenchphys.storage.netcdf import ENGINE, check_readable, write_netcdf
from workflows.budget import LadderSettings
from workflows.provenance import OF_ONE_RUN, study_attributes

FORMAT = 5  # of requests and kept files; earlier ones have other fingerprints, or none
FOLDER = ".ladders"  # how the name of the folder of kept files ends
ORIGIN = "study"  # attribute of a kept file: request and fingerprint, as JSON

Request = Mapping[str, Any]  # plain numbers, strings, lists and dicts
Part = TypeVar("Part", qp.Ladder, qp.Walk, xr.Dataset)


def request_of(workflow: str, model: Mapping[str, Any], settings: Mapping[str, Any]) -> Request:
    """What must be equal for kept ladders to be used again: the workflow, its model, and every setting that is used."""
    return {"workflow": workflow, "format": FORMAT, **model, **settings}


def identity_of(problem: Any) -> dict[str, Any]:
    """What identifies a problem in a request: its fingerprint."""
    return {"problem": fingerprint(problem)}


class Study:
    """Keeps the ladders, walks and result of one study, and shows what it is doing.

    Files are written by the first process only.  The output is locked until the result is written or the study is closed;
    as a context manager, a study is closed however it ends.

    Parameters
    ----------
    out
        File of the result; None: nothing is written.
    request
        What the study computes, see `request_of`.  A folder with ladders of another request is refused.
    progress
        Whether to show what is being done, as in `quenchphys.quench`; or the display of the study that this one is part of.
    plan
        The stages that are expected, for the time left.
    call
        What repeats the study, as a user would write it.
    overwrite
        Replace an existing result.  Ladders of the same request are used again, those of another are set aside.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] | None,
        request: Request,
        *,
        progress: bool | Display | None = None,
        overwrite: bool = False,
        plan: Iterable[Stage] = (),
        call: str = "",
    ):
        self.overwrite = overwrite
        self._call = call
        self._begun = time.monotonic()
        self._earlier = self._parts = 0.0  # seconds of what was read from files, and of results that are parts of this one
        self._gradients = 0.0  # of all ladders and walks
        self._owns_display = not isinstance(progress, Display)
        name = str(request.get("workflow", "study")).replace("_", " ")
        self.display = progress if isinstance(progress, Display) else Display(name, progress)
        if not self.display.forecast.stages:
            self.display.forecast.append(plan)
        self._request = _as_read(request)
        self._memory = ExitStack()
        self._lock: Lock | None = None
        self.path = None if out is None else Path(out)
        if self.path is not None and first():
            self._open(self.path)

    def __enter__(self) -> Study:
        self._memory.enter_context(remembering())
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._owns_display:
            self.display.close(finished=kind is None)
        self._memory.close()
        self.close()

    def close(self) -> None:
        """Let other studies use the output."""
        if self._lock is not None:
            self._lock.release()

    @property
    def request(self) -> dict[str, Any]:
        """What the study computes, as plain values."""
        return self._request

    @property
    def folder(self) -> Path:
        """Where ladders and walks are kept."""
        assert self.path is not None
        return self.path.with_suffix(FOLDER)

    def message(self, text: str) -> None:
        """Show one line on standard error."""
        self.display.message(text)

    def analyse(self) -> None:
        """What follows is no sampling."""
        self.display.stage("analysis", kind="analyse")

    def ladder(
        self,
        name: str,
        problem: Any,
        settings: LadderSettings,
        label: str,
        stop: StopRule | None = None,
        stage: str = "ladder",
    ) -> qp.Ladder:
        """The ladder of this name, from its file or newly run; an interrupted one is continued from its checkpoint."""
        ladder = self._ladder(name, problem, settings, label, stop, LadderMeter(self.display, stage))
        self._count(ladder)
        self.analyse()
        return ladder

    def _ladder(
        self, name: str, problem: Any, settings: LadderSettings, label: str, stop: StopRule | None, meter: LadderMeter
    ) -> qp.Ladder:
        file = self._file(name)
        if file is not None and (kept := self._kept(qp.Ladder.load, file, problem, label)) is not None:
            return kept
        self.message(f"{label}, {settings.replicas} x {settings.particles} particles")
        if file is None:
            return settings.quench(problem, stop, meter, None)
        checkpoint = file.with_suffix(".checkpoint")
        run = partial(settings.quench, problem, stop, meter)
        try:
            ladder = with_checkpoint(run, checkpoint, self.overwrite)
        except Interrupted as stopped:
            raise self._interrupted() from stopped
        ladder.tree.attrs[ORIGIN] = json.dumps(self._origin(problem))
        ladder.save(file)
        if first():
            shutil.rmtree(checkpoint)
        return ladder

    def walk(self, name: str, label: str, make: Callable[[], qp.Walk], problem: Any) -> qp.Walk:
        """The walk of this name through the problem, from its file or newly run; without a label nothing is said of it."""
        walk = self._walk(self._file(name), label, make, problem)
        self._count(walk)
        return walk

    def bridge(self, name: str, label: str, make: Callable[[], qp.Ladder], problem: Any) -> qp.Ladder:
        """The bridge of this name to a phase, from its file or newly run; one that is interrupted begins again."""
        ladder = self._bridge(self._file(name), label, make, problem)
        self._count(ladder)
        return ladder

    def _bridge(self, file: Path | None, label: str, make: Callable[[], qp.Ladder], problem: Any) -> qp.Ladder:
        if file is not None and (kept := self._kept(qp.Ladder.load, file, problem, label)) is not None:
            return kept
        self.message(label)
        if file is None:
            return make()
        try:
            ladder = make()
        except Interrupted as stopped:
            raise self._interrupted() from stopped
        ladder.tree.attrs[ORIGIN] = json.dumps(self._origin(problem))
        ladder.save(file)
        return ladder

    def _begin_part(self, label: str) -> None:
        self.message(label)
        self.display.stage("sampling", detail=label)

    def count_part(self, part: xr.Dataset) -> None:
        """Count the gradients of a result that is part of this one, and its time, if that passed before or elsewhere."""
        self._gradients += float(part.attrs.get("gradients", 0.0))
        self._parts += float(part.attrs.get("wall_time", 0.0))

    def _count(self, run: qp.Ladder | qp.Walk) -> None:
        self._gradients += float(run.attrs.get("gradients", 0.0)) + float(run.attrs.get("pilot_gradients", 0.0))

    def _walk(self, file: Path | None, label: str, make: Callable[[], qp.Walk], problem: Any) -> qp.Walk:
        if file is None:
            return make()
        if (kept := self._kept(qp.Walk.load, file, problem, label)) is not None:
            return kept
        with interruptible(PARTS_KEPT) as interrupted:
            try:
                made = make()
            except Interrupted as stopped:
                raise self._interrupted() from stopped
            found = qp.Walk(made.data.assign_attrs({ORIGIN: json.dumps(self._origin(problem))}))
            found.save(file)
            if any_of(bool(interrupted)):
                raise self._interrupted()
        return found

    def part(
        self, name: str, label: str, make: Callable[[Path | None], xr.Dataset], problem: Any = None
    ) -> xr.Dataset:
        """The dataset of this name, from its file or newly made; `make` is given the folder for a checkpoint of its ladder.

        The problem, if there is one, must be that of the kept file.
        """
        file = self._file(name)
        if file is None:
            self._begin_part(label)
            return make(None)
        if (kept := self._kept(read_netcdf, file, problem, label)) is not None:
            del kept.attrs[ORIGIN]
            return kept
        self._begin_part(label)
        checkpoint = file.with_suffix(".checkpoint")
        with interruptible() as interrupted:
            try:
                made = make(checkpoint)
            except Interrupted as stopped:
                raise self._interrupted() from stopped
            write_netcdf(made.assign_attrs({ORIGIN: json.dumps(self._origin(problem))}), file)
            if first() and checkpoint.exists():
                shutil.rmtree(checkpoint)
            if any_of(bool(interrupted)):
                raise self._interrupted()
        return made

    def finish(self, result: xr.Dataset) -> xr.Dataset:
        """Add what the study is and took to the result, and write it."""
        of_the_answer = {name: value for name, value in result.attrs.items() if name not in OF_ONE_RUN}
        seconds = max(time.monotonic() - self._begun + self._earlier, self._parts)
        result = result.copy()
        result.attrs = of_the_answer | study_attributes(self._request, self._call, seconds, self._gradients)
        if self.path is not None:
            write_netcdf(result, self.path, overwrite=self.overwrite)
            self.message(f"result: {self.path}")
        self.close()
        return result

    def _file(self, name: str) -> Path | None:
        return None if self.path is None else self.folder / f"{name}.nc"

    def _interrupted(self) -> Interrupted:
        return Interrupted(f"Interrupted.  Run the same command again to continue from {self.folder}.")

    def _origin(self, problem: Any) -> dict[str, Any]:
        """What a kept file of this problem carries; without a problem, the request alone."""
        return {"request": self._request, "sampled": {} if problem is None else _as_read(fingerprint(problem))}

    def _kept(self, load: Callable[[Path], Part], file: Path, problem: Any, label: str) -> Part | None:
        """The ladder, walk or dataset in a file, if there is one that was made for this request and problem."""
        if not agreed(file.exists()):
            return None
        try:
            found = load(file)
            why = "another program wrote it" if not sealed(file) else ""
            why = why or _why_other(_origin_of(found), self._origin(problem))
        except ValueError as cause:  # damaged, or something else altogether
            found, why = None, str(cause).rstrip(".")
        if found is not None and not why:
            self._earlier += float(found.attrs.get("wall_time", 0.0))
            if label:
                self.message(f"{label}: read from {file}")
            return found
        if not self.overwrite:
            raise FileExistsError(
                f"{file} cannot be used ({why}); choose another output, or sample it again (overwrite=True, --overwrite)."
            )
        if agreed(True) and first():  # every process has read it by now
            self.message(f"{label or 'chains'}: {file} is set aside as {set_aside(file).name}, because {why}")
        return None

    def _open(self, path: Path) -> None:
        """Lock the output; make its folder, or check that what it holds belongs to the same request."""
        if self.folder == path:
            raise ValueError(f"The result cannot be called {path}, because its ladders are kept in a folder of that name.")
        check_writable(path, overwrite=True)
        folder = self.folder.resolve()  # it may be a link to a larger disk
        if not folder.parent.is_dir():
            raise FileNotFoundError(f"{folder} cannot be made, because the directory {folder.parent} does not exist.")
        self._lock = Lock(
            beside(self.folder),
            f"Another study is writing to {path} and {self.folder}; wait until it has ended, or choose another output.",
        )
        try:
            check_writable(path, overwrite=self.overwrite)
            remove_leftovers(path.parent, of=f"{path.name}.")
            remove_leftovers(folder.parent, of=f"{folder.name}.")
            self._open_folder(folder)
            remove_leftovers(folder)
        except BaseException:
            self.close()
            raise

    def _why_not_continued(self, folder: Path) -> str:
        """Why the files in a folder do not belong to this study; empty if they do."""
        if not (folder / "request.json").exists():
            return "holds files but no request.json, so nobody knows what they belong to"
        why = _why_other(_read_request(folder / "request.json"), self._request)
        return f"holds ladders of another request ({why})" if why else ""

    def _open_folder(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"Ladders are kept in a folder {self.folder}, but that is a file.")
        if folder.exists() and any(folder.iterdir()):
            why = self._why_not_continued(folder)
            if not why:
                return
            if not self.overwrite:
                raise FileExistsError(
                    f"{self.folder} {why}; choose another output, or set the folder aside (overwrite=True, --overwrite)."
                )
            self.message(f"{folder} {why}: set aside as {set_aside(folder).name}")
        text = json.dumps(self._request, indent=2)
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        write_whole(new / "request.json", lambda part: part.write_text(text))
        new.chmod(0o777 & ~umask())
        new.rename(folder)


def with_checkpoint(run: Callable[[Path], qp.Ladder], checkpoint: Path, overwrite: bool) -> qp.Ladder:
    """A ladder and its checkpoint; one of another run, or one that cannot be read, is set aside if asked."""
    try:
        return run(checkpoint)
    except Unusable:
        if not overwrite or several():
            raise
    set_aside(checkpoint)
    return run(checkpoint)


def finished(out: Path, request: Request, overwrite: bool = False) -> xr.Dataset | None:
    """The result in a file, if it is there and answers the same request; an unreadable one may be overwritten."""
    if not out.exists():
        return None
    try:
        result = load_result(out)
        why = _why_other(json.loads(result.attrs["request"]), _as_read(request))
    except ValueError as cause:
        if overwrite:
            return None
        raise FileExistsError(
            f"{out} cannot be used ({str(cause).rstrip('.')}); choose another output, or compute it again (overwrite=True, "
            "--overwrite)."
        ) from None
    return None if why else result


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
        raise PermissionError(f"{path} cannot be read: permission denied.") from None
    except Exception as cause:  # the reader's own exceptions are many, and none mentions results
        raise ValueError(f"{path} is not a readable netCDF-4 file, so it holds no result.") from cause


def _as_read(request: Request) -> dict[str, Any]:
    """The request as it is after writing and reading: tuples are lists then, and numpy's numbers Python's."""
    return json.loads(json.dumps(plain("a setting", request)))


def _read_request(file: Path) -> dict[str, Any]:
    """The request in a file; empty if it cannot be read."""
    try:
        read = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _origin_of(kept: qp.Ladder | qp.Walk | xr.Dataset) -> dict[str, Any]:
    try:
        found = json.loads(kept.attrs[ORIGIN])
    except (KeyError, TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _why_other(before: Request, now: Request) -> str:
    """In what a kept request, or what a kept file carries, is another one; empty if it is the same."""
    if not before:
        return "what it was made for cannot be read"
    if before.get("format") != now.get("format"):
        return "of an earlier version of quenchphys"
    return difference(before, now)
