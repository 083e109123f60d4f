"""Faults in a user's model: energies that are NaN or infinite, functions that raise or have a wrong shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import quenchphys as qp
from benchmarks.robustness.fault_tools import SMALL, Verdict, fault, reported, seen, spoiled


@fault("energy NaN for some prior draws")
def _(place: Path) -> Verdict:
    model = spoiled(energy=lambda x: jnp.where(x[0] > 1, jnp.nan, jnp.sum(x * x)))
    ladder = qp.quench(model, **SMALL)
    return reported(ladder), ladder.outcome is qp.Outcome.UNDEFINED_ENERGY and not ladder.outcome.trusted


@fault("energy NaN only deep in the ladder")
def _(place: Path) -> Verdict:
    model = spoiled(energy=lambda x: jnp.where(jnp.sum(x * x) < 0.02, jnp.nan, jnp.sum(x * x)))
    ladder = qp.quench(model, **SMALL, stop=qp.ReachedEnergy(0.02) | qp.LevelLimit(400))
    return reported(ladder), not ladder.outcome.trusted


@fault("energy NaN for all")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=lambda x: jnp.sum(x) * jnp.nan), **SMALL))


@fault("energy +inf for some (a hard wall)")
def _(place: Path) -> Verdict:
    ladder = qp.quench(spoiled(energy=lambda x: jnp.where(x[0] > 1, jnp.inf, jnp.sum(x * x))), **SMALL)
    finite = bool(np.isfinite(ladder.levels.log_volume.values[0, : int(ladder.levels.level_count[0])]).all())
    return reported(ladder), finite and ladder.outcome.trusted


@fault("energy +inf for most")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=lambda x: jnp.where(x[0] > -1, jnp.inf, jnp.sum(x * x))), **SMALL))


@fault("energy -inf for some")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=lambda x: jnp.where(x[0] > 1, -jnp.inf, jnp.sum(x * x))), **SMALL))


def raising(*arguments: Any) -> Any:
    raise KeyError("no such coupling")


@fault("exception in an observable")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(observe=raising), **SMALL))


@fault("exception in the energy")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=raising), **SMALL))


@fault("energy without a gradient (a while loop)")
def _(place: Path) -> Verdict:
    def energy(x):
        return jax.lax.while_loop(lambda v: v > 10, lambda v: v / 2, jnp.sum(x * x))

    return seen(lambda: qp.quench(spoiled(energy=energy), **SMALL))


@fault("exception on the host, in the middle of a run")
def _(place: Path) -> Verdict:
    calls = []

    def fail(x):
        calls.append(1)
        if len(calls) > 3:
            raise ValueError("the user's own function failed")
        return np.zeros(x.shape[:-1], np.float32)

    def observe(x):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return {"mine": jax.pure_callback(fail, shape, x, vmap_method="expand_dims")}

    return seen(lambda: qp.quench(spoiled(observe=observe), **SMALL))


@fault("observable of a wrong shape")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(observe=lambda x: {"profile": x}), **SMALL))
