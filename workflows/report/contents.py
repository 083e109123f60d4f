"""What a report contains: the verdict first, then numbers, figures, diagnostics and settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import quenchphys as qp
from observables.headings import heading_of
from observables.samples.of_walks import crossings
from quenchphys.autocorrelation import integrated_time
from workflows.report.page import Page
from workflows.results import RESULTS, draw, summary
from workflows.store import FOLDER

# Attributes that the page shows elsewhere, or that only programs read.
SHOWN_ELSEWHERE = (
    "settings", "versions", "request", "study", "why", "trusted", "couplings", "phases", "parameters", "format",
)  # fmt: skip
NEAR_THE_ENDS = 0.1  # of the range of energies, within which a chain has made its way from one end to the other


def page_of(found: xr.Dataset | qp.Ladder | qp.Walk, path: Path | None = None) -> str:
    """The report of a result, a ladder or a walk.

    Parameters
    ----------
    found
        What the report is of.
    path
        Its file; ladders and walks of a study are looked for beside it.

    Returns
    -------
    str
        An HTML page that needs no other file.
    """
    if isinstance(found, qp.Ladder):
        page = of_ladder(found)
    elif isinstance(found, qp.Walk):
        page = of_walk(found)
    else:
        page = of_result(found, path)
    return page.html()


def of_ladder(ladder: qp.Ladder) -> Page:
    """Outcome, log Z, levels, autocorrelation, settings."""
    page = Page(f"Ladder of {ladder.problem}", heading_of(ladder.attrs))
    first, *lines = ladder.report().splitlines()
    page.verdict(ladder.outcome.trusted, f"{first}. {lines[0]}")
    page.section("Numbers")
    page.lines("\n".join(lines[1:]), wrapped=True)
    page.section("Figures")
    page.figure(ladder.plot(), "Levels, volumes and acceptance of every replica, and P(E) at beta = 1.")
    _levels(page, ladder)
    _provenance(page, ladder.attrs)
    return page


def of_walk(walk: qp.Walk) -> Page:
    """log Z, chains, autocorrelation, settings."""
    page = Page(f"Walk of {walk.problem}", heading_of(walk.attrs))
    undefined = float(walk.attrs.get("undefined", 0.0))
    trusted = undefined == 0 and bool(walk.attrs.get("trusted", 1))
    page.verdict(trusted, str(walk.attrs.get("why", "")) or walk.report().splitlines()[2].capitalize() + ".")
    page.section("Numbers")
    page.lines(walk.report(), wrapped=True)
    page.section("Figures")
    page.figure(walk.plot(), "Energies of the chains of the first group, acceptance of every group, and P(E) at beta = 1.")
    page.section("Groups of chains")
    _groups(page, [walk])
    _provenance(page, walk.attrs)
    return page


def of_result(result: xr.Dataset, path: Path | None) -> Page:
    """The verdict and the table of a workflow, its figure, what it was computed from, and how."""
    workflow = str(result.attrs["workflow"])
    page = Page(workflow.replace("_", " ").capitalize(), heading_of(result.attrs))
    table = summary(result).splitlines()
    page.verdict(bool(result.attrs["trusted"]), str(result.attrs.get("why", "")) or table[-1].capitalize() + ".")
    page.section("Numbers")
    page.lines("\n".join(table))
    if workflow in RESULTS:
        page.section("Figure")
        page.figure(draw(result), f"{workflow.replace('_', ' ').capitalize()} of {heading_of(result.attrs)}.")
    page.section("Diagnostics")
    _groups_of_point(page, result)
    _runs(page, path)
    _provenance(page, result.attrs)
    return page


def _groups_of_point(page: Page, result: xr.Dataset) -> None:
    """Every group of chains of a coexistence point by itself."""
    coupling = result.attrs.get("coupling")
    if "crossings" not in result or f"{coupling}_group" not in result or result["crossings"].dims != ("group",):
        return
    value, error = float(result[str(coupling)]), float(result[f"{coupling}_err"])
    alone = result[f"{coupling}_group"].values
    page.text(
        f"All chains are independent, and errors are a jackknife over them.  One group alone gives {coupling} between "
        f"{np.nanmin(alone):.6g} and {np.nanmax(alone):.6g}, all together {value:.6g} +- {error:.2g}.  The pilot ladder "
        f"alone gave {float(result[f'{coupling}_pilot']):.6g} +- {float(result[f'{coupling}_pilot_err']):.2g}."
    )
    page.columns(
        ("group", f"{coupling} of it alone", "crossings between the phases", "meetings with the prior"),
        [
            (number, f"{own:.6g}", int(crossed), f"{met:.3g}")
            for number, (own, crossed, met) in enumerate(
                zip(alone, result["crossings"].values, result["meetings"].values, strict=True)
            )
        ],
    )


def _runs(page: Page, path: Path | None) -> None:
    """The ladders and walks that a study kept beside its result."""
    folder = None if path is None else path.with_suffix(FOLDER)
    files = sorted(folder.rglob("*.nc")) if folder is not None and folder.is_dir() else []
    if not files:
        page.text("The ladders and walks of this study are not beside its file, so they are not shown.")
        return
    walks: dict[str, list[qp.Walk]] = {}
    for file in files:
        try:
            found = qp.load(file)
        except ValueError:  # a result of a part of the study
            continue
        place = "" if file.parent == folder else f"{file.parent.stem}, "
        if isinstance(found, qp.Ladder):
            page.section(f"Ladder {place}{file.stem}")
            page.lines(found.report(), wrapped=True)
            page.figure(found.plot(), f"Levels, volumes and acceptance of {file.name}, and P(E) at beta = 1.")
            _levels(page, found)
        else:
            walks.setdefault(place + file.stem.split("_", 1)[-1], []).append(found)
    for name, parts in walks.items():
        page.section(f"Walk {name}: {len(parts)} parts")
        page.figure(parts[-1].plot(), "The last part: energies of the first group, acceptance of every group, P(E).")
        _groups(page, parts)


def _levels(page: Page, ladder: qp.Ladder) -> None:
    """How much particles remember from level to level."""
    if "correlation" not in ladder.levels:
        return
    correlation = ladder.levels["correlation"]
    page.text("Correlation of every quantity before and after the mutation of a level; near one, particles lag behind.")
    page.columns(
        ("quantity", "mean", "largest, of the mean over replicas"),
        [
            (str(name), f"{float(one.mean()):.2f}", f"{float(one.mean('replica').max()):.2f}")
            for name in ladder.levels["quantity"].values
            for one in [correlation.sel(quantity=name)]
        ],
    )


def _groups(page: Page, walks: list[qp.Walk]) -> None:
    """Acceptance, autocorrelation and round trips of every group of chains, over all parts."""
    energy = np.concatenate([walk.energy for walk in walks], axis=1)
    low, high = np.quantile(energy, (0.001, 0.999))
    inner = low + NEAR_THE_ENDS * (high - low), high - NEAR_THE_ENDS * (high - low)
    trips = crossings(walks, "energy", inner)
    has_acceptance = all("acceptance" in walk.data for walk in walks)
    acceptance = np.mean([walk.data["acceptance"].values for walk in walks], axis=0) if has_acceptance else None
    rows = []
    for number, group in enumerate(energy):
        tau = integrated_time(group)
        accepted = "" if acceptance is None else f"{acceptance[number]:.2f}"
        rows.append((number, accepted, f"{tau:.3g}", f"{group.size / tau:.3g}", f"{trips[number] / 2:.3g}"))
    head = ("group", "acceptance", "autocorrelation time of U (sweeps)", "independent samples", "round trips in U")
    page.columns(head, rows)


def _provenance(page: Page, attrs: Mapping[Any, Any]) -> None:
    """Every setting, the versions, the time, and what repeats it."""
    page.section("Model")
    page.table({name: _flat(attrs[name]) for name in ("problem", "parameters", "couplings", "phases") if name in attrs})
    page.section("Settings")
    page.table({name: _flat(value) for name, value in json.loads(attrs.get("settings", "{}")).items()})
    page.section("Made")
    own = {str(name): _flat(value) for name, value in attrs.items() if name not in SHOWN_ELSEWHERE and name != "command"}
    page.table(own | {"versions": _flat(attrs.get("versions", "{}"))})
    if attrs.get("command"):
        page.section("To repeat it")
        page.lines(str(attrs["command"]), wrapped=True)


def _flat(value: Any) -> str:
    """A setting in words: lists and dicts without their brackets."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(part)}" for name, part in value.items())
    if isinstance(value, list):
        return " ".join(_flat(part) for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
