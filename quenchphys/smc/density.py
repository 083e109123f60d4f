"""The density of one level, as the kernels use it: points with energy and gradients, in the sampled coordinates.

Sampled coordinates y are those of the problem's basis, where the prior is diagonal, or the flattened sites.
Points carry U and grad U separately from the level, so going to another level costs no evaluation:

    log rho_p(y) = log pi(y) + log f_p(U(y)),     score = grad log pi + (d log f_p/dU) grad U.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from quenchphys.parallel.reductions import over_coordinates
from quenchphys.problem import ProblemView
from quenchphys.smc.levels import Family

Array = jax.Array


class Point(NamedTuple):
    """Positions (..., D) with what was computed there."""

    position: Array
    energy: Array
    energy_grad: Array
    log_prior: Array
    log_prior_grad: Array


def positions(problem: ProblemView, x: Array) -> Array:
    """Configurations (..., *shape) -> sampled coordinates (..., D)."""
    if problem.basis is not None:
        return problem.basis.to_modes(x)
    rank = len(problem.shape)
    return x.reshape(*x.shape[:-rank], -1) if rank else x[..., None]


def configurations(problem: ProblemView, y: Array) -> Array:
    """Sampled coordinates (..., D) -> configurations (..., *shape)."""
    basis = problem.basis
    return basis.from_modes(y) if basis is not None else y.reshape(*y.shape[:-1], *problem.shape)


def prior_scale(problem: ProblemView, dimension: int) -> Array:
    """The prior's standard deviation of each coordinate, known if the problem has a basis; else one."""
    basis = problem.basis
    return jnp.ones(dimension) if basis is None else jax.lax.rsqrt(jnp.asarray(basis.precision, jnp.float32))


def evaluate(problem: ProblemView, y: Array) -> Point:
    """Energy, prior and their gradients at positions (..., D)."""
    lead = y.shape[:-1]
    x = configurations(problem, y.reshape(-1, y.shape[-1]))
    energy, gradient = problem.energy_and_grad(x)
    basis = problem.basis
    if basis is not None:
        log_prior_grad = -basis.precision * y
        log_prior = 0.5 * over_coordinates(log_prior_grad * y)
    else:
        log_prior, prior_gradient = problem.log_prior_and_grad(x)
        log_prior, log_prior_grad = log_prior.reshape(lead), positions(problem, prior_gradient).reshape(y.shape)
    return Point(y, energy.reshape(lead), positions(problem, gradient).reshape(y.shape), log_prior, log_prior_grad)


class Density(NamedTuple):
    """pi(y) f_p(U(y)) at one parameter p."""

    problem: ProblemView
    family: Family
    parameter: Array

    def evaluate(self, y: Array) -> Point:
        """Energy, prior and their gradients at positions (..., D)."""
        return evaluate(self.problem, y)

    def score(self, point: Point) -> Array:
        """grad log rho at points that were evaluated, (..., D)."""
        slope = self.family.slope(point.energy, self.parameter)
        return point.log_prior_grad + slope[..., None] * point.energy_grad

    @property
    def stiffness(self) -> Array:
        """By how much the prior's precision of each coordinate exceeds the smallest; zero without a basis."""
        basis = self.problem.basis
        if basis is None:
            return jnp.zeros(())
        precision = jnp.asarray(basis.precision, jnp.float32)
        return precision - jnp.min(precision)

    def log_change(self, point: Point, proposal: Point) -> Array:
        """log rho(proposal) - log rho(point)."""
        change = self.family.log_change(point.energy, proposal.energy, self.parameter)
        return change + proposal.log_prior - point.log_prior


def choose(accept: Array, proposal: Point, point: Point) -> Point:
    """Elementwise: the proposal where accepted, else the point."""
    return jax.tree.map(
        lambda new, old: jnp.where(accept.reshape(accept.shape + (1,) * (new.ndim - accept.ndim)), new, old),
        proposal,
        point,
    )
