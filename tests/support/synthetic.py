"""Exact synthetic ladders and walks, without the engine: ladders by sequential Monte Carlo in the energy, from a known g(U).

The prior is s1 ~ chi^2(D1), s2 ~ chi^2(D2), the energy U = a s1 + b s2 with a = b = 1/(2 sigma^2).  Then U has a Gamma
density, s1/(s1 + s2) is a Beta variable independent of U, and for any couplings

    log Z(beta, a, b) = -D1/2 log(1 + 2 beta a) - D2/2 log(1 + 2 beta b).

A particle is redrawn exactly from its level with probability `refresh` and stays where it is otherwise, so that the
memory of a mutation can be chosen.  Levels are fixed beforehand, from the exact density: nothing adapts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import xarray as xr
from scipy import stats

from quenchphys.ladder import Ladder
from quenchphys.walk import Walk

GRID = 20_001


def logsumexp(values):
    """Of a vector with at least one finite entry; scipy's general one would take most of the time of these runs."""
    top = values.max()
    return top + np.log(np.exp(values - top).sum())


@dataclass(frozen=True)
class Chi2:
    """The problem: dimensions D1 and D2, width sigma of the likelihood; the first level is `top` deviations above <U>."""

    d1: int = 12
    d2: int = 8
    sigma: float = 0.5
    top: float = 2.0

    @property
    def coupling(self) -> float:
        return 1 / (2 * self.sigma**2)

    @property
    def shape(self) -> float:
        return (self.d1 + self.d2) / 2

    @cached_property
    def density(self):
        """g(U)"""
        return stats.gamma(self.shape, scale=2 * self.coupling)

    def log_z(self, beta, a=None, b=None):
        a, b = (self.coupling if c is None else c for c in (a, b))
        beta = np.asarray(beta, float)
        return -self.d1 / 2 * np.log1p(2 * beta * a) - self.d2 / 2 * np.log1p(2 * beta * b)

    def canonical(self, beta):
        """The distribution of U at inverse temperature beta."""
        return stats.gamma(self.shape, scale=1 / (self.sigma**2 + beta))

    def log_volume(self, energy, softness):
        u, log_rho = self._level(float(energy), softness)
        return logsumexp(log_rho) + np.log(u[1] - u[0])

    def _level(self, energy, softness):
        u = (np.arange(GRID) + 0.5) * (energy / GRID)
        with np.errstate(divide="ignore"):
            return u, self.density.logpdf(u) + softness * np.log(energy - u)

    def draw(self, rng, level, softness, n):
        """n energies from the level: Gamma at a temperature, or by the inverse of the cumulative sum."""
        if softness is None:
            return rng.gamma(self.shape, 1 / (self.sigma**2 + level), n)
        return np.interp(rng.uniform(size=n), *self._cumulative(level, softness))

    @lru_cache(maxsize=500)  # noqa: B019 - problems are frozen and few
    def _cumulative(self, level, softness):
        u, log_rho = self._level(level, softness)
        cumulative = np.cumsum(np.exp(log_rho - log_rho.max()))
        return np.append(0.0, cumulative / cumulative[-1]), np.append(0.0, u + 0.5 * (u[1] - u[0]))

    @lru_cache(maxsize=8)  # noqa: B019
    def schedule(self, softness, ess, last):
        """Levels whose exact reweighting to the next one has the given effective sample size."""
        if softness is None:
            return np.linspace(0, 1, round(last) + 1)[1:]
        levels = [float(self.density.mean() + self.top * self.density.std())]
        while levels[-1] > last:
            u, log_rho = self._level(levels[-1], softness)
            rho = np.exp(log_rho - logsumexp(log_rho))

            def fraction(step, u=u, rho=rho):
                room = 1 - step / (levels[-1] - u)
                r = np.where(room > 0, np.clip(room, 0, None) ** softness, 0.0)
                return (rho @ r) ** 2 / (rho @ r**2)

            low, high = 0.0, levels[-1]
            for _ in range(50):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if fraction(middle) > ess else (low, middle)
            levels.append(levels[-1] - low)
        return np.array(levels)


