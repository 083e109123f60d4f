"""Estimates from chains in a flat bias: mu2* by exact weights and by the mean force, P(q), round trips, jackknife errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from benchmarks.rivals.flat_chains import CUT, TABLE, Sampler

BRACKET = (2.2, 2.4)
RETURN = (0.3, 1.8)  # a round trip goes below the first and above the second
FINE = 560  # bins in q of the mean force and of the printed distribution


def round_trips(q: np.ndarray) -> np.ndarray:
    """Round trips of each chain, between q below the first and above the second of RETURN."""
    ends = np.where(q < RETURN[0], -1, np.where(q > RETURN[1], 1, 0))
    return np.array([np.count_nonzero(np.diff(chain[chain != 0])) // 2 for chain in ends.T])


def jackknife(value, parts: int) -> tuple[float, float]:
    """Value and jackknife error of a function of the chains that are kept, given as a mask."""
    left_out = np.array([value(keep) for keep in ~np.eye(parts, dtype=bool)])
    return float(value(np.ones(parts, bool))), float(np.sqrt((parts - 1) * left_out.var()))


def by_weights(sampler: Sampler, spline: CubicSpline, q: np.ndarray) -> tuple[float, float]:
    """mu2* and its error, from exact weights of the samples q (trajectories, chains)."""
    mu2, half = float(sampler.model.mu2), sampler.sites / 2
    bias, ordered = spline(q), q > CUT
    bias -= bias.max()

    def sums(trial: float) -> np.ndarray:
        weight = np.exp(bias - (trial - mu2) * half * (q - CUT))
        return np.stack([(weight * ordered).sum(0), (weight * ~ordered).sum(0)])

    def log_odds(weights: np.ndarray) -> float:
        return float(np.log(weights[0].sum() / weights[1].sum()))

    star = brentq(lambda trial: log_odds(sums(trial)), *BRACKET, xtol=1e-7)
    slope = (log_odds(sums(star + 1e-5)) - log_odds(sums(star - 1e-5))) / 2e-5
    weights = sums(star)
    _, error = jackknife(lambda keep: log_odds(weights[:, keep]) / slope, q.shape[1])
    return star, error


def by_force(sampler: Sampler, q: np.ndarray, force: np.ndarray) -> tuple[float, float]:
    """mu2* and its error, from the mean force alone."""
    mu2, half = float(sampler.model.mu2), sampler.sites / 2
    edges = np.linspace(*TABLE[:2], FINE + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    count = np.stack([np.histogram(c, edges)[0] for c in q.T])
    total = np.stack([np.histogram(c, edges, weights=f)[0] for c, f in zip(q.T, force.T, strict=True)])

    def star(keep: np.ndarray) -> float:
        n, t = count[keep].sum(0), total[keep].sum(0)
        met = n > 0
        slope = np.interp(middle, middle[met], t[met] / n[met])
        log_p = (0.5 * slope - np.cumsum(slope)) * (edges[1] - edges[0])

        def odds(trial: float) -> float:
            shape = np.where(met, log_p - (trial - mu2) * half * middle, -np.inf)
            return np.logaddexp.reduce(shape[middle > CUT]) - np.logaddexp.reduce(shape[middle < CUT])

        return brentq(odds, *BRACKET, xtol=1e-7)

    return jackknife(star, q.shape[1])


def summary(sampler: Sampler, spline: CubicSpline, q: np.ndarray, force: np.ndarray) -> dict[str, Any]:
    """Every number of the report, from the counted part."""
    trips = round_trips(q)
    half = len(q) // 2
    parts = {"early": q[:half], "late": q[half:], "from disordered": q[:, ::2], "from ordered": q[:, 1::2]}
    mu2, error = by_weights(sampler, spline, q)
    shape = distribution(sampler, spline, q, mu2)
    # n round trips determine the log odds of the two ends to sqrt(2/n).
    expected = np.sqrt(2 / max(trips.sum(), 1)) / (sampler.sites / 2 * (shape["peaks"][1] - shape["peaks"][0]))
    return {
        "mu2": mu2,
        "mu2_err": error,
        "mu2_by_force": by_force(sampler, q, force),
        "parts": {name: by_weights(sampler, spline, part) for name, part in parts.items()},
        "trajectories": len(q),
        "round_trips": trips.tolist(),
        "error_expected_of_round_trips": float(expected),
        "tau_q": float(len(q) * q.mean(0).var(ddof=1) / q.var()),
        "distribution": shape,
    }


def distribution(sampler: Sampler, spline: CubicSpline, q: np.ndarray, mu2: float) -> dict[str, Any]:
    """log P(q) at mu2, visits of each bin relative to their mean, and the barrier."""
    edges = np.linspace(*TABLE[:2], FINE + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    log_weight = spline(q) - (mu2 - float(sampler.model.mu2)) * sampler.sites / 2 * q
    top = log_weight.max()
    count, _ = np.histogram(q, edges)
    weight, _ = np.histogram(q, edges, weights=np.exp(log_weight - top))
    met = count > 0
    log_p = np.log(weight[met] / weight.sum() / (edges[1] - edges[0]))
    x = middle[met]
    peaks = [x[side][np.argmax(log_p[side])] for side in (x < CUT, x > CUT)]
    between = (x > peaks[0]) & (x < peaks[1])
    heights = [log_p[x == peak][0] for peak in peaks]
    return {
        "q": x.tolist(),
        "log_p": log_p.tolist(),
        "met": (count[met] / count[met].mean()).tolist(),
        "peaks": [float(p) for p in peaks],
        "barrier": float(min(heights) - log_p[between].min()),
    }
