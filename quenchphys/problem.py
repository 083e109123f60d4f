"""The `Problem` protocol: what the engine needs of a model, how it reads it, and the checks before it is sampled.

A problem is a prior pi(x) that can be sampled exactly and an energy U(x); its partition function is
Z(beta) = E_pi[exp(-beta U)].  One configuration x is an array of any fixed shape.

Problems are plain objects, matched by structure: nothing here has to be imported or inherited.  A problem that is
also a JAX pytree (its couplings as leaves, its geometry as static data) is passed to the compiled program as an
argument, so that another coupling does not compile again; any other object is compiled in as a constant, and again when one
of its attributes was changed (see `quenchphys.object_state`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.console.messages import one_line
from quenchphys.object_state import ObjectState

Array = jax.Array

# Names that the record itself uses beside the observables of a problem.
RESERVED_NAMES = frozenset({"energy", "log_weight", "parent", "replica", "level", "particle", "draw", "sample"})


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
    phases                  {name: (observable, low, high)}: the phase is low <= observable < high, and a ladder that never
                            met one of them says so; default: none
    name                    what the model is called in files; default: the name of its class
    parameters              what is written into files: a dict of plain numbers, strings, lists and dicts; default: empty
    dims                    names of the axes of a configuration; default: axis_0, axis_1, ...

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


def check_shapes(problem: Any) -> None:
    """Refuse, in one sentence, a problem the engine cannot sample; only shapes are computed.

    Parameters
    ----------
    problem
        What a user passes to a sampler.

    Raises
    ------
    TypeError
        If one of the three functions of a `Problem` is missing.
    ValueError
        If a function fails, or returns something of a wrong shape or type.
    """
    problem = problem.problem if isinstance(problem, ProblemView) else problem
    for name in ("sample_prior", "log_prior", "energy"):
        if not callable(getattr(problem, name, None)):
            kind = type(problem).__name__
            raise TypeError(
                f"a problem needs the functions sample_prior, log_prior and energy; this {kind} has no {name}"
            )
    model = view(problem)
    configuration = _check_prior(model)
    _check_scalar(model, "energy", model.energy, configuration)
    _check_scalar(model, "log_prior", model.log_prior, configuration)
    for name in ("energy", "log_prior"):
        _check_gradient(model, name, configuration)
    _check_observables(model, configuration)
    own = getattr(problem, "symmetries", ())
    if not isinstance(own, list | tuple) or not all(map(callable, own)):
        raise TypeError(f"symmetries must be a tuple of functions of one configuration; {own!r} was given")
    for number, symmetry in enumerate(own):
        moved = _result(model, f"symmetry {number}", symmetry, configuration)
        if getattr(moved, "shape", None) != configuration.shape:
            raise ValueError(
                f"symmetry {number} must return a configuration of shape {configuration.shape}; it returned "
                f"{_in_words(moved)}"
            )
    _check_basis(model, configuration)


def _check_prior(problem: ProblemView) -> jax.ShapeDtypeStruct:
    """Shape and type of one configuration."""
    draws = _result(problem, "sample_prior", lambda: problem.sample_prior(jax.random.key(0), 7))
    if not hasattr(draws, "shape") or draws.shape[:1] != (7,):
        raise ValueError(
            f"sample_prior(key, n) must return an array (n, ...) with one configuration in each row; "
            f"for n=7 it returned {_in_words(draws)}"
        )
    if not jnp.issubdtype(draws.dtype, jnp.floating) or jnp.finfo(draws.dtype).bits < 32:
        raise ValueError(f"sample_prior must return floating-point configurations (float32); it returned {_in_words(draws)}")
    return jax.ShapeDtypeStruct(draws.shape[1:], draws.dtype)


def _check_scalar(
    problem: ProblemView, name: str, function: Callable[[Array], Array], configuration: jax.ShapeDtypeStruct
) -> None:
    value = _result(problem, name, function, configuration)
    if getattr(value, "shape", None) != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ValueError(
            f"{name}(x) must return one real number for a configuration of shape {configuration.shape}; "
            f"it returned {_in_words(value)}"
        )


def _check_gradient(problem: ProblemView, name: str, configuration: jax.ShapeDtypeStruct) -> None:
    """A function of one configuration must have a gradient, its own or that of JAX."""
    own = getattr(problem.problem, f"{name}_and_grad", None)
    if own is None:
        _result(problem, f"the gradient of {name}", jax.grad(getattr(problem, name)), configuration)
        return
    batch = jax.ShapeDtypeStruct((7, *configuration.shape), configuration.dtype)
    found = _result(problem, f"{name}_and_grad", own, batch)
    shapes = [getattr(part, "shape", None) for part in found] if isinstance(found, tuple | list) else None
    if shapes != [(7,), batch.shape]:
        raise ValueError(
            f"{name}_and_grad(x) must return values of shape (7,) and gradients of shape {batch.shape} for 7 "
            f"configurations; it returned {', '.join(map(_in_words, found)) if shapes else _in_words(found)}"
        )


def _check_basis(problem: ProblemView, configuration: jax.ShapeDtypeStruct) -> None:
    basis = problem.basis
    if basis is None:
        return
    for name in ("to_modes", "from_modes", "precision"):
        if not hasattr(basis, name):
            raise TypeError(f"a basis has to_modes, from_modes and precision; {basis!r} has no {name}")
    dimension = math.prod(configuration.shape)
    batch = jax.ShapeDtypeStruct((7, *configuration.shape), configuration.dtype)
    modes = _result(problem, "to_modes of the basis", basis.to_modes, batch)
    if getattr(modes, "shape", None) != (7, dimension):
        raise ValueError(
            f"to_modes of the basis must turn 7 configurations into an array (7, {dimension}); it returned "
            f"{_in_words(modes)}"
        )
    back = _result(problem, "from_modes of the basis", basis.from_modes, modes)
    if getattr(back, "shape", None) != batch.shape:
        raise ValueError(
            f"from_modes of the basis must give 7 configurations of shape {configuration.shape} back; "
            f"it returned {_in_words(back)}"
        )
    if jnp.shape(basis.precision) != (dimension,):
        raise ValueError(
            f"the precision of the basis must be one number for each of the {dimension} coordinates; "
            f"it has the shape {jnp.shape(basis.precision)}"
        )


def _check_observables(problem: ProblemView, configuration: jax.ShapeDtypeStruct) -> None:
    observed = _result(problem, "observe", problem.observe, configuration)
    if not isinstance(observed, Mapping):
        raise ValueError(f"observe(x) must return a dict of scalars; it returned {_in_words(observed)}")
    for name, value in observed.items():
        if getattr(value, "shape", None) != ():
            raise ValueError(f"observe(x) must return a dict of scalars; it returned {_in_words(value)} for {name!r}")
    if taken := RESERVED_NAMES & set(observed):
        raise ValueError(f"an observable may not be called {sorted(taken)[0]!r}: the record uses that name itself")


def _result(problem: ProblemView, name: str, function: Callable[..., Any], *args: Any) -> Any:
    """Shapes and types of what a function of the problem returns."""
    try:
        return jax.eval_shape(function, *args)
    except Exception as error:
        kind = type(problem.problem).__name__
        raise ValueError(f"{name} of this {kind} fails when it is called: {one_line(error)}") from error


def _in_words(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return f"a {type(value).__name__}"


def check_energies(energy: np.ndarray, undefined: np.ndarray) -> None:
    """Refuse energies of prior draws from which no ladder can start.

    Parameters
    ----------
    energy
        (replica, draw), infinite where it is not defined.
    undefined
        Where it was NaN.
    """
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
