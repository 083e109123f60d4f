"""A walk: samples of multicanonical chains, in groups that share nothing but the weight.

The dataset (dims in brackets):

    [group, sweep, chain]  energy (U), every observable, log_w (log of the weight w at U)
    [group, draw]          prior_log_w: log w at exact draws from the prior, which put Z on an absolute scale
    [group, chain, *dims]  last: the configurations after the last sweep
    [group]                acceptance, step_size;  [group, coordinate]  scale
    [node]                 weight_energy, weight_log: ascending energies and log w there

Attributes are those of every run, see `quenchphys.run`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from quenchphys.run import Run

OWN_VARIABLES = frozenset(
    {"energy", "log_w", "prior_log_w", "last", "acceptance", "step_size", "scale", "weight_energy", "weight_log"}
)


@dataclass(frozen=True)
class Walk(Run):
    """What multicanonical chains sampled.  All data are in `data`; the properties are shorter names for its parts."""

    data: xr.Dataset

    @property
    def attrs(self) -> Mapping[Any, Any]:
        return self.data.attrs

    @property
    def observables(self) -> list[str]:
        return [str(name) for name in self.data.data_vars if name not in OWN_VARIABLES]

    @property
    def energy(self) -> np.ndarray:
        """U of every sample, (group, sweep, chain)."""
        return self.data["energy"].values

    @property
    def last(self) -> np.ndarray:
        """Configurations after the last sweep, (group, chain, ...)."""
        return self.data["last"].values

    @property
    def weight(self) -> tuple[np.ndarray, np.ndarray]:
        """Ascending energies, and log w there."""
        return self.data["weight_energy"].values, self.data["weight_log"].values

    def restarted(self, configurations: np.ndarray) -> Walk:
        """The same walk, to be continued from other configurations (group, chain, ...)."""
        return Walk(self.data.assign(last=(self.data["last"].dims, configurations, self.data["last"].attrs)))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one netCDF-4 file, all or nothing; an existing file stays unless `overwrite` is set."""
        from quenchphys.storage.netcdf import write_netcdf

        return write_netcdf(self.data, path, overwrite=overwrite)


def joined(walks: Sequence[Walk]) -> Walk:
    """Successive parts of one walk as a single one; what is not a sample is that of the last part."""
    samples = [name for name, variable in walks[-1].data.data_vars.items() if "sweep" in variable.dims]
    parts = {str(name): xr.concat([walk.data[name] for walk in walks], dim="sweep") for name in samples}
    parts["prior_log_w"] = xr.concat([walk.data["prior_log_w"] for walk in walks], dim="draw")
    rest = walks[-1].data.drop_dims(["sweep", "draw"])
    gradients = sum(float(walk.attrs["gradients"]) for walk in walks)
    undefined = max(float(walk.attrs["undefined"]) for walk in walks)
    seconds = sum(float(walk.attrs["wall_time"]) for walk in walks)
    return Walk(rest.assign(parts).assign_attrs(gradients=gradients, undefined=undefined, wall_time=seconds))
