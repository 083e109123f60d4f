"""What the engine asks of a model: the `Problem` protocol, and the checks a model must pass before it is sampled.

A problem is a prior pi(x) that can be sampled exactly and an energy U(x); its partition function is
Z(beta) = E_pi[exp(-beta U)].  One configuration x is an array of any fixed shape.

Problems are plain objects, matched by structure: nothing here has to be imported or inherited.  A problem that is
also a JAX pytree (its couplings as leaves, its geometry as static data) is passed to the compiled program as an
argument, so that another coupling does not compile again; any other object is compiled in as a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
    log_prior_and_grad(x)
                         log pi, up to a constant, and its gradient of a batch, without the basis; default: from `log_prior`
    observe(x)           dict of scalars of one configuration, recorded for every particle; default: none
    symmetries           tuple of isometries of one configuration that keep prior and energy, such as x -> -x
    basis                a `Basis`; default: the sites themselves, with the prior through `log_prior`
    stop                 {"energy": E}, {"below": share of Z} or {"dlogz": d}: how deep a ladder must go; default
                         {"dlogz": -3}
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


@dataclass(frozen=True, eq=False)
class ProblemView:
    """A problem with everything it may leave out: the one place where optional attributes are read.

    It is a JAX pytree.  A problem that is one too is passed to compiled programs with its couplings as leaves; any other
    object is part of the static structure, and compiled in as a constant.
    """

    problem: Any
    on_sites: bool = False
    """Sample the sites themselves, without the problem's basis."""

    # What is sampled: called inside compiled code.

    def sample_prior(self, key: Array, n: int) -> Array:
        return self.problem.sample_prior(key, n)

    def log_prior(self, x: Array) -> Array:
        return self.problem.log_prior(x)

    def energy(self, x: Array) -> Array:
        return self.problem.energy(x)

    def energy_and_grad(self, x: Array) -> tuple[Array, Array]:
        """U (n,) and dU/dx (n, *shape) of a batch."""
        own = getattr(self.problem, "energy_and_grad", None)
        return (own or jax.vmap(jax.value_and_grad(self.problem.energy)))(x)

    def log_prior_and_grad(self, x: Array) -> tuple[Array, Array]:
        """log pi (n,), up to a constant, and its gradient (n, *shape) of a batch."""
        own = getattr(self.problem, "log_prior_and_grad", None)
        return (own or jax.vmap(jax.value_and_grad(self.problem.log_prior)))(x)

    def observe(self, x: Array) -> Mapping[str, Array]:
        """Observables of one configuration."""
        own = getattr(self.problem, "observe", None)
        return {} if own is None else own(x)

    @property
    def symmetries(self) -> tuple[Callable[[Array], Array], ...]:
        return tuple(getattr(self.problem, "symmetries", ()))

    @property
    def basis(self) -> Basis | None:
        return None if self.on_sites else getattr(self.problem, "basis", None)

    # What a run should know beforehand: read on the host.

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one configuration, from an abstract prior draw."""
        return jax.eval_shape(lambda key: self.problem.sample_prior(key, 1), jax.random.key(0)).shape[1:]

    @property
    def name(self) -> str:
        return str(getattr(self.problem, "name", type(self.problem).__name__))

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(getattr(self.problem, "parameters", {}))

    @property
    def couplings(self) -> dict[str, tuple[float, str, float]]:
        return dict(getattr(self.problem, "couplings", {}))

    @property
    def phases(self) -> dict[str, tuple[str, float, float]]:
        return dict(getattr(self.problem, "phases", {}))

    @property
    def stop(self) -> Mapping[str, float] | None:
        return getattr(self.problem, "stop", None)

    @property
    def softness(self) -> float | None:
        """The softness the problem recommends."""
        return getattr(self.problem, "softness", None)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes of a configuration."""
        return tuple(getattr(self.problem, "dims", ())) or tuple(f"axis_{i}" for i in range(len(self.shape)))

    @property
    def moves_on_sites(self) -> bool:
        """Whether chains may leave the basis: the problem has one, and gives the gradient of its prior without it."""
        return hasattr(self.problem, "basis") and hasattr(self.problem, "log_prior_and_grad")

    def without_basis(self) -> ProblemView:
        return replace(self, on_sites=True)

    def as_argument(self) -> ProblemView:
        """In the form compiled programs take: real leaves in float32."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32) if _is_real(leaf) else leaf, self)


def _flatten(view: ProblemView) -> tuple[tuple[Any, ...], tuple[Any, bool]]:
    if jax.tree_util.all_leaves([view.problem]):
        return (), (view.problem, view.on_sites)
    return (view.problem,), (None, view.on_sites)


def _unflatten(static: tuple[Any, bool], children: tuple[Any, ...]) -> ProblemView:
    problem, on_sites = static
    return ProblemView(children[0] if children else problem, on_sites)


jax.tree_util.register_pytree_node(ProblemView, _flatten, _unflatten)


def view(problem: Any) -> ProblemView:
    """The view of a problem, or the view itself."""
    return problem if isinstance(problem, ProblemView) else ProblemView(problem)


def _is_real(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


def check(problem: Any) -> None:
    """Refuse, in one sentence, a problem the engine cannot sample.  Nothing is computed yet, only shapes."""
    for name in ("sample_prior", "log_prior", "energy"):
        if not callable(getattr(problem, name, None)):
            raise TypeError(
                f"a problem needs the functions sample_prior, log_prior and energy; this {_kind(problem)} has no {name}"
            )
    draws = _shape_of_result(problem, "sample_prior", lambda: problem.sample_prior(jax.random.key(0), 7))
    if not hasattr(draws, "shape") or draws.shape[:1] != (7,) or len(draws.shape) < 2:
        raise ValueError(
            f"sample_prior(key, n) must return an array (n, ...) with one configuration in each row; "
            f"for n=7 it returned {_describe(draws)}"
        )
    if not jnp.issubdtype(draws.dtype, jnp.floating):
        raise ValueError(f"sample_prior must return floating-point configurations; it returned {_describe(draws)}")
    one = jax.ShapeDtypeStruct(draws.shape[1:], draws.dtype)
    for name in ("energy", "log_prior"):
        value = _shape_of_result(problem, name, getattr(problem, name), one)
        if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(
                f"{name}(x) must return one real number for a configuration of shape {one.shape}; "
                f"it returned {_describe(value)}"
            )
    if not hasattr(problem, "energy_and_grad"):
        _shape_of_result(problem, "the gradient of energy", jax.grad(problem.energy), one)
    if hasattr(problem, "observe"):
        seen = _shape_of_result(problem, "observe", problem.observe, one)
        bad = [k for k, v in seen.items() if getattr(v, "shape", None) != ()] if isinstance(seen, Mapping) else None
        if bad is None or bad:
            raise ValueError(
                f"observe(x) must return a dict of scalars; it returned {_describe(seen[bad[0]] if bad else seen)}"
                + (f" for {bad[0]!r}" if bad else "")
            )
        if taken := RESERVED_NAMES & set(seen):
            raise ValueError(f"an observable may not be called {sorted(taken)[0]!r}: the record uses that name itself")


def check_energies(energy: np.ndarray, undefined: np.ndarray) -> None:
    """Refuse energies of prior draws from which no ladder can start."""
    if undefined.all():
        raise ValueError(f"the energy is NaN on all {undefined.size} prior draws; it must be a number on most of them")
    finite = np.isfinite(energy)
    if not finite.any(axis=-1).all() or finite.mean() < 0.5:
        raise ValueError(
            f"the energy is infinite or NaN on {np.sum(~finite)} of {energy.size} prior draws; "
            "it must be finite on at least half of them"
        )
    if np.any(energy == -np.inf):
        raise ValueError(
            f"the energy is -infinity on {np.sum(energy == -np.inf)} prior draws; it must be bounded below"
        )
    if np.ptp(energy[finite]) == 0:
        raise ValueError(
            f"the energy is {energy[finite][0]:g} on every prior draw; it must depend on the configuration"
        )


def _shape_of_result(problem: Any, name: str, function: Any, *args: Any) -> Any:
    try:
        return jax.eval_shape(function, *args)
    except Exception as error:
        cause = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{name} of this {_kind(problem)} fails when it is called: {cause}") from error


def _kind(problem: Any) -> str:
    return type(problem).__name__


def _describe(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return f"a {type(value).__name__}"