@dataclass(frozen=True)
class Tilted:
    """A mixture of two normal densities, as far as the synthetic runs need it."""

    weight: float  # of the lower one
    means: tuple[float, float]
    widths: tuple[float, float]

    def logpdf(self, u):
        low, high = (stats.norm.logpdf(u, m, w) for m, w in zip(self.means, self.widths, strict=True))
        return np.logaddexp(np.log(self.weight) + low, np.log1p(-self.weight) + high)

    def rvs(self, n, random_state):
        phase = (random_state.uniform(size=n) > self.weight).astype(int)
        return np.array(self.means)[phase] + np.array(self.widths)[phase] * random_state.normal(size=n)

    def mean(self):
        return self.means[1]

    def std(self):
        return self.widths[1]


@dataclass(frozen=True)
class TwoPhases(Chi2):
    """A first-order transition: at beta = 1 the energy is N(20, 2^2) or N(40, 3^2), with equal weights.

    g(U) = P(U) exp(U) Z is a mixture of normal densities again, moved up by their variances, in which the lower one has
    a weight of exp(-22.5).
    """

    means: tuple[float, float] = (20.0, 40.0)
    widths: tuple[float, float] = (2.0, 3.0)

    @property
    def odds(self) -> float:
        """log of the weights of the lower phase over the higher one, under the prior."""
        (m0, m1), (w0, w1) = self.means, self.widths
        return m0 + w0**2 / 2 - m1 - w1**2 / 2

    @property
    def density(self):
        moved = tuple(m + w**2 for m, w in zip(self.means, self.widths, strict=True))
        return Tilted(float(np.exp(self.odds)), moved, self.widths)

    def canonical(self, beta=1.0):
        return Tilted(0.5, self.means, self.widths)


def ladder(
    problem, softness=2.0, particles=200, replicas=1, seed=0, refresh=1.0, draws=None, ess=0.9, last=3.0
) -> Ladder:
    """A ladder as the engine would record it.  softness=None is a tempered ladder of `last` temperatures up to 1."""
    rng = np.random.default_rng(seed)
    levels = problem.schedule(softness, ess, last)
    runs = [_run(problem, softness, levels, particles, draws or 10 * particles, refresh, rng) for _ in range(replicas)]
    stack = {name: np.stack([run[name] for run in runs]) for name in runs[0]}
    return build(problem, softness, levels, stack, seed)


RESAMPLE_BELOW = 0.5


def _run(problem, softness, levels, n, draws, refresh, rng):
    prior_u = problem.density.rvs(draws, random_state=rng)
    prior_share = rng.beta(problem.d1 / 2, problem.d2 / 2, draws)
    u, share, log_w, log_g = prior_u, prior_share, np.full(draws, -np.log(draws)), 0.0
    out = {name: [] for name in ("u", "share", "log_w", "parent", "log_g")}
    for k, level in enumerate(levels):
        log_w = log_w + _log_ratio(u, levels[k - 1] if k else None, level, softness)
        log_g += logsumexp(log_w)
        log_w -= logsumexp(log_w)
        parent = np.arange(len(u))
        if k == 0 or np.exp(-logsumexp(2 * log_w)) < RESAMPLE_BELOW * n:
            positions = (rng.uniform() + np.arange(n)) / n
            parent = np.minimum(np.searchsorted(np.cumsum(np.exp(log_w)), positions), len(u) - 1)
            log_w = np.full(n, -np.log(n))
        u, share = u[parent].copy(), share[parent].copy()
        fresh = rng.uniform(size=n) < refresh
        redraw = fresh & np.isfinite(log_w)  # a particle without weight stays dead until the next resampling
        u[redraw] = problem.draw(rng, level, softness, redraw.sum())
        share[redraw] = rng.beta(problem.d1 / 2, problem.d2 / 2, redraw.sum())
        for name, value in (("u", u), ("share", share), ("log_w", log_w), ("parent", parent), ("log_g", log_g)):
            out[name].append(value)
    return {name: np.array(values) for name, values in out.items()} | {"prior_u": prior_u, "prior_share": prior_share}


def _log_ratio(u, before, level, softness):
    if softness is None:
        return -(level - (before or 0.0)) * u
    with np.errstate(divide="ignore", invalid="ignore"):
        log_f = softness * np.log(np.clip(level - u, 0, None))
        if softness == 0:
            log_f = np.where(u < level, 0.0, -np.inf)
        if before is not None:
            log_f = log_f - (softness * np.log(np.clip(before - u, 0, None)) if softness else 0.0)
    return np.where(u < level, log_f, -np.inf)


