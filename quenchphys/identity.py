"""The identity of a problem: what it calls itself, and its values on a few fixed configurations.

A model may say nothing about itself, or say the same after its code was edited.  The values of its energy, prior and
observables give it away: they are compared at prior draws, at the same draws stretched threefold, far from the bulk of the
prior, and at the same draws shrunk to a tenth.  Processors of another kind round differently, so values that differ by no
more than rounding in single precision are the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.console.messages import one_line
from quenchphys.labels import labels_of
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.quick_compilation import QUICKLY
from quenchphys.prior_draws import energies_and_observables, fixed_draws
from quenchphys.problem import ProblemView, view

DRAWS = 4
SCALES = (1.0, 3.0, 0.1)
# Largest difference of two values that may be rounding, relative to the largest value at draws of the same scale.  Measured
# between instruction sets: at most 1e-6 (tests/quenchphys/test_identity.py).
ROUNDING = 1e-5
VALUES, OBSERVABLES = "values", "observables"  # entries that `difference` puts into words of their own
LONGEST = 80  # characters of a setting that are shown
NOTHING = "nothing"  # stands for a setting that is not there
_compiled: dict[str, Any] = {}  # programs by the digest of their text: other couplings need no other program
_remembered: ContextVar[list[tuple[Any, dict[str, Any]]] | None] = ContextVar("remembered", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Within it, the fingerprint of one and the same object is computed once; also a decorator of functions.

    An object may be changed between two studies, in ways that cannot be seen but by computing again, and so nothing is
    remembered for longer than one study.
    """
    known = _remembered.get()
    token = _remembered.set([] if known is None else known)
    try:
        yield
    finally:
        _remembered.reset(token)


def fingerprint(problem: Any) -> dict[str, Any]:
    """Everything by which one problem can be told from another, as plain numbers, texts, lists and dicts.

    Two runs between whose fingerprints there is no `difference` sample the same problem.  The values are computed in
    single precision on the host, whatever the run itself uses.

    Parameters
    ----------
    problem
        As in `quench`.

    Returns
    -------
    dict
        model, parameters, couplings, phases, shape, dtype, observables (their names), and values: lists of numbers by name.

    Examples
    --------
    >>> fingerprint(lattices.phi6(L=8, mu2=2.2957))["model"]
    'phi6'
    """
    known = _remembered.get()
    if known is None:
        return _fingerprint(problem)
    for same, found in known:
        if same is problem:
            return found
    known.append((problem, _fingerprint(problem)))
    return known[-1][1]


