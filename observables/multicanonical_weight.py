"""Multicanonical weights: read off a ladder, and improved by the steps of chains.

The energies a ladder sampled have the density g(U) D(U), D the mixture of its levels (see `samples.mixture`): about as many
at each as its levels are dense, which is where U is hard to cross.  Chains with the weight w = D meet energies as often.
Between two phases w is D, beyond them log w continues in a straight line, so that chains end in canonical tails.

Chains that have hardly crossed say little by their histogram, which still shows where they started.  But how often they
step from one bin of U to another is right as soon as they are in equilibrium within a bin: the energies of a long walk are
the stationary distribution p of the matrix of these steps,

    sum_i p_i P_ij = p_j,     P_ij = (steps from i to j) / (steps from i),

and a weight w t/p makes them t.  (Transition-matrix Monte Carlo: Wang, Tay and Swendsen 1999.)
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from observables.samples.pool import Pool, Source
from quenchphys.walk import Walk

Array = np.ndarray

NODES = 600  # of the weight of a ladder
FEWEST_BINS, MOST_BINS = 8, 48  # between the ends of a weight, and one beyond either
NARROWEST = 4.0  # nats: from bin to bin the noise of the steps changes the force on a chain by little
RAREST = 0.1  # of the mean: no energy is wanted more rarely
DOUBT = 0.5  # steps to either neighbour that every bin is given, so that none is without a way


def flat_weight(ladder: Source, low: float, high: float) -> tuple[Array, Array]:
    """The multicanonical weight of a ladder, w = D, between two energies.

    Parameters
    ----------
    ladder : Ladder, several of them, or Pool
        The ladder that sampled these energies.
    low, high : float
        The energies between which chains shall travel.

    Returns
    -------
    energy, log_weight : arrays
        Ascending energies from `low` to `high`, and log D there, as `quenchphys.multicanonical` takes them.

    Examples
    --------
    >>> energy, log_weight = observables.flat_weight(ladder, low=-20.0, high=40.0)
    >>> walk = qp.multicanonical(model, start, energy, log_weight, sweeps=320)
    """
    pool = Pool.of_levels(ladder, "A weight from levels")
    energy = np.linspace(low, high, NODES)
    return energy, np.logaddexp.reduce([replica.mixture.log_density(energy) for replica in pool.replicas], axis=0)


def flattened(walk: Walk, like: Array | None = None) -> tuple[Array, Array]:
    """The weight of a walk, changed so that chains meet all its energies equally often.

    The weight is multiplied by a smooth function between the first and the last energy at which it is given, and by a
    constant beyond.  Ends so close that a weight can hardly be wrong between them keep the one they have.

    Parameters
    ----------
    walk : Walk
        The walk with the weight to be improved.
    like : array
        Energies, such as those a ladder sampled: the new weight makes chains meet energies as often as they are among
        these, instead of equally often.

    Returns
    -------
    energy, log_weight : arrays
        The energies at which the weight of the walk was given, and the logarithm of the new weight there.

    Examples
    --------
    >>> walk = qp.multicanonical(model, start, *observables.flat_weight(ladder, -20.0, 40.0), sweeps=160)
    >>> walk = qp.multicanonical(model, walk, *observables.flattened(walk), sweeps=1600, seed=1)
    """
    energy, log_weight = walk.weight
    bins = int(min(MOST_BINS, (energy[-1] - energy[0]) // NARROWEST))
    if bins < FEWEST_BINS:
        return energy, log_weight
    edges = np.linspace(energy[0], energy[-1], bins + 1)
    place = np.digitize(walk.energy, edges)  # 0 and bins + 1 lie beyond the ends
    steps = _neighbours(bins + 2)
    np.add.at(steps, (place[:, :-1].ravel(), place[:, 1:].ravel()), 1.0)
    wanted = np.ones(bins) if like is None else np.histogram(like, edges)[0]
    met = np.log(stationary(steps)[1:-1]) - np.log(np.maximum(wanted, RAREST * wanted.mean() + 1e-300))
    middle = 0.5 * (edges[1:] + edges[:-1])
    change = CubicSpline(middle, met, bc_type="natural")(np.clip(energy, middle[0], middle[-1]))
    return energy, log_weight - (change - change.mean())


def stationary(steps: Array) -> Array:
    """The stationary distribution of a chain with so many steps from i to j.

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
