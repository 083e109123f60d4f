"""How long the stages of a study take on one core of a usual machine; the display scales this by what it measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from quenchphys.console.forecast import Stage, analysing, compiling, sampling
from quenchphys.problem import view
from workflows.budget import PARTS, CoexistenceSettings, LadderSettings, WalkSettings

# Fitted to coexistence points of phi^6 at L = 8, 16 and 40 by processor time on one core, stage by stage (programs newly
# compiled): 9.8, 11.7, 15.3; pilot 1.1, 2.8, 45; analysis 0.5, 0.7, 1.5; compiling 5.7, 6.5, 11.5; walk 5.9, 19.5, 118;
# analysis 0.9, 0.9, 1.1 s (`python -m benchmarks.speed.time_left`).
COMPILE_LADDER, COMPILE_WALK, COMPILE_SITE = 9.8, 5.5, 3.5e-3  # seconds, and those for every site
LADDER_START, LEVEL_SITE = 0.8, 1.5e-7  # seconds of a ladder, and those for one site of one particle at one level
SWEEP, SWEEP_SITE = 5e-6, 3.55e-7  # seconds for one chain in one sweep, and for each of its sites
PILOT_ANALYSIS, PILOT_SAMPLE = 0.3, 6.5e-6  # seconds, and those for one particle at one level
# Canonical chains of phi^4 at L = 8, 12, 16 and 24: 1.6, 3.3, 2.5 and 5.7 s at each coupling, with the curves of a size.
CLUSTER_START, CLUSTER_SITE = 0.9, 4e-8  # seconds at one coupling, and those for one site in one sweep
COMPILE_CLUSTERS, COMPILED, CRITICAL_ANALYSIS = 3.0, 0.3, 0.1  # seconds for each size; of a program that is there; of a size
BRIDGE_SITE, BRIDGE_SLOPE = 1e-9, 0.85  # seconds of a site-gradient; d log odds / d mu2 of phi^6, per site
LADDER_ANALYSIS, BETA_SAMPLE = 1.8, 2e-8  # seconds, and those to weight one sample at one temperature
WALK_ANALYSIS, WALK_ANALYSIS_SITE = 0.85, 1.6e-4
ALL_SIZES = 15.0  # seconds for each size: Binder cumulants on a grid of couplings, their slopes and crossings


def levels_of(sites: int) -> float:
    """Levels of a ladder: measured for phi^6 at L = 8, 16 and 40 (141, 250, 579)."""
    return 17.5 * math.sqrt(sites)


def stages_of_ladder(problem: Any, settings: LadderSettings, temperatures: int = 1) -> list[Stage]:
    """One ladder, and an analysis at some temperatures."""
    sites = math.prod(view(problem).shape)
    samples = levels_of(sites) * settings.particles * settings.replicas
    return [
        compiling(COMPILE_LADDER + COMPILE_SITE * sites),
        sampling("ladder", LADDER_START + samples * LEVEL_SITE * sites),
        analysing(LADDER_ANALYSIS + temperatures * samples * BETA_SAMPLE),
    ]


def stages_of_ladders(problems: Sequence[Any], settings: LadderSettings) -> list[Stage]:
    """One ladder for each size, and then an analysis of all of them together at many couplings."""
    stages = [stage for problem in problems for stage in stages_of_ladder(problem, settings)]
    return [*stages[:-1], analysing(ALL_SIZES * len(problems))]


def stages_of_walk(problem: Any, settings: WalkSettings) -> list[Stage]:
    """Multicanonical chains, and the analysis of their samples."""
    sites = math.prod(view(problem).shape)
    sweeps = settings.sweeps_until(PARTS) * settings.groups * settings.chains
    return [
        compiling(COMPILE_WALK + COMPILE_SITE * sites),
        sampling("walk", sweeps * (SWEEP + SWEEP_SITE * sites)),
        analysing(WALK_ANALYSIS + WALK_ANALYSIS_SITE * sites),
    ]


def stages_of_critical(problems: Sequence[Any], settings: WalkSettings) -> list[Stage]:
    """Canonical chains at three couplings of each size, and then an analysis of all of them together."""
    stages = []
    for problem in problems:
        sweeps = settings.sweeps * settings.groups * settings.chains
        seconds = CLUSTER_START + sweeps * CLUSTER_SITE * math.prod(view(problem).shape)
        for compilation in (COMPILE_CLUSTERS, COMPILED, COMPILED):  # another coupling takes the same program
            stages += [compiling(compilation), sampling("walk", seconds)]
    return [*stages, analysing(CRITICAL_ANALYSIS * len(problems))]


def stages_of_point(problem: Any, settings: CoexistenceSettings) -> list[Stage]:
    """A pilot ladder and a walk, or bridges to both phases, or all of them."""
    stages: list[Stage] = []
    if settings.method != "phases":
        pilot = LadderSettings(settings.pilot.particles, settings.pilot.replicas)
        first, ladder, _ = stages_of_ladder(problem, pilot)
        samples = levels_of(math.prod(view(problem).shape)) * pilot.particles * pilot.replicas
        analysis = analysing(PILOT_ANALYSIS + samples * PILOT_SAMPLE)
        stages += [first, sampling("pilot", ladder.expected), analysis, *stages_of_walk(problem, settings.walk)]
    if settings.method in ("phases", "both"):
        stages += stages_of_bridges(math.prod(view(problem).shape), settings.error)
    return stages


def stages_of_bridges(sites: int, error: float | None) -> list[Stage]:
    """Bridges to both phases: 6e9 site-gradients for 0.08 nats at 1600 sites of phi^6, and as V^2 beyond."""
    nats = 0.1 if error is None else error * BRIDGE_SLOPE * sites
    gradients = 6e9 * (sites / 1600) ** 2 * (0.08 / nats) ** 2
    return [compiling(COMPILE_WALK), sampling("walk", BRIDGE_SITE * gradients), analysing(WALK_ANALYSIS)]
