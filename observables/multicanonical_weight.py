"""Which weight makes walkers meet energies as often as they should?  Found from how they stepped, not from where they were.

Walkers that have hardly crossed say little by their histogram, which still shows where they were put.  But how often they
step from one bin of U to another is right as soon as they are in equilibrium within a bin: the energies that the walk has
in the end are the stationary distribution p of the matrix of these steps,

    sum_i p_i P_ij = p_j,     P_ij = (steps from i to j) / (steps from i),

and a weight w t/p makes them t.  (Transition-matrix Monte Carlo: Wang, Tay and Swendsen 1999.)
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

Array = np.ndarray

FEWEST_BINS, MOST_BINS = 8, 48  # between the ends of a weight, and one beyond either
NARROWEST = 4.0  # nats: from bin to bin the noise of the steps changes the force on a walker by little
RAREST = 0.1  # of the mean: no energy is wanted more rarely
DOUBT = 0.5  # steps to either neighbour that every bin is given, so that none is without a way


def flattened(walk: xr.Dataset, energy: Array, log_weight: Array, like: Array | None = None) -> tuple[Array, Array]:
    """The weight of `walk`, given at ascending energies, changed so that all of these are met alike.

    Or as often as they are among the energies `like`, such as those a ladder sampled.  The weight is multiplied by a smooth
    function between the first and the last energy, and a constant beyond.  Ends so close that a weight can hardly be wrong
    between them keep the one they have.
    """
    bins = int(min(MOST_BINS, (energy[-1] - energy[0]) // NARROWEST))
    if bins < FEWEST_BINS:
        return energy, log_weight
    edges = np.linspace(energy[0], energy[-1], bins + 1)
    place = np.digitize(walk["energy"].values, edges)  # 0 and bins + 1 lie beyond the ends
    steps = _neighbours(bins + 2)
    np.add.at(steps, (place[:, :-1].ravel(), place[:, 1:].ravel()), 1.0)
    wanted = np.ones(bins) if like is None else np.histogram(like, edges)[0]
    met = np.log(stationary(steps)[1:-1]) - np.log(np.maximum(wanted, RAREST * wanted.mean() + 1e-300))
    middle = 0.5 * (edges[1:] + edges[:-1])
    change = CubicSpline(middle, met, bc_type="natural")(np.clip(energy, middle[0], middle[-1]))
    return energy, log_weight - (change - change.mean())


def stationary(steps: Array) -> Array:
    """The distribution that a chain with so many steps from i to j has in the end.

    States are eliminated one by one without a subtraction, so that the rarest is as accurate as the most common (Grassmann,
    Taksar and Heyman 1985).
    """
    matrix = steps / steps.sum(axis=1, keepdims=True)
    for last in range(len(matrix) - 1, 0, -1):
        matrix[:last, last] /= matrix[last, :last].sum()
        matrix[:last, :last] += np.outer(matrix[:last, last], matrix[last, :last])
    found = np.ones(len(matrix))
    for state in range(1, len(matrix)):
        found[state] = found[:state] @ matrix[:state, state]
    return found / found.sum()


def _neighbours(count: int) -> Array:
    return DOUBT * (np.eye(count, k=1) + np.eye(count, k=-1))
