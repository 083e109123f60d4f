"""The identity of a problem: what it calls itself, and digests of its values on a few fixed configurations.

A model may say nothing about itself, or say the same after its code was edited.  The values of its energy, prior and
observables give it away: they are compared bit by bit, at prior draws, at the same draws stretched threefold, far from the
bulk of the prior, and at the same draws shrunk to a tenth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenchphys.console.messages import one_line
from quenchphys.labels import labels_of
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.quick_compilation import QUICKLY
from quenchphys.prior_draws import energies_and_observables, fixed_draws
from quenchphys.problem import ProblemView, view

DRAWS = 4
SCALES = (1.0, 3.0, 0.1)
VALUES, OBSERVABLES = "values", "observables"  # entries that `difference` puts into words of their own
LONGEST = 80  # characters of a setting that are shown
_compiled: dict[str, Any] = {}  # programs by the digest of their text: other couplings need no other program


def fingerprint(problem: Any) -> dict[str, Any]:
    """Everything by which one problem can be told from another, as plain numbers, texts, lists and dicts.

    Two runs whose fingerprints are equal sample the same problem.  The values are computed in single precision on the
    host, whatever the run itself uses; another version of JAX may round them differently.

    Parameters
    ----------
    problem
        As in `quench`.

    Returns
    -------
    dict
        model, parameters, couplings, phases, shape, dtype, observables (their names), and values: digests by name.

    Examples
    --------
    >>> fingerprint(lattices.phi6(L=8, mu2=2.2957))["model"]
    'phi6'
    """
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
        VALUES: {name: _digest(value) for name, value in found.items()},
    }


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first thing in which two requests differ, in words.

    Parameters
    ----------
    before, now
        Plain dicts, nested as they may be; fingerprints anywhere within them.

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
        was, is_now = before.get(name), now.get(name)
        if was == is_now:
            continue
        if isinstance(was, Mapping) and isinstance(is_now, Mapping):
            return _other_values(was, is_now) if name == VALUES else difference(was, is_now)
        if name == OBSERVABLES and isinstance(was, list) and isinstance(is_now, list):
            return _other_observables(was, is_now)
        return f"{name} was {_short(was)} and is now {_short(is_now)}"
    return "it cannot be read"


def _evaluate(problem: ProblemView) -> dict[str, np.ndarray]:
    """Compile and compute `_values`."""
    host = _host()
    with own_settings(), jax.default_device(host):
        leaves, structure = jax.tree.flatten(problem.as_argument())
        # Traced anew by every call: an object that was changed in place, or whose code was, must not get its old values.
        lowered = jax.jit(lambda leaves: _values(jax.tree.unflatten(structure, leaves))).lower(leaves)
        program = _digest(np.frombuffer(f"{lowered.as_text()}{lowered.out_tree}".encode(), np.uint8))
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


def _digest(value: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]


def _host() -> jax.Device | None:
    """The processor of the machine, if JAX may use it."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


def _other_values(was: Mapping[str, Any], is_now: Mapping[str, Any]) -> str:
    changed = [name for name in {**is_now, **was} if was.get(name) != is_now.get(name)]
    return f"the {changed[0]} of the problem has other values than before"


def _other_observables(was: list[str], is_now: list[str]) -> str:
    if new := [name for name in is_now if name not in was]:
        return f"the problem has an observable {new[0]!r} that it did not have before"
    return f"the problem no longer has the observable {next(name for name in was if name not in is_now)!r}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
