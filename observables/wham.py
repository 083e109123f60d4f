"""Are the level volumes consistent with the particles?  The self-consistent (WHAM) solution on the same mixture.

The G_l that maximise the likelihood of all samples, prior draws included, minimise the convex function

    F(log G) = sum_i n_i w_i log D(U_i) + sum_l n_l log G_l,

whose stationary point is G_l = sum_i n_i w_i f_l(U_i)/D(U_i).  The samples enter as a histogram in U, and log G as the
telescoped value plus a correction, linear between at most KNOTS levels: a few Newton steps, however long the ladder.
Telescoping uses each level to reach the next one only; WHAM uses every overlap.  Where the two differ by more than
their errors, the levels in between were not in equilibrium.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.interpolate import make_interp_spline

from observables.record import Replica, replicas_of
from quenchphys.ladder import Ladder

Array = np.ndarray

KNOTS = 200
ENERGY_BINS = 4000
NEWTON_STEPS = 50
CONVERGED = 1e-6  # largest change of any log G in a step


def self_consistent_volumes(replica: Replica) -> Array:
    """log G of every level, from WHAM."""
    count, n = replica.shape
    hats = _hats(count)  # (K, knots): log G = telescoped + hats @ correction
    energy, samples = _histogram(replica)
    mixture = replica.mixture
    correction = np.zeros(hats.shape[1])
    for _ in range(NEWTON_STEPS):
        current = dataclasses.replace(mixture, log_scale=mixture.log_scale - hats @ correction)
        gradient = n * hats.sum(axis=0)
        hessian = np.zeros((len(correction), len(correction)))
        for start in range(0, len(energy), 250):
            some = slice(start, start + 250)
            share = current.shares(energy[some])[:, 1:]  # p_l at each energy
            on_knots = share @ hats
            gradient -= samples[some] @ on_knots
            hessian += hats.T @ (hats * (samples[some] @ share)[:, None])
            hessian -= on_knots.T @ (on_knots * samples[some][:, None])
        step = np.linalg.lstsq(hessian, -gradient, rcond=1e-12)[0]
        step *= min(1.0, 1.0 / np.abs(step).max(initial=1e-300))  # no farther than a factor e at a time
        correction += step
        if np.abs(step).max() < CONVERGED:
            break
    return replica.log_volume + hats @ correction


def refine(ladder: Ladder) -> Ladder:
    """The same ladder with self-consistent volumes in place of the telescoped ones."""
    tree = ladder.tree.copy()
    volumes = ladder.levels["log_volume"].values.copy()
    for r, replica in enumerate(replicas_of(ladder)):
        volumes[r, : len(replica.level)] = self_consistent_volumes(replica)
    levels = ladder.levels.assign(log_volume=(("replica", "level"), volumes, dict(ladder.levels["log_volume"].attrs)))
    tree["levels"].dataset = levels
    tree.attrs = {**ladder.attrs, "volumes": "self-consistent (WHAM)"}
    return Ladder(tree)


def _hats(count: int) -> Array:
    """Piecewise linear functions on at most KNOTS of the levels, (K, knots)."""
    knots = np.unique(np.linspace(0, count - 1, min(count, KNOTS)).round())
    if len(knots) == 1:
        return np.ones((count, 1))
    return make_interp_spline(knots, np.eye(len(knots)), k=1)(np.arange(count))


def _histogram(replica: Replica) -> tuple[Array, Array]:
    """Mean energy and total n w of the samples in bins of equally many samples."""
    weight = np.exp(replica.log_share)
    live = np.flatnonzero(weight > 0)
    order = live[np.argsort(replica.energy[live], kind="stable")]
    edges = np.unique(np.linspace(0, len(order), min(len(order), ENERGY_BINS) + 1).astype(int))
    total = np.add.reduceat(weight[order], edges[:-1])
    mean = np.add.reduceat(weight[order] * replica.energy[order], edges[:-1]) / total
    return mean, total


def distance(replica: Replica) -> Array:
    """log G (WHAM) - log G (telescoped) of every level."""
    return self_consistent_volumes(replica) - replica.log_volume

