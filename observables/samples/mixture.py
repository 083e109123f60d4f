"""The mixture a replica sampled from: D(U) = sum_l n_l f_l(U) / G_l, the denominator of every weight.

The sum runs over all levels and the prior draws (f = 1, G = 1).  It depends on U alone, so millions of particles share
one table of log D, filled exactly at its nodes and interpolated by cubics that match value and slope.  The table is
refined until the cubic is right to TABLE_TOLERANCE in the middle of every interval.  It ends where only the prior draws
are left, at the highest level or where every stage is negligible: draws that lie 1e20 above everything else (a hard core)
must not make its intervals wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import logsumexp

Array = np.ndarray

TABLE_TOLERANCE = 1e-6  # of log D; statistical errors are a thousand times larger
NEGLIGIBLE = 36.0  # terms smaller than exp(-36) = 2e-16 of the sum change nothing in double precision
NODES_AT_ONCE = 512
NARROWEST = 1e-10  # interval of a table, relative to its energies, which have single precision


@dataclass(frozen=True)
class Mixture:
    """The components one replica drew from: n_l f_l(U) / G_l with f = (E_l - U)_+^nu or exp(-beta_l U)."""

    level: Array  # (K,) E_l or beta_l
    log_scale: Array  # (K,) log(n_l / G_l)
    softness: float | None  # nu; None for a tempered ladder
    draws: float  # prior draws

    def log_factors(self, energy: Array) -> Array:
        """log f_l(U), shape (*energy.shape, K)."""
        return log_factor(self.level, self.softness, np.asarray(energy, float)[..., None])

    def shares(self, energy: Array) -> Iterator[tuple[slice, slice, Array]]:
        """(energies, levels, p): the probability that a sample of energy U came from level l, p_l = (n_l f_l/G_l)/D.

        For ascending energies, stretch by stretch; the levels left out of a stretch have no share in it.
        """
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.draws)
        for start in range(0, len(energy), NODES_AT_ONCE):
            rows = slice(start, min(start + NODES_AT_ONCE, len(energy)))
            near = self._near(energy[rows])
            log_terms = self.log_scale[near] + log_factor(self.level[near], self.softness, energy[rows, None])
            top = np.maximum(log_terms.max(axis=1, keepdims=True, initial=-np.inf), log_prior)
            terms = np.exp(log_terms - top)
            yield rows, near, terms / (terms.sum(axis=1, keepdims=True) + np.exp(log_prior - top))

    def _near(self, energy: Array) -> slice:
        """The levels that matter between the first and the last of ascending energies."""
        if self.softness is None or self.softness <= 0:
            return slice(0, len(self.level))
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.draws)
        # Every term falls with U: it is largest at the first energy, and D is smallest at the last one.
        first, last = self.log_scale + self.log_factors(energy[[0, -1]])
        floor = np.logaddexp(log_prior, logsumexp(last)) - NEGLIGIBLE - np.log(len(first))
        near = np.flatnonzero(first >= floor)
        return slice(near[0], near[-1] + 1) if near.size else slice(0, 0)

    def exact(self, energy: Array) -> tuple[Array, Array]:
        """log D and its slope d log D / dU, term by term; terms that cannot matter are left out of each stretch."""
        energy = np.asarray(energy, float)
        order = np.argsort(energy)
        log_d, slope = np.empty(energy.shape), np.empty(energy.shape)
        for start in range(0, len(order), NODES_AT_ONCE):
            some = order[start : start + NODES_AT_ONCE]
            log_d[some], slope[some] = self._stretch(energy[some])
        return log_d, slope

    def _stretch(self, energy: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.draws)
        near = self._near(energy)
        level, scale = self.level[near], self.log_scale[near]
        terms = scale + log_factor(level, self.softness, energy[:, None])
        top = np.maximum(terms.max(axis=1, initial=-np.inf), log_prior)
        if not np.isfinite(top).all():  # without prior draws, above the first level
            top = np.where(np.isfinite(top), top, 0.0)
        share = np.exp(terms - top[:, None])
        total = share.sum(axis=1) + np.exp(log_prior - top)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_d = top + np.log(total)
            share /= total[:, None]
        if self.softness is None:
            return log_d, -(share * level).sum(axis=1)
        room = level - energy[:, None]
        return log_d, -self.softness * np.divide(share, room, out=np.zeros_like(share), where=room > 0).sum(axis=1)

    def log_density(self, energy: Array) -> Array:
        """log D(U) of every sample, through the table where log D is smooth."""
        energy = np.asarray(energy)
        live = energy[np.isfinite(energy)]
        if self.softness == 0.0:
            return self._steps(energy)
        if live.size == 0 or (self.softness is not None and self.softness < 1.0):
            flat = np.where(np.isfinite(energy), energy, 0.0).ravel()
            return self.exact(flat)[0].reshape(energy.shape)
        low, end = float(live.min()), self.end
        inside = np.where(np.isfinite(energy), energy, low).astype(float)
        log_d = np.full(energy.shape, self._log_draws)
        some = inside < end
        if some.any():
            log_d[some] = self.table(low, min(float(live.max()), end))(inside[some])
        return log_d

    @property
    def _log_draws(self) -> float:
        return float(np.log(self.draws)) if self.draws > 0 else -np.inf

    @property
    def end(self) -> float:
        """The energy from which on D is the number of prior draws, to double precision."""
        if self.softness is not None:
            return float(self.level.max(initial=-np.inf))
        with np.errstate(divide="ignore", invalid="ignore"):
            where = (self.log_scale + np.log(len(self.level)) + NEGLIGIBLE - self._log_draws) / self.level
        return float(np.where(self.level > 0, where, np.inf).max(initial=-np.inf))

    def _steps(self, energy: Array) -> Array:
        """nu = 0: D jumps at every level, and is constant in between."""
        order = np.argsort(-self.level)
        with np.errstate(divide="ignore"):
            totals = np.logaddexp.accumulate(np.concatenate([[np.log(self.draws)], self.log_scale[order]]))
        above = np.searchsorted(-self.level[order], -energy.astype(float), side="left")
        return totals[above]

    def table(self, low: float, high: float) -> CubicHermiteSpline:
        """log D between two energies, with a node at every level (where a power (E_l - U)^nu begins)."""
        high = max(high, low + 1e-6 * max(abs(low), 1.0))
        nodes = np.linspace(low, high, 65)
        if self.softness is not None:
            inside = self.level[(self.level > low) & (self.level < high)]
            nodes = np.union1d(nodes, np.concatenate([inside, np.linspace(low, min(self.level.min(), high), 65)]))
        elif self.level.max(initial=0.0) > 0:
            # A stage of inverse temperature beta falls within 1/beta: from the coldest one's to the whole range.
            shortest = min(1 / self.level.max(), high - low)
            nodes = np.union1d(nodes, low + np.geomspace(shortest, high - low, 129))
        nodes = nodes[(nodes >= low) & (nodes <= high)]
        value, slope = self.exact(nodes)
        left, right = nodes[:-1], nodes[1:]
        while True:
            middle = 0.5 * (left + right)
            exact_value, exact_slope = self.exact(middle)
            error = np.abs(CubicHermiteSpline(nodes, value, slope)(middle) - exact_value)
            wrong = (error > TABLE_TOLERANCE) & (right - left > NARROWEST * np.maximum(np.abs(left), np.abs(right)))
            if not wrong.any():
                return CubicHermiteSpline(nodes, value, slope)
            at = np.searchsorted(nodes, middle[wrong])
            nodes = np.insert(nodes, at, middle[wrong])
            value = np.insert(value, at, exact_value[wrong])
            slope = np.insert(slope, at, exact_slope[wrong])
            left, right = (
                np.concatenate([left[wrong], middle[wrong]]),
                np.concatenate([middle[wrong], right[wrong]]),
            )


def log_factor(level: Array, softness: float | None, energy: Array) -> Array:
    """log f of a level (E or beta) at energy U, broadcast."""
    if softness is None:
        return -level * energy
    room = level - energy
    if softness == 0.0:
        return np.where(room > 0, 0.0, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(room > 0, softness * np.log(np.where(room > 0, room, 1.0)), -np.inf)
