"""The methods that the paper compares, on one problem: quenched and tempered ladders at its settings, and our own way.

QES         softness 2, MALA with max(16, 2^ceil(log2 sqrt D)) steps at a level, target ESS 0.95: `quenchphys.presets.PAPER`
SMC         tempered, with the same kernel, particles and target ESS
NS          nested sampling with slice moves, a tenth of the live points replaced at a time: `quenchphys.nested`
QES, auto   the softness that pilot ladders allow, with the default kernel and amount of mutation
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import observables
import quenchphys as qp
from workflows.reproduction.pooling import carrying, pooled_kish

Make = Callable[[int, Path | None], xr.Dataset]  # of a seed and the folder for a checkpoint

QES, SMC, NS, AUTO = "QES", "SMC", "NS", "QES, auto"


def sample(
    method: str, problem: Any, settings: Mapping[str, Any], seed: int, checkpoint: Path | None = None
) -> qp.Ladder:
    """One ladder, with a replica for each seed of the paper.

    Parameters
    ----------
    method
        QES, SMC, NS or AUTO.
    problem
        What is sampled.
    settings
        Further keywords of `quench` or `temper`, such as particles and replicas.
    seed, checkpoint
        As in `quench`.
    """
    common: dict[str, Any] = {"seed": seed, "checkpoint": checkpoint, "progress": False, "configurations": 1}
    common |= settings
    steps = common.pop("steps", None)
    kernel = qp.MALA() if steps is None else qp.MALA(steps=steps)
    if method == QES:
        return qp.quench(problem, **_preset(kernel) | common)
    if method == SMC:
        return qp.temper(problem, kernel=kernel, **common)
    if method == AUTO:
        return qp.quench(problem, softness="auto", **common)
    if method == NS:
        del common["checkpoint"]
        return qp.nested(problem, **common)
    raise ValueError(f"There is no method {method!r}; there are {QES}, {SMC}, {NS} and {AUTO}.")


def _preset(kernel: qp.MALA) -> dict[str, Any]:
    """The preset of the paper with this kernel."""
    return {**qp.presets.PAPER, "kernel": kernel}


def ladder_of(method: str, problem: Any, settings: Mapping[str, Any]) -> Make:
    """A part of a table that samples one ladder and keeps what `evidence` says of it."""
    return lambda seed, checkpoint: evidence(sample(method, problem, settings, seed, checkpoint))


def evidence(ladder: qp.Ladder) -> xr.Dataset:
    """log Z of all replicas together, of each alone, and the posterior weights of the paper.

    Returns
    -------
    Dataset
        log_z and its error; over replica log_z_alone, kish (pooled Kish effective sample size), levels and carrying (levels
        that carry weight); gradients of all replicas, those of pilots included; outcome as an attribute.
    """
    pool = observables.Pool(ladder)
    together = observables.partition_function(pool)
    pairs = [(qp.Ladder(ladder.tree.isel(replica=[r])), replica) for r, replica in enumerate(pool.replicas)]
    alone = [float(observables.partition_function(one).log_z.squeeze()) for one, _ in pairs]
    spent = ladder.attrs["gradients"] or ladder.attrs["evaluations"]  # nested sampling takes no gradients
    gradients = spent + ladder.attrs.get("pilot_gradients", 0.0)
    return xr.Dataset(
        {
            "log_z": float(together.log_z.squeeze()),
            "log_z_err": float(together.log_z_err.squeeze()),
            "log_z_alone": ("replica", alone),
            "kish": ("replica", [pooled_kish(replica) for replica in pool.replicas]),
            "carrying": ("replica", [carrying(replica) for replica in pool.replicas]),
            "levels": ("replica", np.array([len(replica.level) for replica in pool.replicas], float)),
            "gradients": float(gradients),
        },
        attrs={"outcome": ladder.outcome.value, "softness": float(ladder.softness)},
    )


def per_million(found: xr.Dataset) -> float:
    """Pooled Kish effective sample size per 10^6 gradients of a run, averaged over replicas."""
    replicas = found.sizes["replica"]
    return float(found["kish"].mean() / (found["gradients"] / replicas) * 1e6)
