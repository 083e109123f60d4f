"""What the engine needs of a problem: its functions, the shapes they return, and names that exist."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from quenchphys.console.messages import one_line
from quenchphys.problem import ProblemView, view

Array = jax.Array

# Names that the record itself uses beside the observables of a problem.
RESERVED_NAMES = frozenset({"energy", "log_weight", "parent", "replica", "level", "particle", "draw", "sample"})


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


def check_names(problem: ProblemView) -> None:
    """Refuse phases and couplings that name an observable which is not recorded."""
    one = jax.ShapeDtypeStruct(problem.shape, jnp.float32)
    recorded = sorted({"energy", *jax.eval_shape(problem.observe, one)})
    needed = {f"phase {name!r}": phase[0] for name, phase in problem.phases.items()}
    needed |= {f"coupling {name!r}": term[1] for name, term in problem.couplings.items()}
    for what, observable in needed.items():
        if observable not in recorded:
            raise ValueError(
                f"the {what} is about the observable {observable!r}, which is not recorded; recorded are "
                f"{', '.join(recorded)}"
            )
