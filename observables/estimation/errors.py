"""Standard errors: the jackknife over independent blocks, or the genealogy of a ladder where blocks are too few."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from observables.estimation.estimator import Estimate
from observables.estimation.genealogy import covariance

Array = np.ndarray
Function = Callable[[Array, Array], Array]  # (log_z (T,), mean (T, m)) -> (T, ...)

# The scatter of four blocks is below half of the error in one case of seven, that of eight in one of forty.
JACKKNIFE_BLOCKS = 8


class Answer(NamedTuple):
    """A value and its standard error."""

    value: Array
    error: Array


class Uncertain:
    """Functions of an estimate with their errors.

    errors: "replicas" (jackknife), "genealogy", or "auto": the first where there are at least eight independent blocks, and
    for walks, which have no genealogy.
    """

    def __init__(self, found: Estimate, errors: str = "auto"):
        blocks = len(found.log_z)
        if errors not in ("auto", "replicas", "genealogy"):
            raise ValueError(f"errors must be 'auto', 'replicas' or 'genealogy', but {errors!r} was given.")
        if errors == "genealogy" and not found.pool.of_ladders:
            raise TypeError("Errors from the genealogy need ladders: chains have no ancestors; choose errors='replicas'.")
        if errors == "auto":
            errors = "replicas" if blocks >= JACKKNIFE_BLOCKS or not found.pool.of_ladders else "genealogy"
        if errors == "replicas" and blocks < 2:
            what = "replicas" if found.pool.of_ladders else "groups of chains"
            raise ValueError(f"Errors from {what} need at least 2 independent ones, but there is {blocks}.")
        self.found = found
        self.method = errors
        self._covariance = covariance(found) if self.method == "genealogy" else None

    def of(self, function: Function) -> Answer:
        """A function of log Z (T,) and the means (T, m), with its error."""
        log_z, mean = self.found.pooled()
        with np.errstate(invalid="ignore", divide="ignore"):
            value = function(log_z, mean)
            error = self._jackknife(function) if self._covariance is None else self._delta(function)
        # The mean of an observable that is undefined for some samples is undefined, and so is its error.
        return Answer(value, np.where(np.isnan(value), np.nan, error))

    def _jackknife(self, function: Function) -> Array:
        """sqrt[(B - 1)/B sum (theta_(b) - mean theta_(.))^2], theta_(b) without block b."""
        blocks = range(len(self.found.log_z))
        without = np.array([function(*self.found.without(b)) for b in blocks])
        return np.sqrt((len(blocks) - 1) * without.var(axis=0))

    def _delta(self, function: Function) -> Array:
        """sqrt(g C g) with C the covariance of log Z and the means, g the gradient by central differences."""
        assert self._covariance is not None
        log_z, mean = self.found.pooled()
        mean = np.nan_to_num(mean)
        step = 1e-3 * np.sqrt(np.maximum(np.diagonal(self._covariance, axis1=1, axis2=2), 0))
        gradient = []
        for i in range(step.shape[1]):
            h = np.where(step[:, i] > 0, step[:, i], 1e-12)
            sides = []
            for sign in (1, -1):
                moved_z, moved = log_z.copy(), mean.copy()
                (moved_z if i == 0 else moved[:, i - 1])[...] += sign * h
                sides.append(function(moved_z, moved))
            shape = (-1, *([1] * (np.ndim(sides[0]) - 1)))
            gradient.append((sides[0] - sides[1]) / (2 * h).reshape(shape))
        g = np.array(gradient)  # (1 + m, T, ...)
        variance = np.einsum("it...,tij,jt...->t...", g, self._covariance, g)
        return np.sqrt(np.maximum(variance, 0))

    def log_correction(self, error: Array) -> Array:
        """The correction of log Z, the logarithm of the mean Z of the blocks, for its bias, given its error.

        The Z of a block with telescoped volumes is unbiased, so the logarithm of the mean of B of them is low by
        error^2/2.  With self-consistent volumes it is log Z that is nearly unbiased (on exact ladders its bias is a
        fifth of its variance, not a half), so the logarithm of the mean Z is high by (B - 1) error^2/2.
        Groups of chains share one scale c, whose logarithm is nearly unbiased: there is nothing to correct.
        """
        if not self.found.pool.of_ladders:
            return np.zeros_like(error)
        if self.found.pool.volumes == "telescoped":
            return error**2 / 2
        return -(len(self.found.log_z) - 1) * error**2 / 2
