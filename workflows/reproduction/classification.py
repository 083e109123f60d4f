"""Classification tasks of the paper: five data sets, two activations, and what each method says of one network.

    QES         softness 2, MALA, target ESS 0.9; at effort paper with its 96 steps at a level
    QES, auto   the softness that pilot ladders allow, with the default kernel and amount of mutation
    SMC         tempered, at effort paper with the kernel of QES, else with the default one, HMC
    NUTS, MCLMC chains from prior draws
    Laplace     MAP by Adam, Gauss-Newton curvature

At effort standard "QES, auto" is left out: for these networks it is no cheaper than QES.

The files are those of the UCI repository, with a header row and a column `label`.  The paper does not publish its split, so
ours differ from it, and a comparison has to know how much the numbers scatter over splits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from workflows.reproduction.experiment import Bench
from workflows.reproduction.methods import AUTO, QES, SMC, sample

NUTS, MCLMC, LAPLACE = "NUTS", "MCLMC", "Laplace"
LADDERS = (QES, AUTO, SMC)
TANH, RELU = "tanh", "relu"
KINKS = 10.0  # nats that a Newton step may still gain: modes of ReLU networks lie at kinks
LAPLACE_CHAINS = 10  # into which independent draws are dealt, for the error of their predictions

# How each file is read.  Heart: 0 is absence of the disease, 1 to 4 are its stages; 6 of the 303 rows are incomplete.
TASKS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "glass": {},
        "heart": {"classes": {0: 0, 1: 1, 2: 1, 3: 1, 4: 1}, "missing": "drop"},
        "sonar": {},
        "australian": {},
        "winered": {},
    }
)
FILES = tuple(f"{task}.csv" for task in TASKS)


def network_of(folder: Path | None, task: str, activation: str, split: int) -> qp.targets.Network:
    """The 2 x 16 network of the paper on one split of a task."""
    assert folder is not None, "the experiment was started without data"
    return qp.targets.network(folder / f"{task}.csv", (16, 16), activation, split=split, **TASKS[task])


def measured(bench: Bench, task: str, activation: str, split: int, method: str) -> xr.Dataset:
    """What a method says of one network, kept as soon as it is known.

    Returns
    -------
    Dataset
        nll and ess_per_million with errors, gradients, and seconds of processor time; log_z and its error of methods that
        have one.
    """
    model = network_of(bench.data, task, activation, split)
    name = f"{task}_{activation}_{split}_{method.lower().replace(', ', '_')}"

    def make(seed: int, checkpoint: Path | None) -> xr.Dataset:
        begun = time.process_time()
        if method in LADDERS:
            found = _by_ladder(method, model, ladder_settings(bench.settings, task, method), seed, checkpoint)
        elif method == LAPLACE:
            found = _by_laplace(model, bench.settings[LAPLACE], seed)
        else:
            found = _by_chains(model, method, bench.settings[method], seed)
        return found.assign(seconds=time.process_time() - begun)

    return bench.part(name, make, model)


def ladder_settings(settings: Mapping[str, Any], task: str, method: str) -> dict[str, Any]:
    """Settings of a ladder; "ladders" of the settings overrides the common ones of a task, or of a task and a method."""
    own = settings.get("ladders", {})
    return {**settings["ladder"], **own.get(f"{task} {method}", own.get(task, {}))}


def splits_of(settings: Mapping[str, Any], task: str, method: str) -> list[int]:
    """Splits of the data; "splits_of" of the settings overrides the common ones of a task and a method."""
    return settings.get("splits_of", {}).get(f"{task} {method}", settings["splits"])


def _by_ladder(
    method: str, model: qp.targets.Network, settings: Mapping[str, Any], seed: int, checkpoint: Path | None
) -> xr.Dataset:
    """Evidence, predictions and efficiency of a ladder."""
    own = dict(settings)
    if method == AUTO:  # chooses its own kernel and amount of mutation
        own.pop("steps", None)
    if method == SMC and "steps" not in own:  # few stages, at which so few steps of MALA would not be enough
        ladder = qp.temper(model, seed=seed, checkpoint=checkpoint, progress=False, **own)
    else:
        ladder = sample(method, model, own, seed, checkpoint)
    pool = observables.Pool(ladder)
    found = {
        "log_z": observables.partition_function(pool),
        "nll": observables.predictive_nll(pool, model.test_log_likelihood),
        "ess_per_million": observables.efficiency(pool),
    }
    numbers = {name: float(one[name]) for name, one in found.items()}
    numbers |= {f"{name}_err": float(one[f"{name}_err"]) for name, one in found.items()}
    spent = ladder.attrs["gradients"] + ladder.attrs.get("pilot_gradients", 0.0)
    return xr.Dataset(
        numbers | {"gradients": float(spent)}, attrs={"outcome": ladder.outcome.value, "softness": ladder.softness}
    )


def _by_chains(model: qp.targets.Network, kernel: str, settings: Mapping[str, Any], seed: int) -> xr.Dataset:
    """Predictions of chains, and their bulk effective samples of the energy, the one scalar that all tasks share."""
    drawn = qp.chains(model, kernel=kernel.lower(), seed=seed, progress=False, **settings)
    predicted = observables.predictive_nll(drawn, model.test_log_likelihood)
    gradients = float(drawn.attrs["gradients"])
    effective = float(drawn["ess_bulk"].sel(quantity="energy"))
    return xr.Dataset(
        {
            "nll": float(predicted["nll"]),
            "nll_err": float(predicted["nll_err"]),
            "ess_per_million": effective / gradients * 1e6,
            "ess_per_million_err": math.nan,
            "gradients": gradients,
        },
        attrs={"outcome": str(drawn.attrs["why"])},
    )


def _by_laplace(model: qp.targets.Network, settings: Mapping[str, Any], seed: int) -> xr.Dataset:
    """Evidence and predictions of Laplace approximations at independently found modes; errors from their scatter.

    A search that does not end at a minimum is refused by `laplace`, and left out; without any the numbers are NaN.
    """
    options = {"steps": settings["steps"], "learning_rate": settings["rate"], "draws": settings["draws"], "starts": 1}
    options |= {"tolerance": KINKS}
    found, why = [], []
    for start in range(settings["starts"]):
        try:
            found.append(qp.laplace(model, seed=seed + start, **options))
            why.append(str(found[-1].attrs["why"]))
        except ValueError as refused:
            why.append(str(refused))
    predicted = [observables.predictive_nll(_dealt(one), model.test_log_likelihood) for one in found]
    log_z, log_z_err = _mean([float(one["log_z"]) for one in found])
    nll, nll_err = _mean([float(one["nll"]) for one in predicted])
    if len(found) == 1:
        nll_err = float(predicted[0]["nll_err"])
    gradients = float(sum(one.attrs["gradients"] for one in found))
    return xr.Dataset(
        {"log_z": log_z, "log_z_err": log_z_err, "nll": nll, "nll_err": nll_err, "gradients": gradients},
        attrs={"outcome": "; ".join(why)},
    )


def _dealt(found: xr.Dataset) -> xr.Dataset:
    """Independent draws, dealt out to several chains."""
    field = found["field"].values.reshape(-1, found.sizes["parameter"])
    each = len(field) // LAPLACE_CHAINS
    chains = field[: each * LAPLACE_CHAINS].reshape(LAPLACE_CHAINS, each, -1)
    return xr.Dataset({"field": (("chain", "draw", "parameter"), chains)})


def _mean(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error, as far as they are known."""
    if not values:
        return math.nan, math.nan
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(np.mean(values)), error


def over_splits(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """The mean over splits, and how far the value of another split may be from it.

    With the scatter s of n splits, another one differs from their mean by s sqrt(1 + 1/n); its scatter holds the errors of
    sampling as well.  One split does not know how much it differs: the error is that of sampling alone.
    """
    if len(values) == 1:
        return float(values[0]), float(errors[0])
    return float(np.mean(values)), float(np.std(values, ddof=1) * math.sqrt(1 + 1 / len(values)))
