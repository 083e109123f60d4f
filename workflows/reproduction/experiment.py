"""An experiment of the paper: its name, what it shows, its settings at each effort, its run and its figure."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from workflows.budget import Use, seed_of
from workflows.store import Study

if TYPE_CHECKING:  # matplotlib takes a second to import, and a table needs none of it
    from matplotlib.figure import Figure


class Effort(StrEnum):
    """How much is sampled."""

    QUICK = "quick"
    """Minutes: few particles, small dimensions."""
    STANDARD = "standard"
    """Within an hour on two cores."""
    PAPER = "paper"
    """The settings of the paper: its particles, steps and seeds."""


@dataclass(frozen=True)
class Bench:
    """What an experiment works with: its settings, and the study that keeps its parts."""

    study: Study
    settings: Mapping[str, Any]
    seed: int
    data: Path | None = None
    """Folder of data sets, if one was given."""

    def seed_of(self, name: str) -> int:
        """The seed of a part; it depends on the name alone, so that another part beside it changes nothing."""
        return seed_of(self.seed, Use.REPRODUCTION, zlib.crc32(name.encode()))

    def part(self, name: str, make: Callable[[int, Path | None], xr.Dataset], problem: Any = None) -> xr.Dataset:
        """A part of the table, kept as soon as it is made: `make(seed, checkpoint)`, not called if it was kept before.

        Parameters
        ----------
        name
            Of the part, and of its file.
        make
            Is given the seed of the part, and the folder for the checkpoint of its ladder (None: nothing is kept).
        problem
            What is sampled; a kept part of another problem is refused.
        """
        seed = self.seed_of(name)
        return self.study.part(name, name.replace("_", " "), lambda checkpoint: make(seed, checkpoint), problem)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    label: str
    """Its LaTeX label in the paper."""
    shows: str
    """What one learns from it, in a sentence without a full stop."""
    settings: Mapping[Effort, Mapping[str, Any]]
    """Plain numbers, strings, lists and dicts for each effort; they are part of the request."""
    minutes: Mapping[Effort, float]
    """How long it takes on two cores; where it was not run to the end, an estimate from the gradients it needs."""
    run: Callable[[Bench], xr.Dataset]
    """The table, see `workflows.reproduction.table.collect`, with whatever the figure needs beside it."""
    figure: Callable[[xr.Dataset], Figure]
    """The figure, drawn from the result alone."""
    needs: str = "nothing"
    """What must be installed or given, for --list."""
    data: tuple[str, ...] = field(default=())
    """Files that must be in the folder of data sets."""
    data_required: bool = False
    """Whether it refuses to run without them."""
