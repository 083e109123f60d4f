"""The ladder: what a quenched, tempered or nested run leaves behind, as a tree of labelled datasets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from quenchphys.console.report import describe
from quenchphys.outcome import Outcome
from quenchphys.run import Run
from quenchphys.storage.netcdf import json_fault, plain_attributes, read_netcdf, write_netcdf
from quenchphys.storage.schema import LADDER, LADDER_FORMAT, LADDER_GROUPS, METHODS, TEMPERED, first_fault, labelled


@dataclass(frozen=True)
class Ladder(Run):
    """A finished run of `quench`, `temper`, `nested` or `bridge`: a tree of datasets, and an outcome to judge it by.

    All data are in `tree`; the properties are shorter names for its parts.  A population is recorded after its mutation,
    with the weights it carries at that level.  Replicas that ended earlier are padded: NaN in floating-point variables,
    -1 in integers.  The root has attributes: method, softness, seed, settings, problem, couplings, phases, versions,
    outcome and others.  The groups and their variables, with the dimensions in brackets:

        levels  [replica, level]
          energy        level energy E: density prior * (E - U)_+^softness (nats, not temper)
          beta          inverse temperature: density prior * exp(-beta U) (temper only)
          log_volume    log of the volume G of the level, the prior average of its factor
          log_volume_errspread of log G by order statistics (nested only)
          acceptance    mean acceptance probability (optional)
          step_size     step size, in units of the scale of a coordinate (optional)
          displacement  root mean square move of a coordinate, in its scale (optional)
          ess           effective sample size, as a fraction of the particles (optional)
          lineages      number of distinct ancestors at level 0 (optional)
          resampled     whether the level began with a resampling (optional)
          undefined     share of proposals with undefined (NaN) energy (optional)
          transitions   transitions of the kernel at the level (optional)
          evaluations   energies computed at the level (nested only)
        levels  [replica]
          level_count   number of levels of the replica (optional)
        levels  [replica, level, quantity]
          correlation   correlation of a quantity before and after the mutation of the level (optional)
        levels  [quantity]
          quantity      names of these quantities (optional)
        particles  [replica, level, particle]
          energy        energy U of the particle (nats)
          log_weight    log of the carried weight; weights of a level add up to one
          parent        parent at the level before; at level 0, the prior draw (nested: its start) (optional)
          <observable>  each observable of the particle
        prior  [replica, draw]
          energy        energy U of the prior draw (nats)
          <observable>  each observable of the prior draw
        configurations  [replica, sample, ...]
          field         configuration, drawn by weight from its level
        configurations  [replica, sample]
          level         level of the configuration; -1: a prior draw, or none
          particle      index of its particle in the level, or of the prior draw; -1: none

    Kept configurations of a level were drawn by weight, so they are equally weighted samples of its density, whatever the
    log_weight of their particles.  Those with level -1 and particle >= 0 are exact draws from the prior; a replica that
    ended before the level of a sample has level -1 and particle -1 there.

    Parameters
    ----------
    tree
        The groups above.  `Ladder.load` and `quenchphys.load` make a ladder of a file.

    Examples
    --------
    >>> ladder = qp.quench(qp.targets.gaussian(8), particles=200)
    >>> ladder.outcome
    <Outcome.CONVERGED: 'converged'>
    >>> ladder.levels["log_volume"].dims
    ('replica', 'level')
    >>> ladder.save("gaussian.nc")
    PosixPath('gaussian.nc')
    """

    tree: xr.DataTree

    @property
    def levels(self) -> xr.Dataset:
        """What is known of every level."""
        return self.tree["levels"].dataset

    @property
    def particles(self) -> xr.Dataset:
        """The populations of all levels."""
        return self.tree["particles"].dataset

    @property
    def prior(self) -> xr.Dataset:
        """The exact draws from the prior."""
        return self.tree["prior"].dataset

    @property
    def configurations(self) -> xr.Dataset:
        """Configurations: some of the prior draws, and particles evenly spread over the levels."""
        return self.tree["configurations"].dataset

    @property
    def attrs(self) -> Mapping[Any, Any]:
        """Attributes of the root: method, outcome, problem, couplings, phases, settings, seed, versions, ..."""
        return self.tree.attrs

    @property
    def method(self) -> str:
        """How it was made: "quench", "temper", "nested" or "bridge"."""
        return self.attrs["method"]

    @property
    def tempered(self) -> bool:
        """Whether its levels are inverse temperatures, and not energies."""
        return self.method in TEMPERED

    @property
    def softness(self) -> float:
        """nu of a quenched ladder, 0 of a nested one; NaN for a tempered one."""
        return float(self.attrs["softness"])

    @property
    def outcome(self) -> Outcome:
        """How the ladder ended; `outcome.trusted` says whether its results can be used."""
        return Outcome(self.attrs["outcome"])

    @property
    def observables(self) -> list[str]:
        """Names of the recorded observables."""
        return [str(name) for name in self.prior.data_vars if name != "energy"]

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
        >>> ladder.save("phi6.nc", overwrite=True)
        PosixPath('phi6.nc')
        """
        return write_netcdf(described(self.tree), path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ladder:
        """Read a ladder into memory, and refuse any other file.

        Parameters
        ----------
        path
            A file that `save` wrote.

        Returns
        -------
        Ladder
            The ladder as it was.

        Examples
        --------
        >>> qp.Ladder.load("phi6.nc").method
        'quench'
        """
        return cls.of_file(read_netcdf(path, "ladder"), path)

    @classmethod
    def of_file(cls, tree: xr.DataTree, path: str | os.PathLike[str]) -> Ladder:
        """The ladder in a tree that was read from `path`; a tree that is none is refused in one sentence."""
        if fault := fault_of(tree):
            raise ValueError(f"{path} does not hold a ladder: {fault}.")
        return cls(tree)

    def report(self) -> str:
        """Say in words how the ladder ended, and why it can or cannot be trusted.

        Returns
        -------
        str
            A few lines: outcome, size, acceptance, ancestors, every doubt, and what was checked and what cannot be: a mode
            that no prior draw and no particle came near and that nobody named as a phase.

        Examples
        --------
        >>> print(ladder.report().splitlines()[0])
        quench of gaussian: converged (can be trusted)
        """
        return describe(self)


def described(tree: xr.DataTree) -> xr.DataTree:
    """The tree with long names and units everywhere, and attributes that netCDF can hold."""
    tree = tree.copy()
    tree.attrs = plain_attributes(tree.attrs) | {"format": LADDER_FORMAT}
    for group in tree.children:
        tree[group].dataset = labelled(tree[group].to_dataset(), LADDER, group)
    return tree


def fault_of(tree: xr.DataTree) -> str | None:
    """The first thing that a tree lacks to be a ladder, in words."""
    missing = [group for group in LADDER_GROUPS if group not in tree.children]
    if missing:
        return f"it has no group {missing[0]!r}"
    for name in ("method", "softness", "outcome"):
        if name not in tree.attrs:
            return f"its attribute {name!r} is missing"
    method, outcome = tree.attrs["method"], tree.attrs["outcome"]
    if method not in METHODS:
        return f"its method is {method!r}, and not one of {', '.join(map(repr, METHODS))}"
    if outcome not in [known.value for known in Outcome]:
        return f"its outcome {outcome!r} is unknown"
    if fault := json_fault(tree.attrs, ("settings", "couplings", "phases")):
        return fault
    faults = (first_fault(tree[group].to_dataset(), LADDER, method, group) for group in LADDER_GROUPS)
    return next((fault for fault in faults if fault), None)
