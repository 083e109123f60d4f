"""Quenched Ensemble Sampling: `quench` descends the soft energy levels of a problem and returns the ladder."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quenchphys.consistency import check
from quenchphys.console.progress import Meter, Silent, beside, closed_on_failure, meter
from quenchphys.kernels import HMC, MALA, Kernel
from quenchphys.ladder import Ladder
from quenchphys.problem import ProblemView, view
from quenchphys.samplers.softness import SMALLEST, choose
from quenchphys.settings import (
    LARGEST_FOR_MALA,
    SEED_BITS,
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

# Pilot ladders, which only tell how soft the levels may be.
PILOT_SIZE = 64_000  # particles times dimension
PILOT_PARTICLES = 32  # at least
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
        Size of a population, and number of independent populations that run side by side; error bars come from both.
    seed
        A whole number from 0 to 2^64 - 1; the same seed gives the same ladder.
    softness
        nu > -1.  Small is close to the hard wall of nested sampling and safe at any transition, large is cheap and close
        to tempering.  "auto": as large as small pilot ladders show to be safe (see `quenchphys.samplers.softness`).
        Default: what the problem recommends, else 2.
    target_ess
        Share of the effective sample size that the step to the next level keeps: it decides how far levels are apart.
    resample_ess
        Resample when the effective number of lineages falls below this share of the particles.
    kernel
        `MALA()`, `HMC()`, `Barker()` or `MinimumNorm()`.  Default: MALA up to nu = 4, HMC above.
    stop
        When to end: a rule of `quenchphys.stopping`.  Default: what the problem recommends, else RemainingEvidence(-3).
    levels
        A prescribed, decreasing ladder of energies instead of an adaptive one; `stop` may end it earlier.
    draws_per_particle
        Exact prior draws per particle, kept with the ladder.
    configurations
        Most configurations of each replica that are kept of its levels; some of its prior draws are kept beside them.
    max_levels
        A ladder that is not finished by then ends with the outcome "level limit".
    progress
        Show the stage, the time and the time left.  Default: as a bar in a terminal or a notebook, as a line a minute
        elsewhere.  True: there at once as well; False: nothing; or a meter of your own.
    checkpoint
        A folder, or `Checkpoint(folder, minutes=, levels=)`: the state of the run is saved there, and the same call resumes
        from it, with the same results as a run that was never interrupted.  Ctrl-C and SIGTERM then save the state and
        raise `Interrupted`.
    devices
        How many of JAX's devices to use, or a list of them.  Default: as many as can share replicas and particles evenly.

    Returns
    -------
    Ladder
        Its `outcome` says how it ended; `print(ladder.report())` says whether it can be trusted, and why.

    Examples
    --------
    >>> import lattices, observables, quenchphys as qp
    >>> ladder = qp.quench(lattices.phi6(L=8, mu2=2.2957), particles=400, seed=1)
    >>> print(ladder.report())
    >>> observables.partition_function(ladder, beta=[0.5, 1.0])
    """
    model = view(problem)
    rule = check_stop(stop if stop is not None else suggested(model.stop))
    schedule = None if levels is None else check_schedule("levels", levels, increasing=False)
    spent = 0.0
    unchecked = True
    display = meter("quench", progress)
    if isinstance(softness, str) and softness == "auto":
        seed = Settings(particles=particles, seed=seed, kernel=kernel if kernel is not None else MALA()).seed
        check(problem)
        unchecked = False
        with closed_on_failure(display):
            softness, spent = read_softness(model, particles, seed, kernel, rule, devices, beside(display, "pilot"))
    softness = check_softness(recommended_softness(model) if softness is None else softness)
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
    if unchecked:
        check(problem)
    work = Assignment(model, "quench", family, settings, rule, schedule)
    ladder = run(work, display, checkpoint, devices)
    ladder.tree.attrs["pilot_gradients"] = spent
    return ladder


def read_softness(
    problem: ProblemView,
    particles: int,
    seed: int,
    kernel: Kernel | None,
    rule: StopRule,
    devices: int | Sequence[Any] | None = None,
    display: Callable[[], Meter] = Silent,
) -> tuple[float, float]:
    """The softness that pilot ladders of few particles and large steps allow, and the number of gradients they took.

    The first pilot has the softness that the problem recommends.
    """
    dimension = math.prod(problem.shape)
    few = min(particles, max(PILOT_PARTICLES, PILOT_SIZE // dimension))
    spent = 0.0

    def pilot(softness: float, number: int) -> Ladder:
        nonlocal spent
        quick: Kernel = MALA(steps=PILOT_STEPS) if softness <= LARGEST_FOR_MALA else HMC()
        settings = Settings(
            particles=few,
            replicas=PILOT_REPLICAS,
            seed=(seed + 1 + number) % (1 << SEED_BITS),
            target_ess=PILOT_ESS,
            kernel=quick if kernel is None else kernel,
            configurations=1,
        )
        work = Assignment(problem, "quench", SoftLevels(np.float32(softness)), settings, rule)
        ladder = run(work, display(), devices=devices)
        spent += ladder.attrs["gradients"]
        return ladder

    return choose(pilot, recommended_softness(problem)), spent


def recommended_softness(problem: ProblemView) -> float:
    """The softness the problem recommends, else the smallest in use."""
    return SMALLEST if problem.softness is None else problem.softness
