"""Tempered sequential Monte Carlo: `temper`, with the same kernels, populations and record as a quench."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from quenchphys.consistency import check
from quenchphys.console.progress import Meter, meter
from quenchphys.kernels import HMC, Kernel
from quenchphys.ladder import Ladder
from quenchphys.problem import view
from quenchphys.settings import Settings, check_schedule, check_stop
from quenchphys.smc.assignment import Assignment
from quenchphys.smc.levels import Temperatures
from quenchphys.smc.loop import run
from quenchphys.stopping import ReachedBeta, StopRule, without_energy
from quenchphys.storage.checkpoint import Checkpoint


def temper(
    problem: Any,
    *,
    particles: int = 1000,
    replicas: int = 4,
    seed: int = 0,
    beta: float = 1.0,
    betas: Sequence[float] | None = None,
    target_ess: float = 0.95,
    resample_ess: float = 0.5,
    kernel: Kernel | None = None,
    stop: StopRule | None = None,
    draws_per_particle: int = 10,
    configurations: int = 4096,
    max_levels: int = 100_000,
    progress: bool | Meter | None = None,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    devices: int | Sequence[Any] | None = None,
) -> Ladder:
    """Sample a problem along pi(x) exp(-beta_k U(x)), from the prior to inverse temperature `beta`.

    The first stage is drawn from the prior draws by weight, as in a quench; its particles are copies, so the prior draws
    in the record stay exact.  A tempered ladder does not find a phase behind a first-order transition: where the problem
    names its phases the outcome says so.

    Parameters
    ----------
    problem
        A model with `sample_prior`, `log_prior` and `energy`: see `quenchphys.problem.Problem`.
    particles, replicas, seed
        As in `quench`.
    beta
        The last inverse temperature of an adaptive schedule.
    betas
        A prescribed, increasing schedule of positive inverse temperatures instead.
    target_ess, resample_ess
        As in `quench`.
    kernel
        As in `quench`.  Default: HMC.
    stop
        An additional rule, such as `WallTime(600)`; the ladder always ends at its last temperature.
    draws_per_particle, configurations, max_levels, progress, checkpoint, devices
        As in `quench`.

    Returns
    -------
    Ladder
        Of the same type as that of `quench`, with temperatures as levels.

    Examples
    --------
    >>> import lattices, observables, quenchphys as qp
    >>> ladder = qp.temper(lattices.phi4(L=16, mu2=-0.7, lam=0.125), particles=400)
    >>> observables.thermodynamics(ladder, beta=[0.5, 0.9])
    """
    schedule = None if betas is None else check_schedule("betas", betas, increasing=True)
    if schedule is not None:
        if schedule[0] <= 0:
            raise ValueError(f"betas must be positive (the prior draws are beta = 0 already); {schedule[0]} was given")
        beta = float(schedule[-1])
    if (
        isinstance(beta, bool)
        or not isinstance(beta, int | float | np.number)
        or not (math.isfinite(beta) and beta > 0)
    ):
        raise ValueError(f"beta must be positive and finite; {beta!r} was given")
    settings = Settings(
        particles=particles,
        replicas=replicas,
        seed=seed,
        target_ess=target_ess,
        resample_ess=resample_ess,
        kernel=kernel if kernel is not None else HMC(),
        draws_per_particle=draws_per_particle,
        configurations=configurations,
        max_levels=max_levels,
    )
    end = ReachedBeta(float(np.float32(beta)))
    rule = end if stop is None else end | without_energy(check_stop(stop))
    family = Temperatures(np.float32(beta))
    check(problem)
    work = Assignment(view(problem), "temper", family, settings, rule, schedule)
    return run(work, meter("temper", progress), checkpoint, devices)
