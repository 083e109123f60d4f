"""Calibration: are the stated errors right?  The same problem from many seeds, and the z-scores of everything it states.

    z = (value - reference) / error

with the exact value as the reference where it is known, else the mean of all seeds (z is then widened by
sqrt(n/(n - 1)), because the mean contains the value).  If every error bar is right, z has the mean 0 and the standard
deviation 1.

An error from a few independent blocks is itself uncertain: t = (value - reference)/error then follows Student's t, whose
standard deviation is above 1 (1.18 for eight blocks), however right the error is.  Where a run states its degrees of
freedom, z is the normal score of t,

    z = Phi^-1(T_dof(t))
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

import observables
from observables.phases import TwoPhases
from quenchphys.problem import Problem, view
from quenchphys.settings import check_whole
from workflows.budget import LadderSettings, Use, seed_of
from workflows.provenance import call_of
from workflows.store import Study, identity_of, request_of

FEWEST_SEEDS = 8
SIGNIFICANT = 3.0  # standard errors of the mean or the deviation of z, from which it speaks against the errors
LARGEST_MEAN, LARGEST_DEVIATION = 0.3, 0.15  # of z from 0 and of its standard deviation from 1: smaller ones harm nobody
STEP = 1e-3  # in beta, of the derivatives of an exact log Z

Run = Callable[[int], xr.Dataset]


class Stated(NamedTuple):
    """A number as a run states it."""

    value: float
    error: float
    dof: float = math.inf  # degrees of freedom of the error; infinite if it is as good as known


Table = dict[str, Stated]  # by the name of the quantity


def calibrate(
    problem: Problem | Run,
    *,
    exact: Mapping[str, float] | None = None,
    beta: float = 1.0,
    seeds: int = 64,
    particles: int = 200,
    replicas: int = 4,
    seed: int = 0,
    softness: float | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> xr.Dataset:
    """Run a small problem with many seeds, and compare the scatter of every answer with the error it states.

    Parameters
    ----------
    problem
        Any problem that `quenchphys.quench` takes; or a function of a seed that returns a dataset with numbers and their
        errors, <name> and <name>_err, such as a whole workflow.  If a plain standard error comes from a few independent
        blocks, say so by <name>_dof, the number of blocks less one.  The errors of this package need none: they are widened
        for it already (`observables.estimation.errors`).
    exact
        Exact values by name.  Those of the problems in `quenchphys.targets` are known.
    beta
        Inverse temperature of the target.
    seeds
        How many runs, at least 8.  The standard deviation of z is known to 1/sqrt(2 seeds).
    particles, replicas, softness
        Of each ladder, as in `partition_function`.
    seed
        Seed of the calibration; every run has a seed of its own that follows from it.
    out, overwrite, progress
        As in `coexistence`; ladders are not kept.

    Returns
    -------
    Dataset
        value, error, dof (infinite where none was given) and z over (quantity, run); over quantity reference,
        exactly_known, z_mean and z_sd with their errors, and p_value of a Kolmogorov-Smirnov test against the normal
        distribution.  The attribute `trusted` is 1 if no error bar was found wrong, and `why` says which was.

    Examples
    --------
    >>> found = workflows.calibrate(qp.targets.gaussian(10), seeds=64)
    >>> found.z_sd.sel(quantity="log_z")
    >>> workflows.calibrate(lambda seed: workflows.coexistence(L=4, bracket=(2.2, 2.5), sweeps=400, seed=seed), seeds=24)
    """
    call = call_of(calibrate, locals())
    check_whole("seeds", seeds, FEWEST_SEEDS)
    settings = LadderSettings(particles, replicas, seed, softness)
    given = {} if exact is None else {name: float(value) for name, value in exact.items()}
    if hasattr(problem, "energy"):
        name, identity = view(problem).name, identity_of(problem)
        run, known = _ladder_of(problem, settings, beta), exact_values(problem, beta) | given
    elif callable(problem):
        name = getattr(problem, "__name__", repr(problem))
        identity, run, known = {"model": name}, problem, given
    else:
        raise TypeError(f"A problem or a function of a seed can be calibrated, but {type(problem).__name__} was given.")
    request = request_of("calibrate", identity | {"beta": beta, "seeds": seeds, "exact": given}, settings.request())
    with Study(out, request, progress=progress, overwrite=overwrite, call=call) as study:
        tables = []
        study.display.stage("first seed")  # with all compilation
        for number in range(seeds):
            tables.append(_numbers(run(seed_of(seed, Use.CALIBRATION, number))))
            if number == 0:
                study.display.stage("seeds")
            study.display.update(number / (seeds - 1), f"{name}, {number + 1} of {seeds}")
        result = zscores(tables, known)
        doubts = (_doubt(result.sel(quantity=quantity)) for quantity in result["quantity"].values)
        why = " ".join(doubt for doubt in doubts if doubt)
        return study.finish(result.assign_attrs(workflow="calibrate", problem=name, trusted=int(not why), why=why))


def exact_values(problem: Any, beta: float) -> dict[str, float]:
    """What a problem knows exactly, by the names of the answers: log Z, with its derivatives, and means at beta = 1."""
    known: dict[str, float] = {}
    if hasattr(problem, "log_z_at") and beta > STEP:
        low, here, high = (float(problem.log_z_at(beta + step)) for step in (-STEP, 0.0, STEP))
        known |= {"log_z": here, "energy": (low - high) / (2 * STEP)}
        known["heat_capacity"] = beta**2 * (high - 2 * here + low) / STEP**2
    if beta == 1.0:
        if hasattr(problem, "log_z"):
            known["log_z"] = float(problem.log_z)
        if hasattr(problem, "moments"):
            known |= {name: float(value) for name, value in problem.moments().items()}
    return known


def _ladder_of(problem: Any, settings: LadderSettings, beta: float) -> Run:
    """A ladder of the problem with a given seed, and what it says at one temperature."""
    two_phases = TwoPhases.among(view(problem).phases) is not None

    def run(seed: int) -> xr.Dataset:
        ladder = LadderSettings(settings.particles, settings.replicas, seed, settings.softness).quench(
            problem, None, False, None
        )
        pool = observables.Pool(ladder)
        found = observables.thermodynamics(pool, beta)[["log_z", "log_z_err", "heat_capacity", "heat_capacity_err"]]
        parts = [found, observables.order_parameters(pool, beta)]
        if two_phases:
            parts.append(observables.phase_weights(pool, beta=beta)[["ordered_share", "ordered_share_err"]])
        return xr.merge(parts, compat="override", combine_attrs="override").assign_attrs(outcome=ladder.outcome.value)

    return run


def _numbers(found: xr.Dataset) -> Table:
    """Every number with an error: scalars by their name, those of two phases as name[phase]."""
    table: Table = {}
    for name in map(str, found.data_vars):
        if f"{name}_err" not in found:
            continue
        stated = [found[name], found[f"{name}_err"]]
        if f"{name}_dof" in found:
            stated.append(found[f"{name}_dof"].broadcast_like(found[name]))
            if not (stated[-1] > 0).all():
                raise ValueError(f"Degrees of freedom must be positive, but {name}_dof is {found[f'{name}_dof'].values}.")
        if found[name].ndim == 0:
            table[name] = Stated(*map(float, stated))
        elif found[name].dims == ("phase",):
            for phase in found["phase"].values:
                table[f"{name}[{phase}]"] = Stated(*(float(part.sel(phase=phase)) for part in stated))
    return table


def normal_score(t: np.ndarray, dof: np.ndarray) -> np.ndarray:
    """Phi^-1(T_dof(t)): standard normal if t follows Student's t with these degrees of freedom.

    By the tail of |t|, which is exact where T itself rounds to 1; where the tail is below all numbers, by Wallace's
    approximation sqrt(dof log(1 + t^2/dof)) (8 dof + 1)/(8 dof + 3).
    """
    t, dof = np.broadcast_arrays(np.asarray(t, float), np.asarray(dof, float))
    size, few = np.abs(t), np.where(np.isfinite(dof), dof, 1.0)
    tail = stats.t.sf(size, few)
    far = np.sqrt(few * np.log1p(size**2 / few)) * (8 * few + 1) / (8 * few + 3)
    score = np.where(tail > 0, stats.norm.isf(tail), far)
    return np.copysign(np.where(np.isfinite(dof), score, size), t)


def zscores(tables: list[Table], known: Mapping[str, float]) -> xr.Dataset:
    """z of every quantity that has a value and an error in all runs.

    Parameters
    ----------
    tables
        {quantity: (value, error, degrees of freedom)} of each run.
    known
        Exact values by the name of the quantity.

    Returns
    -------
    Dataset
        As that of `calibrate`.
    """
    names = [n for n in tables[0] if all(n in t and math.isfinite(t[n].value) and t[n].error > 0 for t in tables)]
    if not names:
        raise ValueError("No number has a value and an error in every run, so there is nothing to calibrate.")
    count = len(tables)
    value, error, dof = np.array([[table[name] for table in tables] for name in names]).transpose(2, 0, 1)
    exact = np.array([known.get(name, np.nan) for name in names])
    is_known = np.isfinite(exact)
    reference = np.where(is_known, exact, value.mean(axis=1))
    widened = np.where(is_known, 1.0, np.sqrt(count / (count - 1)))
    z = normal_score(widened[:, None] * (value - reference[:, None]) / error, dof)
    deviation = z.std(axis=1, ddof=1)
    # The mean of all seeds is its own reference: its z has no mean to speak of.
    mean = np.where(is_known, z.mean(axis=1), np.nan)
    # The variance of a sample variance is (kurtosis - 1)/n, with that of z or of the normal distribution, 3 at least.
    spread = np.sqrt((np.maximum(stats.kurtosis(z, axis=1, fisher=False), 3.0) - 1) / (4 * count))
    words = {"reference": "exact value, or mean of all runs", "exactly_known": "whether the reference is exact"}
    words |= {"z_mean": "mean of z", "z_sd": "standard deviation of z", "p_value": "of a Kolmogorov-Smirnov test of z"}
    per_quantity = {
        "reference": reference,
        "exactly_known": is_known,
        "z_mean": mean,
        "z_mean_err": deviation / np.sqrt(count),
        "z_sd": deviation,
        "z_sd_err": deviation * spread,
        "p_value": [stats.kstest(row, "norm").pvalue for row in z],
    }
    result = xr.Dataset(
        {name: ("quantity", v, {"long_name": words.get(name, "standard error")}) for name, v in per_quantity.items()}
        | {n: (("quantity", "run"), v) for n, v in (("value", value), ("error", error), ("dof", dof), ("z", z))},
        coords={"quantity": names},
    )
    return result


def _doubt(row: xr.Dataset) -> str:
    """What speaks against the errors of one quantity, in a sentence."""
    name = row["quantity"].item()
    mean, mean_err, deviation, deviation_err = (float(row[n]) for n in ("z_mean", "z_mean_err", "z_sd", "z_sd_err"))
    sentences = []
    if abs(mean) > max(SIGNIFICANT * mean_err, LARGEST_MEAN):
        sentences.append(f"{name} is biased by {mean:+.2f} +- {mean_err:.2f} of its errors.")
    if abs(deviation - 1) > max(SIGNIFICANT * deviation_err, LARGEST_DEVIATION):
        how = "small" if deviation > 1 else "large"
        sentences.append(f"Errors of {name} are too {how}: z scatters by {deviation:.2f} +- {deviation_err:.2f}.")
    return " ".join(sentences)
