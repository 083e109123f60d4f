"""One call for each table and figure of the paper."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import xarray as xr

from quenchphys.settings import check_whole
from workflows.reproduction import experiments
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.table import doubts
from workflows.store import Study, finished, request_of


def reproduce(
    name: str,
    *,
    effort: str = "quick",
    seed: int = 0,
    data: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> xr.Dataset:
    """Repeat a table or a figure of the QES paper, and compare every number with the printed one.

    Parameters
    ----------
    name
        Which one: analytic, path-length, ...; `quenchphys reproduce --list` shows all of them.
    effort
        "quick" (minutes), "standard" (within an hour on two cores) or "paper" (its settings, particles and seeds).
    seed
        The same seed gives the same numbers.
    data
        Folder with the data sets of the Bayesian networks, as CSV files; only experiments with networks need it.
    out
        File of the result.  Parts of the table are kept beside it, so that the same call continues where it was
        interrupted; a result that is finished is read from its file.
    overwrite, progress
        As in `coexistence`.

    Returns
    -------
    Dataset
        Over row: case, method, quantity, the paper's value, ours, what is exact, errors, deviations in combined errors, and
        gradients; beside them what the figure shows.  The attribute `trusted` is 1 if nothing deviates by more than three
        combined errors, and `why` says what does.

    Examples
    --------
    >>> found = workflows.reproduce("path-length", effort="quick", out="path-length.nc")
    >>> found.ours, found.paper, found.deviation
    """
    experiment = chosen(name)
    size = _effort(effort)
    check_whole("seed", seed, 0)
    folder = data_folder(experiment, data)
    settings = dict(experiment.settings[size])
    model = {"experiment": experiment.name, "effort": size.value} | _contents(experiment, folder)
    request = request_of("reproduce", model, settings | {"seed": seed})
    if out is not None and not overwrite and (kept := finished(Path(out), request)) is not None:
        return kept
    with Study(out, request, progress=progress, overwrite=overwrite) as study:
        found = experiment.run(Bench(study, settings, seed, folder))
        why = doubts(found, [found.attrs["doubt"]] if found.attrs.get("doubt") else [])
        return study.finish(
            found.assign_attrs(
                workflow="reproduce", experiment=experiment.name, effort=size.value, trusted=int(not why), why=why
            )
        )


def chosen(name: str) -> Experiment:
    """The experiment of this name; an unknown one is refused with the nearest that exists."""
    known = experiments()
    if name not in known:
        raise ValueError(f"There is no experiment {name!r}{_nearest(name, known)}; there are {', '.join(known)}.")
    return known[name]


def data_folder(experiment: Experiment, data: str | os.PathLike[str] | None) -> Path | None:
    """The folder of data sets, refused if files are missing that the experiment needs."""
    if not experiment.data:
        return None
    if data is None:
        if not experiment.data_required:
            return None
        raise ValueError(
            f"{experiment.name} needs a folder with {', '.join(experiment.data)}: name it by data= (--data on the command "
            "line)."
        )
    folder = Path(data)
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder of data sets {folder} does not exist.")
    if missing := [file for file in experiment.data if not (folder / file).is_file()]:
        raise FileNotFoundError(f"{experiment.name} needs {', '.join(missing)} in {folder}, but there is no such file.")
    return folder


def _effort(effort: Any) -> Effort:
    if effort not in list(Effort):
        raise ValueError(
            f"There is no effort {effort!r}{_nearest(str(effort), Effort)}; there are {', '.join(Effort)}."
        )
    return Effort(effort)


def _nearest(given: str, known: Iterable[str]) -> str:
    """A suggestion, if there is one that is near."""
    near = difflib.get_close_matches(str(given), list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _contents(experiment: Experiment, folder: Path | None) -> dict[str, Any]:
    """What identifies the data sets: parts made from other files are never used."""
    if folder is None:
        return {"data": {}}
    return {"data": {file: _digest(folder / file) for file in experiment.data}}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
