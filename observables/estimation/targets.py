"""Targets: the grid of inverse temperatures and couplings at which an answer is wanted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from observables.samples.base import Samples
from observables.samples.pool import Pool

Array = np.ndarray


@dataclass(frozen=True)
class Targets:
    """A grid of targets: beta and couplings, each a number or a one-dimensional array."""

    axes: Mapping[str, Array]  # beta and every coupling given, with its values, in order
    dims: tuple[str, ...]  # those given as arrays
    rest: Mapping[str, float]  # all other couplings, at the values of the first run
    bias: Callable[[Array], Array] | None = None  # an additional factor exp(bias(U')), such as one that flattens P(U')

    @staticmethod
    def grid(pool: Pool, beta: Any, couplings: Mapping[str, Any]) -> Targets:
        for name in couplings:
            if name not in pool.couplings:
                known = ", ".join(pool.couplings) or "none"
                raise ValueError(f"{pool.run.problem} has no coupling {name!r}; its couplings are: {known}.")
        given = {"beta": beta} | dict(couplings)
        axes = {}
        for name, value in given.items():
            values = np.asarray(value, float)
            if values.ndim > 1 or not np.all(np.isfinite(values)) or values.size == 0:
                raise ValueError(f"{name} must be a finite number or a list of them, but {value!r} was given.")
            axes[name] = np.atleast_1d(values)
        if np.any(axes["beta"] < 0):
            raise ValueError(f"beta must not be negative, but {axes['beta'].min():g} was given.")
        for name, (old, observable, _) in pool.couplings.items():
            if name in couplings and np.any(axes[name] != old):
                pool.check_defined(observable, f"give energies at another {name}")
        rest = {name: value for name, (value, _, _) in pool.couplings.items() if name not in couplings}
        return Targets(axes, tuple(name for name, value in given.items() if np.ndim(value) == 1), rest)

    @staticmethod
    def single(pool: Pool, beta: Any, couplings: Mapping[str, Any], what: str) -> Targets:
        """One target; `what` begins the sentence that refuses more."""
        targets = Targets.grid(pool, beta, couplings)
        if targets.dims:
            raise ValueError(f"{what} one target: {targets.dims[0]} must be a single number.")
        return targets

    @property
    def points(self) -> list[dict[str, float]]:
        """One {axis: value} for each target; the last axis runs fastest."""
        return [dict(zip(self.axes, point, strict=True)) for point in itertools.product(*self.axes.values())]

    def along(self, samples: Samples) -> Iterator[tuple[list[int], Array]]:
        """(targets that differ in beta alone, U' of the samples there), for every set of couplings."""
        groups: dict[tuple[tuple[str, float], ...], list[int]] = {}
        for t, point in enumerate(self.points):
            couplings = {name: value for name, value in point.items() if name != "beta"} | dict(self.rest)
            groups.setdefault(tuple(couplings.items()), []).append(t)
        for couplings_here, some in groups.items():
            energy = samples.energy_at(dict(couplings_here))
            energy[~np.isfinite(energy)] = 0.0  # such a sample has no weight; its energy must not spoil the sums
            yield some, energy

    def log_t(self, energy: Array, beta: Array | float) -> Array:
        log_t = -beta * energy
        return log_t if self.bias is None else log_t + self.bias(energy)

    @property
    def coords(self) -> dict[str, Any]:
        return {name: (values if name in self.dims else values[0]) for name, values in self.axes.items()}

    def array(self, flat: Array, extra: Sequence[str] = ()) -> xr.Variable:
        """Values over all points, (T, ...), on the axes given as arrays."""
        shape = tuple(len(self.axes[name]) for name in self.dims)
        return xr.Variable((*self.dims, *extra), np.asarray(flat).reshape((*shape, *np.shape(flat)[1:])))