def _fingerprint(problem: Any) -> dict[str, Any]:
    problem = view(problem)
    try:
        found = _evaluate(problem)
    except Exception as cause:  # of the user's functions
        kind = type(problem.problem).__name__
        raise ValueError(f"the functions of this {kind} fail when they are called: {one_line(cause)}") from cause
    configurations = found.pop("configurations")
    return {
        **labels_of(problem),
        "shape": list(configurations.shape[1:]),
        "dtype": str(configurations.dtype),
        OBSERVABLES: sorted(name.removeprefix("observable ") for name in found if name.startswith("observable ")),
        VALUES: {name: _numbers(value) for name, value in found.items()},
    }


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first thing in which two requests differ, in words; empty if they are the same.

    Parameters
    ----------
    before, now
        Plain dicts, nested as they may be; fingerprints anywhere within them.  Their values may differ by rounding.

    Returns
    -------
    str
        Part of a sentence, such as "seed was 3 and is now 4".

    Examples
    --------
    >>> difference({"seed": 3}, {"seed": 4})
    'seed was 3 and is now 4'
    """
    for name in {**now, **before}:
        was, is_now = before.get(name, NOTHING), now.get(name, NOTHING)
        if _equal(was, is_now):
            continue
        if isinstance(was, Mapping) and isinstance(is_now, Mapping):
            words = _other_values(was, is_now) if name == VALUES else difference(was, is_now)
            if words:
                return words
            continue
        if name == OBSERVABLES and isinstance(was, list) and isinstance(is_now, list):
            return _other_observables(was, is_now)
        return f"{name} was {_short(was)} and is now {_short(is_now)}"
    return ""


def _evaluate(problem: ProblemView) -> dict[str, np.ndarray]:
    """Compile and compute `_values`."""
    keep_compiled_programs()  # a study begins with this
    host = _host()
    with own_settings(), jax.default_device(host):
        leaves, structure = jax.tree.flatten(problem.as_argument())
        # Traced anew by every call: an object that was changed in place, or whose code was, must not get its old values.
        lowered = jax.jit(lambda leaves: _values(jax.tree.unflatten(structure, leaves))).lower(leaves)
        program = _digest(f"{lowered.as_text()}{lowered.out_tree}")
        if program not in _compiled:
            _compiled[program] = lowered.compile(compiler_options=QUICKLY if host else None)
        return jax.device_get(_compiled[program](leaves))


def _values(problem: ProblemView) -> dict[str, Any]:
    """Values at the fixed configurations, by name."""
    draws = fixed_draws(problem, DRAWS, seed=0)
    x = jnp.concatenate([jnp.asarray(scale, draws.dtype) * draws for scale in SCALES])
    energy, gradient = problem.energy_and_grad(x)
    seen = energies_and_observables(problem, x)
    found = {
        "configurations": x,
        "energy": seen.pop("energy"),
        "energy beside its gradient": energy,
        "gradient of the energy": gradient,
        "log prior": jax.vmap(problem.log_prior)(x),
        "prior draws": draws,
    }
    if problem.basis is not None:
        found["prior precision"] = jnp.asarray(problem.basis.precision)
    return found | {f"observable {name}": seen[name] for name in sorted(seen)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _numbers(value: Any) -> list[float]:
    """An array (configuration, ...) in few numbers: itself if it is one each, else a projection and the size of each."""
    array = np.asarray(value, np.float64)
    rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    if rows.shape[1] != 1:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], rows.shape[1])
        with np.errstate(all="ignore"):  # values may be infinite or NaN
            rows = np.stack([rows @ signs, np.sqrt(np.sum(rows * rows, axis=1))], axis=1)
    return [float(f"{number:.8g}") for number in rows.T.reshape(-1)]


def _equal(was: Any, is_now: Any) -> bool:
    """Equality of plain values, in which a NaN equals itself and 1 equals 1.0."""
    if isinstance(was, float) and isinstance(is_now, float) and math.isnan(was):
        return math.isnan(is_now)
    if isinstance(was, list) and isinstance(is_now, list):
        return len(was) == len(is_now) and all(map(_equal, was, is_now))
    return bool(was == is_now)


def _rounded_alike(was: Any, is_now: Any) -> bool:
    """Whether two lists of values differ by no more than rounding; each run of `DRAWS` numbers has one scale."""
    if not (isinstance(was, list) and isinstance(is_now, list) and len(was) == len(is_now)):
        return False
    for begin in range(0, len(was), DRAWS):
        a, b = (np.asarray(values[begin : begin + DRAWS], float) for values in (was, is_now))
        known = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~known], b[~known], equal_nan=True):
            return False
        largest = np.max(np.abs([a[known], b[known]]), initial=0.0)
        if np.any(np.abs(a[known] - b[known]) > ROUNDING * largest):
            return False
    return True


def _host() -> jax.Device | None:
    """The processor of the machine, if JAX may use it."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


def _other_values(was: Mapping[str, Any], is_now: Mapping[str, Any]) -> str:
    changed = [name for name in {**is_now, **was} if not _rounded_alike(was.get(name), is_now.get(name))]
    return f"the {changed[0]} of the problem has other values than before" if changed else ""


def _other_observables(was: list[str], is_now: list[str]) -> str:
    if new := [name for name in is_now if name not in was]:
        return f"the problem has an observable {new[0]!r} that it did not have before"
    return f"the problem no longer has the observable {next(name for name in was if name not in is_now)!r}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
