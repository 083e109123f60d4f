"""How does the partition function depend on the temperature?  Z(beta), F, <E> and C from one ladder."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import xarray as xr

import observables
from quenchphys.stopping import EvidenceBelow, suggested
from workflows.budget import PARTICLES, Effort
from workflows.narrator import Narrator
from workflows.store import Study

LEFT_BELOW = 1e-3  # share of Z at the largest beta that may lie below the ladder


def partition_function(
    model: Any,
    beta: Any = 1.0,
    *,
    particles: int = PARTICLES,
    replicas: int = 8,
    seed: int = 0,
    softness: float | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> xr.Dataset:
    """log Z(beta), free energy, mean energy, heat capacity and entropy over `beta`, from one ladder.

    The ladder goes down to where the model's phases end, and to where less than a thousandth of Z at the largest beta is
    left below it.  Parameters are those of `coexistence`; `model` is any problem `quenchphys.quench` takes.
    """
    grid = np.atleast_1d(np.asarray(beta, dtype=float))
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all() or (grid < 0).any():
        raise ValueError(f"beta must be finite numbers that are not negative; got {beta!r}.")
    effort = Effort(particles, replicas, seed, softness)
    name = str(getattr(model, "name", type(model).__name__))
    request: dict[str, Any] = {
        "workflow": "partition_function",
        "model": name,
        "parameters": dict(getattr(model, "parameters", {})),
    }
    # The depth is part of the request: a ladder made for higher temperatures must not serve lower ones.
    request |= {"largest_beta": float(grid.max()), **effort.request()}
    study = Study(out, request, Narrator(progress), overwrite=overwrite)
    stop = suggested(getattr(model, "stop", None))
    if grid.max() > 0:
        stop = stop & EvidenceBelow(LEFT_BELOW, beta=float(grid.max()))
    ladder = study.ladder("ladder", model, effort, f"ladder of {name}", stop)
    result = observables.thermodynamics(ladder, grid)
    why = "" if ladder.outcome.trusted else f"The ladder ended with '{ladder.outcome.value}'."
    if why:
        warnings.warn(f"Z(beta) is not to be trusted: {why}", stacklevel=2)
    return study.finish(result.assign_attrs(workflow="partition_function", trusted=int(not why), why=why))
