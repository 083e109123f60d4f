"""Thermodynamics of a model over temperature: Z(beta), F, <E> and C from one ladder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from observables.checks import few_lineages
from quenchphys.identity import remembering
from quenchphys.problem import Problem, view
from quenchphys.stopping import EvidenceBelow, suggested
from workflows.budget import LadderSettings, WalkSettings
from workflows.provenance import call_of
from workflows.refinement import polished
from workflows.store import Study, identity_of, request_of
from workflows.timing import stages_of_ladder, stages_of_walk

ROUGH = 0.02  # of the range of C that a straight line may miss, in a figure
HALVINGS, MOST_POINTS = 6, 200
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
        log_z_curve, energy_curve and heat_capacity_curve over `beta_curve`, which resolves the peaks, for the figure.
        The attribute `trusted` is 1 or 0, and `why` gives the reason for doubt.

    Examples
    --------
    >>> model = lattices.phi6(L=16, mu2=2.286)
    >>> curve = workflows.partition_function(model, beta=np.linspace(0, 1.2, 121), out="zbeta.nc")
    >>> curve.log_z.sel(beta=1.0, method="nearest"), curve.heat_capacity.max()
    """
    call = call_of(partition_function, locals())
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
    plan = stages_of_ladder(model, settings, grid.size)
    with Study(out, request, progress=progress, overwrite=overwrite, plan=plan, call=call) as study:
        ladder = study.ladder("ladder", model, settings, f"ladder of {view(model).name}", stop)
        source: qp.Ladder | qp.Walk = ladder
        why = "" if ladder.outcome.trusted else f"The ladder ended with '{ladder.outcome.value}'."
        if ladder.outcome is qp.Outcome.LAGGED and grid.max() > 0:
            study.message("the ladder lags between its phases: chains over its energies")
            study.display.forecast.append(stages_of_walk(model, WalkSettings(seed=seed)))
            source, doubts = polished(model, ladder, float(grid.max()), WalkSettings(seed=seed), study)
            why = " ".join(doubts)
        pool = observables.Pool(source)
        if not why and pool.of_ladders and len(pool.replicas) == 1:
            why = few_lineages(observables.diagnostics(pool, float(grid.max()))) or ""
        result = observables.thermodynamics(pool, grid)
        add_curves(result, pool)
        if why:
            warnings.warn(f"Z(beta) is not to be trusted: {why}", stacklevel=2)
        return study.finish(result.assign_attrs(workflow="partition_function", trusted=int(not why), why=why))


def add_curves(result: xr.Dataset, pool: observables.Pool) -> None:
    """Add log Z, energy and heat capacity on a grid of temperatures that resolves the peaks, over `beta_curve`."""
    grid = refined(result["beta"].values, result["heat_capacity"].values, lambda beta: _heat_capacity(pool, beta))
    if len(grid) < 3:
        return
    curve = observables.thermodynamics(pool, grid, errors=_quick_errors(pool))
    for name in ("log_z", "energy", "heat_capacity"):
        for end in ("", "_err"):
            found = curve[f"{name}{end}"]
            result[f"{name}_curve{end}"] = ("beta_curve", found.values, found.attrs)
    result["beta_curve"] = ("beta_curve", grid, {"long_name": "inverse temperature, denser where C changes quickly"})


def refined(beta: np.ndarray, value: np.ndarray, at: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A grid that resolves the peaks of a function: intervals are halved while it is not straight on them.

    Parameters
    ----------
    beta, value
        The first grid, and the function there.
    at
        The function at further points.

    Returns
    -------
    array
        The first grid and the points between, ascending.
    """
    order = np.argsort(beta)
    x, y = beta[order], value[order]
    for _ in range(HALVINGS):
        if len(x) < 3 or len(x) > MOST_POINTS:
            break
        # What a straight line through both neighbours misses at each point, shared by the intervals on either side.
        straight = y[:-2] + (y[2:] - y[:-2]) * (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
        missed = np.pad(np.abs(y[1:-1] - straight), 1)
        rough = np.maximum(missed[:-1], missed[1:]) > ROUGH * np.ptp(y)
        if not rough.any():
            break
        between = (0.5 * (x[1:] + x[:-1]))[rough]
        x, y = np.concatenate([x, between]), np.concatenate([y, at(between)])
        order = np.argsort(x)
        x, y = x[order], y[order]
    return x


def _heat_capacity(pool: observables.Pool, beta: np.ndarray) -> np.ndarray:
    return observables.thermodynamics(pool, beta, errors=_quick_errors(pool))["heat_capacity"].values


def _quick_errors(pool: observables.Pool) -> str:
    """Errors by a jackknife take a fraction of the time that genealogies do."""
    return "replicas" if len(pool.blocks) > 1 else "auto"
