"""The walk: samples of multicanonical or canonical chains, in groups that share nothing but the weight."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from quenchphys.console.presentation import described
from quenchphys.run import Run
from quenchphys.storage.netcdf import json_fault, plain_attributes, read_netcdf, write_netcdf
from quenchphys.storage.schema import WALK, WALK_FORMAT, first_fault, labelled

OWN_VARIABLES = frozenset(row.name for row in WALK)


@dataclass(frozen=True, repr=False)
class Walk(Run):
    """What multicanonical or canonical chains sampled; `quenchphys.multicanonical` and `quenchphys.canonical` return one.

    All data are in `data`; the properties are shorter names for its parts.  Its attributes are those of every run, see
    `Run`.  The variables, with the dimensions in brackets:

        [group, sweep, chain]
          energy        energy U of the sample (nats)
          <observable>  each observable of the sample
          log_w         log of the multicanonical weight w at the energy of the sample
        [group, draw]
          prior_log_w   log w at exact draws from the prior, the absolute scale of Z
        [group, chain, ...]
          last          configuration after the last sweep
        [group]
          acceptance    mean acceptance probability (optional)
          step_size     step size, in units of the scale of a coordinate
        [group, coordinate]
          scale         scale of each sampled coordinate
        [node]
          weight_energy ascending energies at which the weight is given (nats)
          weight_log    log w at these energies

    Parameters
    ----------
    data
        The variables above.  `Walk.load` and `quenchphys.load` make a walk of a file.

    Examples
    --------
    >>> walk = qp.load("walk.nc")
    >>> walk.energy.shape  # groups, sweeps, chains
    (16, 512, 8)
    >>> energy, log_w = walk.weight
    """

    data: xr.Dataset

    @property
    def attrs(self) -> Mapping[Any, Any]:
        """Attributes of the dataset: problem, couplings, phases, settings, seed, gradients, ..."""
        return self.data.attrs

    @property
    def method(self) -> str:
        """How it was made: "multicanonical" or "canonical"."""
        return str(self.attrs.get("method", "multicanonical"))

    @property
    def observables(self) -> list[str]:
        """Names of the recorded observables."""
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
        """A walk without samples, to be continued from other configurations (group, chain, ...).

        Step size, scale and weight are kept.  The samples are not: the last of them are no longer those of the last
        configurations, and draws from such a walk would have the weights of others.
        """
        none = self.data.isel(sweep=slice(0, 0), draw=slice(0, 0))
        return Walk(none.assign(last=(none["last"].dims, configurations, none["last"].attrs)))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one netCDF-4 file, all or nothing.

        Parameters
        ----------
        path
            Where the file goes; its folder must exist.
        overwrite
            Replace a file that is there; without it such a file is kept and the call refused.

        Returns
        -------
        Path
            The path of the file.

        Examples
        --------
        >>> walk.save("walk.nc")
        PosixPath('walk.nc')
        """
        data = labelled(self.data, WALK)
        data.attrs = plain_attributes(self.data.attrs) | {"format": WALK_FORMAT}
        return write_netcdf(data, path, overwrite=overwrite)

    def __repr__(self) -> str:
        groups, sweeps, chains = self.energy.shape
        facts = {
            "size": f"{groups} groups of {chains} chains, {sweeps} sweeps",
            "energy": f"{self.energy.min():.6g} to {self.energy.max():.6g}" if sweeps else "the chains have not moved yet",
            "recorded": ", ".join(["energy", *self.observables]),
            "made": self._made(),
        }
        return described(facts, f"Walk: {self.method} chains of {self.problem}")

    def report(self, beta: float = 1.0) -> str:
        """In words: what was sampled, by how many chains, how well they moved, and what log Z is.

        Parameters
        ----------
        beta
            Inverse temperature of log Z.

        Returns
        -------
        str
            A few lines; one for chains that have not moved.

        Examples
        --------
        >>> print(walk.report())
        """
        groups, sweeps, chains = self.energy.shape
        if sweeps == 0:
            return f"walk of {self.problem}: {groups} groups of {chains} {self.method} chains that have not moved yet"
        acceptance = f", acceptance {float(self.data['acceptance'].mean()):.2f}" if "acceptance" in self.data else ""
        undefined = float(self.attrs.get("undefined", 0.0))
        own = "\n".join(
            [
                f"walk of {self.problem}: {groups} groups of {chains} {self.method} chains, {sweeps} sweeps{acceptance}",
                f"energies from {self.energy.min():.6g} to {self.energy.max():.6g}, the weight is given from "
                f"{self.weight[0][0]:.6g} to {self.weight[0][-1]:.6g}",
                "the energy was defined for every move" if not undefined else
                f"NOT TO BE TRUSTED: the energy was undefined (NaN) for {undefined:.2g} of the moves",
            ]
        )
        return self._with_findings(own, beta)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Walk:
        """Read a walk into memory, and refuse any other file.

        Parameters
        ----------
        path
            A file that `save` wrote.

        Returns
        -------
        Walk
            The walk as it was.

        Examples
        --------
        >>> qp.Walk.load("walk.nc").observables
        ['q', 'm']
        """
        return cls.of_file(read_netcdf(path, "walk"), path)

    @classmethod
    def of_file(cls, tree: xr.DataTree, path: str | os.PathLike[str]) -> Walk:
        """The walk in a tree that was read from `path`; a tree that is none is refused in one sentence."""
        data = tree.to_dataset()
        if fault := fault_of(data):
            raise ValueError(f"{path} does not hold a walk: {fault}.")
        return cls(data)


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


def fault_of(data: xr.Dataset) -> str | None:
    """The first thing that a dataset lacks to be a walk, in words."""
    if data.attrs.get("format") != WALK_FORMAT:
        return f"its format is {data.attrs.get('format', 'not given')!r}, not {WALK_FORMAT!r}"
    given = tuple(name for name in ("parameters", "couplings", "phases", "settings") if name in data.attrs)
    return json_fault(data.attrs, given) or first_fault(data, WALK, "walk")