def build(problem, softness, levels, runs, seed) -> Ladder:
    """The tree of a ladder from arrays [replica, level, particle]."""
    replicas, count, n = runs["u"].shape
    s = 1 / problem.coupling
    dims = ("replica", "level", "particle")
    tree = {
        "/": xr.Dataset(attrs={
            "method": "quench" if softness is not None else "temper",
            "softness": np.nan if softness is None else softness,
            "seed": seed,
            "settings": json.dumps({"particles": n, "replicas": replicas}),
            "problem": "chi2",
            "couplings": json.dumps({"a": (problem.coupling, "s1", 1.0), "b": (problem.coupling, "s2", 1.0)}),
            "phases": json.dumps({}),
            "dimension": problem.d1 + problem.d2,
            "outcome": "converged",
        }),
        "levels": xr.Dataset({
            "energy" if softness is not None else "beta": (("replica", "level"), np.tile(levels, (replicas, 1))),
            "log_volume": (("replica", "level"), runs["log_g"]),
            "level_count": ("replica", np.full(replicas, count)),
            "acceptance": (("replica", "level"), np.ones((replicas, count))),
            "gradients": (("replica", "level"), np.ones((replicas, count))),
        }),
        "particles": xr.Dataset({
            "energy": (dims, runs["u"].astype(np.float32)),
            "log_weight": (dims, runs["log_w"].astype(np.float32)),
            "parent": (dims, runs["parent"].astype(np.int32)),
            "s1": (dims, (s * runs["u"] * runs["share"]).astype(np.float32)),
            "s2": (dims, (s * runs["u"] * (1 - runs["share"])).astype(np.float32)),
        }),
        "prior": xr.Dataset({
            "energy": (("replica", "draw"), runs["prior_u"].astype(np.float32)),
            "s1": (("replica", "draw"), (s * runs["prior_u"] * runs["prior_share"]).astype(np.float32)),
            "s2": (("replica", "draw"), (s * runs["prior_u"] * (1 - runs["prior_share"])).astype(np.float32)),
        }),
        "configurations": _configurations(runs),
    }  # fmt: skip
    return Ladder(xr.DataTree.from_dict(tree))


def _configurations(runs, share=4):
    """A quarter of every level, drawn by weight as the engine does, then a tenth of the prior draws (level -1).

    The field is the energy and the share of s1.
    """
    replicas, count, n = runs["u"].shape
    drawn = runs["prior_u"].shape[1]
    kept = max(1, n // share)
    teeth = (np.arange(kept) + 0.5) / kept
    weight = np.exp(runs["log_w"])
    particle = np.array([[np.searchsorted(np.cumsum(w), teeth).clip(max=n - 1) for w in one] for one in weight])
    level = np.tile(np.repeat(np.arange(count), kept), (replicas, 1))
    particle = particle.reshape(replicas, -1)
    draw = np.tile(np.arange(0, drawn, 10), (replicas, 1))
    replica = np.arange(replicas)[:, None]
    field = [
        np.concatenate([runs[name][replica, level, particle], runs[f"prior_{name}"][replica, draw]], axis=1)
        for name in ("u", "share")
    ]
    return xr.Dataset({
        "field": (("replica", "sample", "component"), np.stack(field, axis=-1).astype(np.float32)),
        "level": (("replica", "sample"), np.concatenate([level, np.full_like(draw, -1)], axis=1)),
        "particle": (("replica", "sample"), np.concatenate([particle, draw], axis=1)),
    })  # fmt: skip


def walk(samples, prior_log_w=None, last=None, weight=None, **attrs) -> Walk:
    """A walk as the engine would record it, from arrays {name: (group, sweep, chain)}."""
    groups, _, chains = samples["energy"].shape
    dims = ("group", "sweep", "chain")
    last = np.zeros((groups, chains, 1)) if last is None else last
    nodes = (np.arange(4.0), np.zeros(4)) if weight is None else weight
    data = {name: (dims, values) for name, values in ({"log_w": np.zeros(samples["energy"].shape)} | samples).items()} | {
        "prior_log_w": (("group", "draw"), np.zeros((groups, 1)) if prior_log_w is None else prior_log_w),
        "last": (("group", "chain", "site"), last),
        "weight_energy": ("node", nodes[0]),
        "weight_log": ("node", nodes[1]),
    }
    usual = {"problem": "made up", "dimension": last.shape[2], "gradients": 0.0, "undefined": 0.0, "wall_time": 0.0}
    return Walk(xr.Dataset(data, attrs=usual | attrs))
