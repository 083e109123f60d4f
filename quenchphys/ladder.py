"""What a run leaves behind: the `Ladder`, a tree of labelled datasets, and the `Outcome` that says what to make of it.

The tree (dims in brackets; replicas that ended earlier are padded with NaN in float variables, -1 in integer ones):

    /                attributes: method, softness, seed, settings, problem, couplings, phases, versions, outcome, ...
    levels           [replica, level]  energy (E_k, a quench) or beta (a tempered ladder), log_volume (log G_k),
                     acceptance, step_size, ess (of the carried weights, as a fraction of the particles),
                     lineages (distinct ancestors at level 0), resampled, gradients (per particle);
                     [replica]  level_count
    particles        [replica, level, particle]  energy (U), log_weight (log w, sum w = 1 in a level), parent (index of
                     the particle at the level before), and one variable for each observable of the problem
    prior            [replica, draw]  energy (U) and the observables of the exact prior draws
    configurations   [replica, sample, *dims]  field; [replica, sample]  level, particle: which particle it is

A population is recorded after its mutation, with the weights it carries at that level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from quenchphys.outcome import Outcome
from quenchphys.run import Run


@dataclass(frozen=True)
class Ladder(Run):
    """A finished run.  All data are in `tree`; the properties are shorter names for its parts."""

    tree: xr.DataTree

    @property
    def levels(self) -> xr.Dataset:
        return self.tree["levels"].dataset

    @property
    def particles(self) -> xr.Dataset:
        return self.tree["particles"].dataset

    @property
    def prior(self) -> xr.Dataset:
        return self.tree["prior"].dataset

    @property
    def configurations(self) -> xr.Dataset:
        return self.tree["configurations"].dataset

    @property
    def attrs(self) -> Mapping[Any, Any]:
        return self.tree.attrs

    @property
    def method(self) -> str:
        """ "quench" or "temper"."""
        return self.attrs["method"]

    @property
    def softness(self) -> float:
        """nu of a quenched ladder."""
        return float(self.attrs["softness"])

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.attrs["outcome"])

    @property
    def observables(self) -> list[str]:
        """Names of the recorded observables."""
        return [str(v) for v in self.prior.data_vars if v != "energy"]

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write one netCDF-4 file, all or nothing; an existing file stays unless `overwrite` is set."""
        from quenchphys.storage.netcdf import save

        return save(self, path, overwrite=overwrite)

    def report(self) -> str:
        """In words: how the ladder ended, and why it can or cannot be trusted."""
        from quenchphys.console.report import report

        return report(self)
