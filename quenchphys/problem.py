"""The `Problem` protocol: what the engine needs of a model, and how it reads it.

A problem is a prior pi(x) that can be sampled exactly and an energy U(x); its partition function is
Z(beta) = E_pi[exp(-beta U)].  One configuration x is an array of any fixed shape.

Problems are plain objects, matched by structure: nothing here has to be imported or inherited.  A problem that is
also a JAX pytree (its couplings as leaves, its geometry as static data) is passed to the compiled program as an
argument, so that another coupling does not compile again; any other object is compiled in as a constant, and again when one
of its attributes was changed (see `quenchphys.object_state`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from quenchphys.object_state import ObjectState

Array = jax.Array


class Basis(Protocol):
    """Orthonormal coordinates y in which a Gaussian prior of mean zero is diagonal.

    Examples
    --------
    The Fourier modes of a free field are one, and so is `SiteBasis`:
    >>> basis = lattices.phi6(L=8, mu2=2.2957).basis
    >>> basis.to_modes(jnp.ones((8, 8))).shape, basis.precision.shape
    ((64,), (64,))
    """

    precision: Array
    """(D,), the prior precision of every coordinate: log pi = -1/2 sum_j precision_j y_j^2 + const."""

    def to_modes(self, x: Array) -> Array:
        """Configurations (..., *shape) -> coordinates (..., D)."""
        ...

    def from_modes(self, y: Array) -> Array:
        """Coordinates (..., D) -> configurations (..., *shape): the transpose and inverse of `to_modes`."""
        ...


class Problem(Protocol):
    """What every problem has: three functions, written in JAX.

    Optional attributes, with the default of a problem that does not have them; `ProblemView` is where they are read:

    energy_and_grad(x)      U and dU/dx of a batch (n, *shape) at once; default: `jax.value_and_grad` of `energy`
    log_prior_and_grad(x)   log pi, up to a constant, and its gradient of a batch, on the sites; default: from `log_prior`
    observe(x)              dict of scalars of one configuration, recorded for every particle; default: none
    symmetries              tuple of isometries of one configuration that keep prior and energy, such as x -> -x; default:
                            none
    basis                   a `Basis`; default: the sites themselves, with the prior through `log_prior`
    stop                    {"energy": E}, {"below": share of Z} or {"dlogz": d}: how deep a ladder must go; default:
                            {"dlogz": -3}
    softness                the softness nu the problem recommends; default: 2
    couplings               {name: (value, observable, factor)}: U contains the term value * factor * observable; default:
                            none
    with_coupling(name, v)  the same problem with the value v of a coupling, by which `check` compares what `couplings` says;
                            default: from the constructor, where it has an argument of that name
    phases                  {name: (observable, low, high)}: the phase is low <= observable < high, and a ladder that never
                            met one of them says so; default: none
    name                    what the model is called in files; default: the name of its class
    parameters              what is written into files: a dict of plain numbers, strings, lists and dicts; default: empty
    dims                    names of the axes of a configuration; default: axis_0, axis_1, ...
    predict(x), loss(o)     with U(x) = loss(predict(x)) and a loss that is convex in the predictions: the curvature that
                            `laplace` takes; default: none

    Examples
    --------
    >>> class Well:
    ...     def sample_prior(self, key, n):
    ...         return jax.random.normal(key, (n, 3))
    ...
    ...     def log_prior(self, x):
    ...         return -jnp.vdot(x, x) / 2
    ...
    ...     def energy(self, x):
    ...         return jnp.vdot(x, x)
    >>> ladder = qp.quench(Well(), particles=200)
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
    """The trivial basis, a configuration flattened: for a Gaussian prior with independent sites.

    Parameters
    ----------
    shape
        Shape of one configuration.
    precision
        (D,), the prior precision 1/variance of every site, in the order of the flattened configuration.

    Examples
    --------
    A prior under which the 4 x 4 sites are standard normal:
    >>> basis = qp.SiteBasis((4, 4), jnp.ones(16))
    """

    shape: tuple[int, ...]
    precision: Any

    def to_modes(self, x: Array) -> Array:
        """Configurations (..., *shape) -> coordinates (..., D)."""
        return x.reshape(*x.shape[: x.ndim - len(self.shape)], -1)

    def from_modes(self, y: Array) -> Array:
        """Coordinates (..., D) -> configurations (..., *shape)."""
        return y.reshape(*y.shape[:-1], *self.shape)


jax.tree_util.register_dataclass(SiteBasis, data_fields=["precision"], meta_fields=["shape"])


