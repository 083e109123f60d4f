"""Permutations of the sites that leave a lattice unchanged, and averages over them.

A permutation g is a row of site numbers: the field moved by it is x.ravel()[g].  For lattices from NetKet the same
rows come from NetKet's own translation and space groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


def translations(lattice: Any) -> np.ndarray:
    """All translations of a lattice.

    Parameters
    ----------
    lattice
        The shape of a periodic lattice, such as (6, 10), or a NetKet lattice.

    Returns
    -------
    numpy.ndarray
        Permutations of the sites, (sites, sites): the field moved by row g is x.ravel()[g].

    Examples
    --------
    >>> import lattices
    >>> lattices.translations((3,))
    array([[0, 1, 2],
           [2, 0, 1],
           [1, 2, 0]])
    """
    if hasattr(lattice, "translation_group"):
        return np.asarray(lattice.translation_group())
    sites = _numbered(lattice)
    axes = tuple(range(sites.ndim))
    return np.array([np.roll(sites, shift, axes).ravel() for shift in product(*map(range, sites.shape))])


def point_group(lattice: Any) -> np.ndarray:
    """The point group of a lattice: reflections of every axis and exchanges of equally long axes.

    Parameters
    ----------
    lattice
        The shape of a periodic lattice, such as (6, 10), or a NetKet lattice, whose own point group is taken.

    Returns
    -------
    numpy.ndarray
        Permutations of the sites, (n, sites), which leave site 0 in place.  Elements that act in the same way on a small
        lattice are listed once.

    Examples
    --------
    >>> import lattices
    >>> lattices.point_group((4, 4)).shape, lattices.point_group((3, 5)).shape
    ((8, 16), (4, 15))
    """
    if hasattr(lattice, "point_group"):
        return np.unique(np.asarray(lattice.point_group()), axis=0)
    sites = _numbered(lattice)
    found = []
    for order in permutations(range(sites.ndim)):
        turned = sites.transpose(order)
        if turned.shape == sites.shape:
            for reflected in product((False, True), repeat=sites.ndim):
                axes = tuple(axis for axis, yes in enumerate(reflected) if yes)
                found.append(np.roll(np.flip(turned, axes), (1,) * len(axes), axes).ravel())
    return np.unique(found, axis=0)


def orbit_average(function: Callable[[Array], Any], group: np.ndarray) -> Callable[[Array], Any]:
    """A function of one configuration, averaged over a group of permutations.

    Parameters
    ----------
    function
        Takes one configuration and returns an array, or a dict or other tree of arrays.
    group
        Permutations of the sites, (n, sites), such as `translations(shape)`.

    Returns
    -------
    Callable
        The invariant function: the mean of function(g x) over all g in the group.

    Examples
    --------
    >>> import jax.numpy as jnp, lattices
    >>> bond = lattices.orbit_average(lambda x: x[0, 0] - x[0, 1], lattices.translations((4, 4)))
    >>> float(bond(jnp.arange(16.0).reshape(4, 4)))
    0.0
    """
    rows = jnp.asarray(group)

    def averaged(x: Array) -> Any:
        moved = x.ravel()[rows].reshape(len(rows), *x.shape)
        return jax.tree.map(lambda value: value.mean(axis=0), jax.vmap(function)(moved))

    return averaged


def _numbered(shape: Sequence[int]) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape)
