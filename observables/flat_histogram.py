"""Densities that span hundreds of nats: histograms over energy of a target flattened beforehand.

A fine histogram of all samples gives the rough shape h(E) of the density, to a few percent a bin and without errors.  The
target t(E)/h(E) is then nearly flat: all bins have nearly the same weight, and what is left of the density over h is
constant within a bin, however steep the density is.  Values and errors come from that.

What is reported is the average of log density over the bin, log(sum W/h) + average of log h, in which the noise of h
cancels; at a point it would not.  h is smoothed, because a histogram divided by itself is one: the logarithms would then
be averaged fine bin by fine bin, each with the bias of its few samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import cumulative_trapezoid

from observables.estimation.errors import Answer, Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.targets import Targets
from observables.histogram import bins_of, edges_for
from observables.peaks import smoothed
from observables.samples.pool import Pool

Array = np.ndarray

OUTSIDE = 5e-4  # of the samples at either end are left out: too few for a bin
SAMPLES_PER_FINE_BIN = 100
FINE_BINS = (60, 4000)  # at least and at most
ENOUGH = 10  # samples a fine bin has at least
FLATTENED_OVER = 21  # fine bins
EXAMINED = 200_000  # energies from which edges are chosen


@dataclass(frozen=True)
class Shape:
    """A fine histogram of the density of U' for one target: log of sum W per unit energy."""

    edges: Array
    log_density: Array

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        """Energies and log h, which is linear in between."""
        return self.centres, smoothed(self.log_density, FLATTENED_OVER)

    def log_h(self, energy: Array) -> Array:
        return np.interp(energy, *self.nodes)

    def averages(self, edges: Array) -> Array:
        """Of log h, over every bin."""
        energy = np.union1d(self.centres, edges)
        integral = cumulative_trapezoid(self.log_h(energy), energy, initial=0)
        return np.diff(integral[np.searchsorted(energy, edges)]) / np.diff(edges)

    @property
    def centres(self) -> Array:
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    @staticmethod
    def of(pool: Pool, targets: Targets) -> Shape:
        samples = sum(one.energy.size for one in pool.samples)
        count = int(np.clip(samples // SAMPLES_PER_FINE_BIN, *FINE_BINS))
        edges = edges_by_samples(pool, targets, count)
        log_sum, number = _log_sums(pool, targets, edges)
        first = _merged(number)
        if len(first) < 6:
            raise ValueError(f"There are too few samples ({samples}) for a distribution of energies.")
        log_sum, edges = np.logaddexp.reduceat(log_sum, first), np.append(edges[first], edges[-1])
        return Shape(edges, log_sum - np.log(np.diff(edges)))


def _merged(number: Array) -> Array:
    """The first bins of groups of neighbours that together have ENOUGH samples; what is left over joins the last."""
    first, gathered = [0], 0.0
    for i, samples in enumerate(number):
        if gathered >= ENOUGH and number[i:].sum() >= ENOUGH:
            first.append(i)
            gathered = 0.0
        gathered += samples
    return np.array(first)


class FlatHistogram:
    """A density over bins of energy, with errors.

    absolute: whether the density is in absolute terms, as g(E), or will be normalised, as P(E).
    """

    def __init__(
        self, pool: Pool, targets: Targets, shape: Shape, edges: Array, errors: str, *, absolute: bool = False
    ):
        self.edges, self.centres = edges, 0.5 * (edges[1:] + edges[:-1])
        self.shape = shape
        flat = Targets(targets.axes, targets.dims, targets.rest, self._flatten)
        found = estimate(pool, flat, lambda samples, energy: bins_of(energy, edges), check=False)
        if not np.isfinite(found.log_z).all():
            raise ValueError("There are no samples between the bin edges given.")
        self.uncertain = Uncertain(replace(found, absolute=absolute), errors)
        self.ess = _bin_ess(pool, flat, edges)

    def _flatten(self, energy: Array) -> Array:
        inside = (energy >= self.edges[0]) & (energy < self.edges[-1])
        return np.where(inside, -self.shape.log_h(energy), -np.inf)

    def of(self, function: Callable[[Array], Array]) -> Answer:
        """A function of the log density (T, bins), averaged over each bin, with its error."""
        offset = np.log(np.diff(self.edges)) - self.shape.averages(self.edges)
        return self.uncertain.of(lambda log_z, mean: function(np.log(mean) + log_z[:, None] - offset))

    def label(self, result: xr.Dataset) -> xr.Dataset:
        words = {"long_name": "effective samples of the bin", "units": "1"}
        return result.assign(bin_ess=("energy", self.ess, words)).assign_coords(
            energy=("energy", self.centres, {"long_name": "energy", "units": "nats"}),
            energy_width=("energy", np.diff(self.edges), {"long_name": "width of the bin", "units": "nats"}),
        )


def edges_by_samples(pool: Pool, targets: Targets, bins: Any) -> Array:
    """Edges as given, or at equal steps of the mean of two distribution functions: of the samples, and the uniform one.

    A ladder has equally many samples in every nat of log g, so its samples resolve the density where it is steep; but
    they alone would leave the top of the ladder, which few levels cross, with a handful of bins.
    """
    if np.ndim(bins) == 1:
        return edges_for(np.empty(0), np.empty(0), bins)
    checked = len(edges_for(np.array([0.0, 1.0]), np.zeros(2), bins))
    energies = np.concatenate([energy[np.isfinite(base)] for energy, base in _energies(pool, targets, EXAMINED)])
    energies = np.sort(energies)
    energies = energies[int(OUTSIDE * len(energies)) : int((1 - OUTSIDE) * len(energies)) + 1]
    if energies[0] == energies[-1]:
        raise ValueError("All energies are the same, so there is no distribution of energies.")
    steps = 0.5 * np.linspace(0, 1, len(energies)) + 0.5 * (energies - energies[0]) / (energies[-1] - energies[0])
    return np.unique(np.interp(np.linspace(0, 1, checked), steps, energies))


def _energies(pool: Pool, targets: Targets, at_most: int | None = None) -> Iterator[tuple[Array, Array]]:
    """U' and base weights of all samples, or of some of them at equal distances."""
    every = 1
    if at_most is not None:
        every = max(1, sum(samples.energy.size for samples in pool.samples) // at_most)
    for samples, base in pool.weighted:
        ((_, energy),) = targets.along(samples)
        yield energy[::every], base[::every]


def _log_sums(pool: Pool, targets: Targets, edges: Array) -> tuple[Array, Array]:
    """log of the sum of all weights in every bin, and the number of samples with weight."""
    beta = targets.points[0]["beta"]
    total, number = np.full(len(edges) - 1, -np.inf), np.zeros(len(edges) - 1)
    for energy, base in _energies(pool, targets):
        index = bins_of(energy, edges).index
        some = np.flatnonzero((index >= 0) & np.isfinite(base))
        index, log_w = index[some], base[some] + targets.log_t(energy[some], beta)
        scale = np.full(len(total), -np.inf)
        np.maximum.at(scale, index, log_w)
        scaled = np.bincount(index, np.exp(log_w - scale[index]), minlength=len(total))
        number += np.bincount(index, minlength=len(total))
        with np.errstate(divide="ignore"):
            total = np.logaddexp(total, np.where(scaled > 0, scale + np.log(scaled), -np.inf))
    return total, number


def _bin_ess(pool: Pool, targets: Targets, edges: Array) -> Array:
    """Effective samples of every bin, (sum W)^2 / sum W^2 within it."""
    beta = targets.points[0]["beta"]
    first, second = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for energy, base in _energies(pool, targets):
        index = bins_of(energy, edges).index
        some = np.flatnonzero(index >= 0)
        log_w = base[some] + targets.log_t(energy[some], beta)
        weight = np.exp(log_w)  # of order one: the target is flat
        first += np.bincount(index[some], weight, minlength=len(first))
        second += np.bincount(index[some], weight**2, minlength=len(first))
    return np.divide(first**2, second, out=np.zeros_like(first), where=second > 0)
