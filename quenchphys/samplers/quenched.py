"""`quench`: descend the soft energy levels of a problem and return the ladder."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from quenchphys.console.progress import Meter, meter
from quenchphys.kernels import HMC, MALA, Kernel
from quenchphys.ladder import Ladder
from quenchphys.problem import check, view
from quenchphys.samplers.softness import SMALLEST, choose
from quenchphys.settings import (
    LARGEST_FOR_MALA,
    Settings,
    check_schedule,
    check_softness,
    check_stop,
    default_kernel,
)
from quenchphys.smc.assignment import Assignment
from quenchphys.smc.levels import SoftLevels
from quenchphys.smc.loop import run
from quenchphys.stopping import StopRule, suggested
from quenchphys.storage.checkpoint import Checkpoint

# Of the ladders that only tell how soft the levels may be.
PILOT_SIZE = 64_000  # particles times dimension, as long as that is no fewer than
PILOT_PARTICLES = 32
PILOT_REPLICAS, PILOT_ESS, PILOT_STEPS = 2, 0.5, 16


def quench(
    problem: Any,
    *,
    particles: int = 1000,
    replicas: int = 4,
    seed: int = 0,
    softness: float | str | None = None,
    target_ess: float = 0.95,
    resample_ess: float = 0.5,
    kernel: Kernel | None = None,
    stop: StopRule | None = None,
    levels: Sequence[float] | None = None,
    draws_per_particle: int = 10,
    configurations: int = 4096,
    max_levels: int = 100_000,
    progress: bool | Meter | None = None,
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    devices: int | Sequence[Any] | None = None,
) -> Ladder:
    """Sample a problem down a ladder of soft energy levels pi(x) (E - U(x))_+^nu (Quenched Ensemble Sampling).

    Parameters
    ----------
    problem
        A model with `sample_prior`, `log_prior` and `energy`: see `quenchphys.problem.Problem`.
    particles, replicas
        Size of the population, and how many independent populations run side by side; error bars come from both.
    seed
        A whole number; the same seed gives the same ladder.
    softness
        nu > -1.  Small is close to the hard wall of nested sampling and safe at any transition, large is cheap and close
        to tempering.  "auto": as large as small pilot ladders show to be safe (see `softening`).  Default: what the
        problem recommends, else 2.
    target_ess
        How far a level lies below the one before: the share of effective size the step keeps.
    resample_ess
        Resample when the effective number of lineages falls below this share of the particles.
    kernel
        `MALA()`, `HMC()` or `Barker()`.  Default: MALA up to nu = 4, HMC above.
    stop
        When to end: a rule of `quenchphys.stopping`.  Default: what the problem recommends, else RemainingEvidence(-3).
    levels
        A prescribed, decreasing ladder of energies instead of an adaptive one; then `stop` may end it earlier.
    draws_per_particle
        Exact prior draws, kept with the ladder, per particle.
    configurations
        At most how many configurations of each replica are kept.
    max_levels
        A ladder that is not finished by then ends with the outcome "level limit".
    progress
        Show a line on standard error; by default if that is a terminal.
    checkpoint
        A folder, or `Checkpoint(folder, minutes=, levels=)`: the state of the run is kept there, and the same call goes on
        from it, to the same numbers as a run that was never interrupted.  Ctrl-C and SIGTERM then keep the state and raise
        `Interrupted`.
    devices
        How many of JAX's devices to use, or which.  Default: as many as can share replicas and particles evenly.

    Returns
    -------
    Ladder
        With the `outcome` that says how it ended; `print(ladder.report())` tells why it can or cannot be trusted.
    """
    rule = check_stop(stop if stop is not None else suggested(view(problem).stop))
    schedule = None if levels is None else check_schedule("levels", levels, increasing=False)
    spent = 0.0
    if isinstance(softness, str) and softness == "auto":
        Settings(particles=particles, seed=seed, kernel=kernel if kernel is not None else MALA())
        with jax.enable_x64(False):
            check(problem)
        softness, spent = read_softness(problem, particles, seed, kernel, rule, devices)
    softness = check_softness(recommended_softness(problem) if softness is None else softness)
    settings = Settings(
        particles=particles,
        replicas=replicas,
        seed=seed,
        target_ess=target_ess,
        resample_ess=resample_ess,
        kernel=kernel if kernel is not None else default_kernel(softness),
        draws_per_particle=draws_per_particle,
        configurations=configurations,
        max_levels=max_levels,
    )
    family = SoftLevels(np.float32(softness))
    work = Assignment(view(problem), "quench", family, settings, rule, schedule)
    ladder = run(work, meter("quench", progress), checkpoint, devices)
    ladder.tree.attrs["pilot_gradients"] = spent
    return ladder


def read_softness(
    problem: Any,
    particles: int,
    seed: int,
    kernel: Kernel | None,
    rule: StopRule,
    devices: int | Sequence[Any] | None = None,
) -> tuple[float, float]:
    """The softness that pilot ladders of few particles and large steps allow, from the recommended one on.

    Also the gradients they took.
    """
    dimension = math.prod(view(problem).shape)
    few = min(particles, max(PILOT_PARTICLES, PILOT_SIZE // dimension))
    spent = 0.0

    def pilot(softness: float, number: int) -> Ladder:
        nonlocal spent
        quick: Kernel = MALA(steps=PILOT_STEPS) if softness <= LARGEST_FOR_MALA else HMC()
        ladder = quench(
            problem,
            particles=few,
            replicas=PILOT_REPLICAS,
            seed=seed + 1 + number,
            softness=softness,
            target_ess=PILOT_ESS,
            kernel=quick if kernel is None else kernel,
            stop=rule,
            configurations=1,
            progress=False,
            devices=devices,
        )
        spent += ladder.attrs["gradients"]
        return ladder

    return choose(pilot, recommended_softness(problem)), spent


def recommended_softness(problem: Any) -> float:
    """What the problem recommends, else the smallest in use."""
    own = view(problem).softness
    return SMALLEST if own is None else own
