"""Thermodynamics of a model over temperature: Z(beta), F, <E> and C from one ladder."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from quenchphys.identity import remembering
from quenchphys.problem import Problem, view
from quenchphys.stopping import EvidenceBelow, suggested
from workflows.budget import LadderSettings, WalkSettings
from workflows.refinement import polished
from workflows.store import Study, identity_of, request_of

LEFT_BELOW = 1e-3  # share of Z at the largest beta that may lie below the ladder


@remembering()  # the model is part of the request, and carried by the ladder and by its checkpoint
def partition_function(
    model: Problem,
    beta: Any = 1.0,
    *,
    particles: int = LadderSettings.particles,
    replicas: int = LadderSettings.replicas,
    seed: int = 0,
    softness: float | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> xr.Dataset:
    """log Z(beta), free energy, mean energy, heat capacity and entropy over `beta`, from one ladder.

    The ladder goes down to where the model's phases end, and to where less than a thousandth of Z at the largest beta is
    left below it.  Where it lags between two phases, multicanonical chains over its energies give the answer (`polish`).

    Parameters
    ----------
    model
        Any problem that `quenchphys.quench` takes.
    beta
        One inverse temperature, or a list of them; not negative.
    particles, replicas
        Particles in a population, and independent populations.  Error bars come from a jackknife over the replicas and
        from the genealogy of the particles.
    seed, softness
        As in `quenchphys.quench`.
    out, overwrite, progress
        As in `coexistence`.

    Returns
    -------
    Dataset
        log_z, free_energy, energy, heat_capacity and entropy over the dimension `beta`, each with its error <name>_err.
        The attribute `trusted` is 1 or 0, and `why` gives the reason for doubt.

    Examples
    --------
    >>> model = lattices.phi6(L=16, mu2=2.286)
    >>> curve = workflows.partition_function(model, beta=np.linspace(0, 1.2, 121), out="zbeta.nc")
    >>> curve.log_z.sel(beta=1.0, method="nearest"), curve.heat_capacity.max()
    """
    grid = np.atleast_1d(np.asarray(beta, dtype=float))
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all() or (grid < 0).any():
        raise ValueError(f"beta must be finite numbers that are not negative; got {beta!r}.")
    settings = LadderSettings(particles, replicas, seed, softness)
    # The depth is part of the request: a ladder made for higher temperatures must not serve lower ones.
    depth = {"largest_beta": float(grid.max())}
    request = request_of("partition_function", identity_of(model) | depth, settings.request())
    stop = suggested(view(model).stop)
    if grid.max() > 0:
        stop = stop & EvidenceBelow(LEFT_BELOW, beta=float(grid.max()))
    with Study(out, request, progress=progress, overwrite=overwrite) as study:
        ladder = study.ladder("ladder", model, settings, f"ladder of {view(model).name}", stop)
        source: qp.Ladder | qp.Walk = ladder
        why = "" if ladder.outcome.trusted else f"The ladder ended with '{ladder.outcome.value}'."
        if ladder.outcome is qp.Outcome.LAGGED and grid.max() > 0:
            study.message("the ladder lags between its phases: chains over its energies")
            source, doubts = polished(model, ladder, float(grid.max()), WalkSettings(seed=seed), study)
            why = " ".join(doubts)
        result = observables.thermodynamics(source, grid)
        if why:
            warnings.warn(f"Z(beta) is not to be trusted: {why}", stacklevel=2)
        return study.finish(result.assign_attrs(workflow="partition_function", trusted=int(not why), why=why))
