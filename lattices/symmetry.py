"""Which permutations of the sites leave a lattice as it is, and averages over them.

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
    """(sites, sites), all translations of a periodic shape such as (6, 10), or of a NetKet lattice."""
    if hasattr(lattice, "translation_group"):
        return np.asarray(lattice.translation_group())
    sites = _numbered(lattice)
    axes = tuple(range(sites.ndim))
    return np.array([np.roll(sites, shift, axes).ravel() for shift in product(*map(range, sites.shape))])


def point_group(lattice: Any) -> np.ndarray:
    """(n, sites), reflections of every axis and exchanges of equally long ones, or the point group of a NetKet lattice.

    Symmetries that move every site alike on a small lattice are listed once.
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


def orbit_average(function: Callable[[Array], Array], group: np.ndarray) -> Callable[[Array], Array]:
    """The function of one configuration averaged over the group."""
    rows = jnp.asarray(group)

    def averaged(x: Array) -> Array:
        moved = x.ravel()[rows].reshape(len(rows), *x.shape)
        return jax.tree.map(lambda value: value.mean(axis=0), jax.vmap(function)(moved))

    return averaged


def _numbered(shape: Sequence[int]) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape)
