"""Averages of a walk as observables of pyerrors: each chain a replica of one ensemble, with errors by the gamma method.

A sample has the weight W = t(x)/w(U) for a target pi(x) t(x), so <O> = mean(W O)/mean(W), and Z = c mean(W).  The absolute
scale c solves Bennett's equation, sum over draws p_0 = sum over samples p_1; to first order

    log c = log c_0 + (sum over draws p_0 - sum over samples p_1) / slope,

with the p and the slope at the solution c_0, which makes log c an observable of both ensembles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from observables.estimation.estimator import estimate
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from observables.exchange.weighted import library
from observables.phases import TwoPhases
from observables.samples.pool import Pool, Source

Array = np.ndarray


def to_pyerrors(walk: Source, beta: float = 1.0, **couplings: Any) -> dict[str, Any]:
    """log Z, the mean energy and every observable as `pyerrors.Obs`, with the history of every chain.

    The ensemble has the name of the problem, and every chain is a replica of it; the draws from the prior, on which the
    scale of log Z rests, are an ensemble of their own.  Errors come from autocorrelations along the chains (the gamma
    method), where our own come from the scatter of independent chains: neither knows of the other.

    Parameters
    ----------
    walk : Walk, its parts, or a Pool of them
        The samples.  Ladders have no chains: their replicas have errors by `partition_function` and others.
    beta, couplings
        As in `partition_function`, but for a single target.

    Returns
    -------
    dict
        Name -> Obs: log_z, energy, every observable, and log_odds where the walk has two phases.  `gamma_method()` was
        called on each.

    Examples
    --------
    >>> found = observables.to_pyerrors(walk, mu2=2.286)
    >>> found["q"].value, found["q"].dvalue
    >>> found["energy"] / found["q"]  # errors propagate
    """
    pool = Pool.of(walk)
    if pool.of_ladders:
        raise TypeError("to_pyerrors needs a walk: the gamma method sums correlations along chains, and ladders have none.")
    pyerrors = library("pyerrors", "to_pyerrors")
    targets = Targets.single(pool, beta, couplings, "Observables of pyerrors have")
    estimate(pool, targets, no_moments)
    chains = Chains(pool, targets, float(beta))
    one = chains.observable(pyerrors, chains.weight)
    found = {"log_z": chains.log_scale(pyerrors) + np.log(one)}
    for name in ("energy", *pool.observables):
        found[name] = chains.observable(pyerrors, chains.weight * chains.recorded[name]) / one
    phases = TwoPhases.among(pool.run.phases)
    if phases is not None and phases.by in pool.observables:
        upper = chains.observable(pyerrors, chains.weight * (chains.recorded[phases.by] >= phases.cut)) / one
        found["log_odds"] = np.log(upper / (1.0 - upper))
    for one_of_them in found.values():
        one_of_them.gamma_method()
    return found


class Chains:
    """Time series of all chains of a walk, (chain, sweep)."""

    def __init__(self, pool: Pool, targets: Targets, beta: float):
        pool.check_one_coupling("pyerrors")
        self.pool, self.ensemble = pool, pool.run.problem.replace("|", " ")
        tables: dict[str, list[Array]] = {name: [] for name in ("energy", "log_weight", "log_w", *pool.observables)}
        for chain in pool.chains:
            ((_, energy),) = targets.along(chain)
            columns = {"energy": energy, "log_weight": targets.log_t(energy, beta) - chain.log_w, "log_w": chain.log_w}
            columns |= {name: chain.observable(name) for name in pool.observables}
            for name, values in columns.items():
                tables[name].append(values.astype(float))
        self.recorded = {name: np.stack(rows) for name, rows in tables.items()}
        self.top = float(self.recorded["log_weight"].max())
        self.weight = np.exp(self.recorded["log_weight"] - self.top)

    def observable(self, pyerrors: Any, values: Array) -> Any:
        """The mean of a quantity that is known along every chain."""
        return pyerrors.Obs(list(values), [f"{self.ensemble}|r{number:04d}" for number in range(len(values))])

    def log_scale(self, pyerrors: Any) -> Any:
        """log c, and the largest log weight that was taken out of the weights."""
        scale = self.pool.scale
        assert scale is not None
        draws = np.concatenate([walk.data["prior_log_w"].values for walk in self.pool.walks], axis=1)
        ratio = np.log(self.recorded["log_w"].size / draws.size)
        met = expit(ratio + draws - scale.log_c), expit(scale.log_c - ratio - self.recorded["log_w"])
        slope = sum((p * (1 - p)).sum() for p in met)
        names = [f"{self.ensemble} prior|r{number:04d}" for number in range(len(draws))]
        from_draws = pyerrors.Obs(list(met[0]), names) * (met[0].size / slope)
        return from_draws - self.observable(pyerrors, met[1]) * (met[1].size / slope) + (scale.log_c + self.top)