@dataclass(frozen=True, eq=False)
class ProblemView:
    """A problem together with the defaults of what it leaves out: the one place where optional attributes are read.

    The view is a JAX pytree.  If the problem is one too, it is passed to compiled programs with its couplings as leaves; any
    other object is part of the static structure, and compiled in as a constant; programs are kept by its state, so that an
    object that was changed is compiled again.

    Parameters
    ----------
    problem
        What the user passed; see `Problem` for its optional attributes and their defaults.
    on_sites
        Sample the sites themselves, without the problem's basis.
    state
        The state of a problem that is compiled in, where it was taken; see `as_argument`.

    Examples
    --------
    >>> model = view(qp.targets.gaussian(3))
    >>> model.name, model.shape, model.phases
    ('gaussian', (3,), {})
    """

    problem: Problem
    on_sites: bool = False
    state: ObjectState | None = None

    def defines(self, name: str) -> bool:
        """Whether the problem itself has an attribute."""
        return hasattr(self.problem, name)

    # What is sampled: called inside compiled code.

    def sample_prior(self, key: Array, n: int) -> Array:
        """n exact draws from pi, shape (n, *shape)."""
        return self.problem.sample_prior(key, n)

    def log_prior(self, x: Array) -> Array:
        """log pi of one configuration, up to a constant."""
        return self.problem.log_prior(x)

    def energy(self, x: Array) -> Array:
        """U of one configuration."""
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
        """Isometries of one configuration that keep prior and energy."""
        return tuple(getattr(self.problem, "symmetries", ()))

    @property
    def basis(self) -> Basis | None:
        """Coordinates in which the prior is diagonal; None: the flattened sites are sampled."""
        return None if self.on_sites else getattr(self.problem, "basis", None)

    # What a run and its file need to know: read on the host.

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one configuration, from an abstract prior draw."""
        return jax.eval_shape(lambda key: self.problem.sample_prior(key, 1), jax.random.key(0)).shape[1:]

    @property
    def name(self) -> str:
        """What the model is called in files and reports."""
        return str(getattr(self.problem, "name", type(self.problem).__name__))

    @property
    def parameters(self) -> dict[str, Any]:
        """Plain data written into files."""
        return dict(getattr(self.problem, "parameters", {}))

    @property
    def couplings(self) -> dict[str, tuple[float, str, float]]:
        """{name: (value, observable, factor)}: U contains the term value * factor * observable."""
        return dict(getattr(self.problem, "couplings", {}))

    @property
    def phases(self) -> dict[str, tuple[str, float, float]]:
        """{name: (observable, low, high)}: the phase is low <= observable < high."""
        return dict(getattr(self.problem, "phases", {}))

    @property
    def stop(self) -> Mapping[str, float] | None:
        """How deep a ladder must go, as plain data (see `stopping.suggested`); None if the problem does not say."""
        return getattr(self.problem, "stop", None)

    @property
    def softness(self) -> float | None:
        """The softness the problem recommends; None if it does not."""
        return getattr(self.problem, "softness", None)

    @property
    def predictions(self) -> tuple[Callable[[Array], Any], Callable[[Any], Array]] | None:
        """(predict, loss) with U(x) = loss(predict(x)), loss convex; None if the problem does not have both."""
        predict, loss = (getattr(self.problem, name, None) for name in ("predict", "loss"))
        return (predict, loss) if callable(predict) and callable(loss) else None

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes of a configuration."""
        return tuple(getattr(self.problem, "dims", ())) or tuple(f"axis_{i}" for i in range(len(self.shape)))

    @property
    def moves_on_sites(self) -> bool:
        """Whether chains can do without the basis: the problem has one, and gives the gradient of its prior on sites."""
        return self.defines("basis") and self.defines("log_prior_and_grad")

    def without_basis(self) -> ProblemView:
        """The same problem, sampled on its sites."""
        return replace(self, on_sites=True)

    def as_argument(self) -> ProblemView:
        """The view as compiled programs take it: real leaves in float32, and the state of an object that has no leaves."""
        if self.is_constant:
            return replace(self, state=ObjectState(self.problem))
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32) if _is_real(leaf) else leaf, self)

    @property
    def is_constant(self) -> bool:
        """Whether the problem is not a pytree, so that programs have it compiled in."""
        return jax.tree_util.all_leaves([self.problem])


@dataclass(frozen=True, eq=False)
class Constant:
    """A problem that is compiled in as a constant, and its state at that time, by which the program is kept."""

    problem: Problem
    state: ObjectState

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.state == other.state

    def __hash__(self) -> int:
        return hash(self.state)


Static = tuple[Constant | None, bool]


# A problem that is no pytree is a leaf of itself: it becomes static.
def _flatten(view: ProblemView) -> tuple[tuple[Problem, ...], Static]:
    if view.is_constant:
        return (), (Constant(view.problem, view.state or ObjectState(view.problem)), view.on_sites)
    return (view.problem,), (None, view.on_sites)


def _unflatten(static: Static, children: tuple[Problem, ...]) -> ProblemView:
    constant, on_sites = static
    if constant is not None:
        return ProblemView(constant.problem, on_sites, constant.state)
    return ProblemView(children[0], on_sites)


jax.tree_util.register_pytree_node(ProblemView, _flatten, _unflatten)


def view(problem: Any) -> ProblemView:
    """The view of a problem; a view is returned as it is."""
    return problem if isinstance(problem, ProblemView) else ProblemView(problem)


def _is_real(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
