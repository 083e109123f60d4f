"""Which weight would make walkers meet all energies alike?  Found from how they stepped, not from how often they came.

Walkers that have hardly crossed say little by their histogram, which still shows where they were put.  But how often they
step from one bin of U to another is right as soon as they are in equilibrium within a bin: the energies that the walk has
in the end are the stationary distribution p of the matrix of these steps,

    sum_i p_i P_ij = p_j,     P_ij = (steps from i to j) / (steps from i),

and a weight w/p makes them flat.  (Transition-matrix Monte Carlo: Wang, Tay and Swendsen 1999.)
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline

Array = np.ndarray

BINS = 48  # between the ends of a weight, and one beyond either
DOUBT = 0.5  # steps to either neighbour that every bin is given, so that none is without a way


def flattened(walk: xr.Dataset, energy: Array, log_weight: Array) -> tuple[Array, Array]:
    """The weight of `walk`, given at ascending energies, changed so that all of these are met alike.

    It is multiplied by a smooth function between the first and the last energy, and a constant beyond.
    """
    edges = np.linspace(energy[0], energy[-1], BINS + 1)
    place = np.digitize(walk["energy"].values, edges)  # 0 and BINS + 1 lie beyond the ends
    steps = _neighbours(BINS + 2)
    np.add.at(steps, (place[:, :-1].ravel(), place[:, 1:].ravel()), 1.0)
    met = np.log(stationary(steps)[1:-1])
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
