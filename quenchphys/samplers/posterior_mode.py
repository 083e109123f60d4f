"""The mode of a posterior by Adam, and the curvature there: what a Laplace approximation is made of.

phi(x) = U(x) - log pi(x).  Its curvature is that of the prior plus that of the energy: the generalised Gauss-Newton matrix
J^T H J of a problem with U(x) = loss(predict(x)), J = d predict/dx and H the Hessian of the convex loss, which is never
negative; or the Hessian of U itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.extras import optional
from quenchphys.problem import ProblemView

Array = jax.Array

CURVATURES = ("gauss-newton", "hessian")
COLUMNS = 32  # of a curvature, computed at a time


class Descent(NamedTuple):
    """Positions of all starts in units of the prior's spread, and the state of Adam."""

    position: Array
    state: Any


class GaussianPrior(NamedTuple):
    """pi(x) = N(mean, precision^-1), on flattened sites, in double precision on the host."""

    mean: np.ndarray
    precision: np.ndarray
    log_determinant: float  # of the precision

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """log pi (n,) of configurations (n, D), normalised."""
        away = x - self.mean
        constant = 0.5 * self.log_determinant - 0.5 * len(self.mean) * np.log(2 * np.pi)
        return constant - 0.5 * np.einsum("ni,ij,nj->n", away, self.precision, away)


def flat(model: ProblemView, name: str, y: Array) -> Array:
    """`energy` or `log_prior` at flattened sites."""
    return getattr(model, name)(y.reshape(model.shape))


@jax.jit
def slope_and_curvature_of_prior(model: ProblemView, y: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of -log pi."""
    function = lambda y: -flat(model, "log_prior", y)  # noqa: E731
    return jax.grad(function)(y), columns(lambda v: jax.jvp(jax.grad(function), (y,), (v,))[1], len(y))


def gaussian_prior(model: ProblemView, draws: np.ndarray) -> GaussianPrior:
    """The prior as a Gaussian, refused where its curvature is not the same at two draws (2, D), or not positive."""
    found = [jax.device_get(slope_and_curvature_of_prior(model.as_argument(), jnp.asarray(y))) for y in draws]
    slope, precision = (np.asarray(part, np.float64) for part in found[0])
    scale = np.abs(precision).max()
    if not np.allclose(precision, found[1][1], atol=1e-3 * scale) or not np.isfinite(scale) or scale == 0:
        raise ValueError(
            "laplace needs a Gaussian prior, whose normalisation is known: the curvature of log_prior of this "
            f"{model.name} is not the same everywhere; use qp.quench"
        )
    precision = (precision + precision.T) / 2
    sign, log_determinant = np.linalg.slogdet(precision)
    if sign <= 0:
        raise ValueError(f"the prior of this {model.name} is flat or unbounded in some direction, so it has no Gaussian")
    return GaussianPrior(draws[0] - np.linalg.solve(precision, slope), precision, float(log_determinant))


@partial(jax.jit, static_argnames=("steps", "total", "learning_rate"))
def descend(
    model: ProblemView, mean: Array, spread: Array, at: Descent, steps: int, total: int, learning_rate: float
) -> tuple[Descent, Array]:
    """Some steps of Adam from every start, and phi (start,) after them."""
    adam = optimiser(total, learning_rate)

    def phi(y: Array) -> Array:
        x = mean + spread * y
        return flat(model, "energy", x) - flat(model, "log_prior", x)

    def step(at: Descent, _: None) -> tuple[Descent, None]:
        updates, state = adam.update(jax.grad(phi)(at.position), at.state, at.position)
        return Descent(at.position + updates, state), None

    at = jax.vmap(lambda one: jax.lax.scan(step, one, None, length=steps)[0])(at)
    return at, jax.vmap(phi)(at.position)


def optimiser(total: int, learning_rate: float) -> Any:
    """Adam with a constant rate for the first half, which then falls to zero: the last steps only settle."""
    optax = optional("optax", "qp.laplace", "rivals")
    half = total // 2
    fall = optax.cosine_decay_schedule(learning_rate, max(total - half, 1))
    return optax.adam(optax.join_schedules([optax.constant_schedule(learning_rate), fall], [half]))


def begin(start: Array, total: int, learning_rate: float) -> Descent:
    """The starts (start, D), in units of the prior's spread."""
    return Descent(start, jax.vmap(optimiser(total, learning_rate).init)(start))


@partial(jax.jit, static_argnames=("kind",))
def slope_and_curvature(model: ProblemView, x: Array, kind: str) -> tuple[Array, Array, Array]:
    """U, its gradient, and its curvature (D, D) at flattened sites."""
    energy = partial(flat, model, "energy")
    if kind == "hessian":
        product = lambda v: jax.jvp(jax.grad(energy), (x,), (v,))[1]  # noqa: E731
    else:
        assert model.predictions is not None
        predict, loss = model.predictions
        of_sites = lambda y: predict(y.reshape(model.shape))  # noqa: E731
        outputs, back = jax.vjp(of_sites, x)

        def product(v: Array) -> Array:
            """J^T H J v."""
            moved = jax.jvp(of_sites, (x,), (v,))[1]
            return back(jax.jvp(jax.grad(loss), (outputs,), (moved,))[1])[0]

    return energy(x), jax.grad(energy)(x), columns(product, len(x))


def columns(product: Any, dimension: int) -> Array:
    """The matrix of a linear map, a few columns at a time."""
    return jax.lax.map(product, jnp.eye(dimension), batch_size=min(COLUMNS, dimension))
