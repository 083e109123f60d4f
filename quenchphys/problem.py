"""What the engine asks of a model: the `Problem` protocol, and the checks a model must pass before it is sampled.

A problem is a prior pi(x) that can be sampled exactly and an energy U(x); its partition function is
Z(beta) = E_pi[exp(-beta U)].  One configuration x is an array of any fixed shape.

Problems are plain objects, matched by structure: nothing here has to be imported or inherited.  A problem that is
also a JAX pytree (its couplings as leaves, its geometry as static data) is passed to the compiled program as an
argument, so that another coupling does not compile again; any other object is compiled in as a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array

# Names the record itself uses beside the observables of a problem.
RESERVED_NAMES = frozenset({"energy", "log_weight", "parent", "replica", "level", "particle", "draw", "sample"})


class Basis(Protocol):
    """Orthonormal coordinates y in which a Gaussian prior of mean zero is diagonal."""

    precision: Array
    """(D,), the prior precision of every coordinate: log pi = -1/2 sum_j precision_j y_j^2 + const."""

    def to_modes(self, x: Array) -> Array:
        """(..., *shape) -> (..., D)"""
        ...

    def from_modes(self, y: Array) -> Array:
        """(..., D) -> (..., *shape), the transpose and inverse of `to_modes`."""
        ...


class Problem(Protocol):
    """The three functions every problem has; all are written in JAX.

    Optional attributes, read where they exist:

    energy_and_grad(x)   U and dU/dx of a batch (n, *shape) at once; default: `jax.value_and_grad` of `energy`
    observe(x)           dict of scalars of one configuration, recorded for every particle; default: none
    symmetries           tuple of isometries of one configuration that keep prior and energy, such as x -> -x
    basis                a `Basis`; default: the sites themselves, with the prior through `log_prior`
    stop                 {"energy": E} or {"dlogz": d}: how deep a ladder must go; default {"dlogz": -3}
    softness             the softness nu the problem recommends; default 2
    couplings            {name: (value, observable, factor)}: U contains the term value * factor * observable
    phases               {name: (observable, low, high)}: the phase is low <= observable < high; a ladder that
                         never met one of them says so
    name, parameters     what is written into the file; parameters as plain numbers, strings, lists and dicts
    dims                 names of the axes of a configuration
    """

    def sample_prior(self, key: Array, n: int) -> Array:
        """n exact draws from pi, shape (n, *shape)."""
        ...

    def log_prior(self, x: Array) -> Array:
        """log pi of one configuration, a scalar; its additive constant is never used."""
        ...

    def energy(self, x: Array) -> Array:
        """U of one configuration, a scalar."""
        ...


@dataclass(frozen=True)
class SiteBasis:
    """The trivial basis, a configuration flattened: for a Gaussian prior with independent sites."""

    shape: tuple[int, ...]
    precision: Any

    def to_modes(self, x: Array) -> Array:
        return x.reshape(*x.shape[: x.ndim - len(self.shape)], -1)

    def from_modes(self, y: Array) -> Array:
        return y.reshape(*y.shape[:-1], *self.shape)


jax.tree_util.register_dataclass(SiteBasis, data_fields=["precision"], meta_fields=["shape"])
