"""A lattice given by its links alone: any graph, with the modes of its Laplacian.

The free field of a graph has precision stiffness * Laplacian + m0_sq, with the Laplacian (degree - adjacency) of the
links; its eigenvectors are the modes.  They are dense, V x V, so graphs may have up to some thousands of sites.

A pair that is listed twice is linked twice.  A periodic axis with L = 2 has such double links on a torus, while NetKet
builds it as if it were open, with single ones; list the links yourself to have them double.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array

SAME_EIGENVALUE = 1e-9  # relative to the largest: rounding of a dense eigensolver in float64


@dataclass(frozen=True, eq=False)
class Graph:
    """Sites 0 ... V-1 joined by `links` (n_links, 2); `modes[x, j]` is eigenvector j of the Laplacian.

    Eigenvalues ascend: mode 0 is uniform, and the next `lowest_count` share the lowest nonzero eigenvalue.
    """

    links: Any
    eigenvalues: Any
    modes: Any
    lowest_count: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.sites,)

    @property
    def sites(self) -> int:
        return self.eigenvalues.shape[0]

    @property
    def dims(self) -> tuple[str, ...]:
        return ("site",)

    @property
    def lowest_eigenvalue(self) -> float:
        return float(self.eigenvalues[1])

    def to_modes(self, x: Array) -> Array:
        """(..., sites) -> (..., sites)"""
        return jnp.matmul(x, self.modes, precision=jax.lax.Precision.HIGHEST)

    def from_modes(self, y: Array) -> Array:
        """The transpose and inverse of `to_modes`."""
        return jnp.matmul(y, jnp.asarray(self.modes).T, precision=jax.lax.Precision.HIGHEST)

    def link_energy(self, x: Array) -> Array:
        """Sum over links of (phi_x - phi_y)^2 of one configuration."""
        return ((x[self.links[:, 0]] - x[self.links[:, 1]]) ** 2).sum()

    def laplacian(self, x: Array) -> Array:
        """Half the gradient of the link energy, sum over neighbours of phi_x - phi_y, of a batch (n, sites)."""
        return 0.5 * jax.vmap(jax.grad(self.link_energy))(x)

    def lane_laplacian(self, x: Array) -> Array:
        """The Laplacian as in `laplacian`, of configurations side by side on the last axis, (sites, lane)."""
        first, second = jnp.asarray(self.links).T
        slope = x[first] - x[second]
        return jnp.zeros_like(x).at[first].add(slope).at[second].add(-slope)

    def lane_links(self, x: Array) -> Array:
        """(phi_x - phi_y)^2 summed at the first site of every link, (sites, lane)."""
        first, second = jnp.asarray(self.links).T
        return jnp.zeros_like(x).at[first].add((x[first] - x[second]) ** 2)

    def lane_products(self, x: Array) -> Array:
        """phi_x phi_y of every link, (link, lane)."""
        first, second = jnp.asarray(self.links).T
        return x[first] * x[second]

    def lane_lowest(self, labels: Array, joined: Array) -> Array:
        """The lowest label among a site and those it is joined to, (sites, lane); `joined` is over links."""
        first, second = jnp.asarray(self.links).T
        one, other = labels[first], labels[second]
        lowest = jnp.minimum(one, other)
        upward = labels.at[first].min(jnp.where(joined, lowest, one))
        return upward.at[second].min(jnp.where(joined, lowest, other))

    def lowest_power(self, x: Array) -> Array:
        """Mean square of the modes at the lowest nonzero eigenvalue: |phi_k|^2 / V, where momenta exist."""
        return (self.to_modes(x)[1 : 1 + self.lowest_count] ** 2).mean()

    def lane_lowest_power(self, x: Array) -> Array:
        """The same for configurations side by side on the last axis, (lane,)."""
        return jax.vmap(self.lowest_power, -1)(x)


jax.tree_util.register_dataclass(Graph, data_fields=["links", "eigenvalues", "modes"], meta_fields=["lowest_count"])


def from_links(source: Any) -> Graph:
    """The lattice of a NetKet graph, or of a sequence of links (site, site)."""
    links = _checked_links(source)
    sites = int(links.max()) + 1
    laplacian = np.zeros((sites, sites))
    for end, other in (links.T, links.T[::-1]):
        np.add.at(laplacian, (end, end), 1.0)
        np.add.at(laplacian, (end, other), -1.0)
    eigenvalues, modes = np.linalg.eigh(laplacian)
    tolerance = SAME_EIGENVALUE * eigenvalues[-1]
    zero_modes = int((eigenvalues < tolerance).sum())
    if zero_modes != 1:
        raise ValueError(f"a lattice must be connected, but these links leave {zero_modes} separate parts")
    eigenvalues[0] = 0.0
    lowest_count = int((eigenvalues < eigenvalues[1] + tolerance).sum()) - 1
    return Graph(links, eigenvalues.astype(np.float32), modes.astype(np.float32), lowest_count)


def _checked_links(source: Any) -> np.ndarray:
    sites = getattr(source, "n_nodes", None)
    pairs = source.edges() if callable(getattr(source, "edges", None)) else source
    if not isinstance(pairs, Iterable):
        raise TypeError(f"a lattice needs a NetKet graph or a sequence of links (site, site), got {source!r}")
    links = np.asarray(list(pairs))
    if links.ndim != 2 or links.shape[1] != 2 or links.dtype.kind not in "iu":
        raise ValueError(f"links must be pairs of site numbers, got an array of {links.dtype} of shape {links.shape}")
    if links.min() < 0 or (links[:, 0] == links[:, 1]).any():
        raise ValueError("links must join two different sites numbered from 0")
    missing = set(range(sites or int(links.max()) + 1)) - set(links.ravel().tolist())
    if missing:
        raise ValueError(f"every site needs a link, but site {min(missing)} has none")
    return links.astype(np.int32)
