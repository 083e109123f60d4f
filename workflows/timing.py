"""How long the stages of a study take on an idle machine of two cores; the display scales this by what it measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from quenchphys.console.forecast import Stage, analysing, compiling, sampling
from quenchphys.console.progress import COMPILATION
from quenchphys.problem import view
from workflows.budget import PARTS, CoexistenceSettings, LadderSettings, WalkSettings

# Seconds for one particle at one level, and for one chain in one sweep: a constant, and a part for every site.  Fitted to
# phi^6 at L = 8, 16 and 40, where ladders took 0.35, 2.4 and 14 s and walks 7.6, 16 and 73 s.
LEVEL, LEVEL_SITE = 1e-5, 6e-8
SWEEP, SWEEP_SITE = 2.5e-5, 2.1e-7
CLUSTER_SITE = 3e-8  # seconds for one site in one sweep of canonical chains
BRIDGE_SITE, BRIDGE_SLOPE = 1e-9, 0.85  # seconds of a site-gradient; d log odds / d mu2 of phi^6, per site
LADDER_ANALYSIS, BETA_SAMPLE = 1.8, 2e-8  # seconds, and those to weight one sample at one temperature
WALK_ANALYSIS, WALK_ANALYSIS_SITE = 1.5, 5e-4
ALL_SIZES = 15.0  # seconds for each size: Binder cumulants on a grid of couplings, their slopes and crossings


def levels_of(sites: int) -> float:
    """Levels of a ladder: measured for phi^6 at L = 8, 16 and 40 (141, 250, 579)."""
    return 17.5 * math.sqrt(sites)


def stages_of_ladder(problem: Any, settings: LadderSettings, temperatures: int = 1) -> list[Stage]:
    """One ladder, and an analysis at some temperatures."""
    sites = math.prod(view(problem).shape)
    samples = levels_of(sites) * settings.particles * settings.replicas
    return [
        compiling(COMPILATION),
        sampling("ladder", samples * (LEVEL + LEVEL_SITE * sites)),
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
        compiling(0.7 * COMPILATION),
        sampling("walk", sweeps * (SWEEP + SWEEP_SITE * sites)),
        analysing(WALK_ANALYSIS + WALK_ANALYSIS_SITE * sites),
    ]


def stages_of_critical(problems: Sequence[Any], settings: WalkSettings) -> list[Stage]:
    """Canonical chains at three couplings of each size, and then an analysis of all of them together."""
    sweeps = 3 * settings.sweeps * settings.groups * settings.chains
    seconds = [sweeps * CLUSTER_SITE * math.prod(view(problem).shape) for problem in problems]
    return [compiling(COMPILATION / 2), *(sampling("walk", each) for each in seconds), analysing(5.0 * len(problems))]


def stages_of_point(problem: Any, settings: CoexistenceSettings) -> list[Stage]:
    """A pilot ladder and a walk, or bridges to both phases, or all of them."""
    stages: list[Stage] = []
    if settings.method != "phases":
        pilot = LadderSettings(settings.pilot.particles, settings.pilot.replicas)
        first, ladder, analysis = stages_of_ladder(problem, pilot)
        stages += [first, sampling("pilot", ladder.expected), analysis, *stages_of_walk(problem, settings.walk)]
    if settings.method in ("phases", "both"):
        stages += stages_of_bridges(math.prod(view(problem).shape), settings.error)
    return stages


def stages_of_bridges(sites: int, error: float | None) -> list[Stage]:
    """Bridges to both phases: 6e9 site-gradients for 0.08 nats at 1600 sites of phi^6, and as V^2 beyond."""
    nats = 0.1 if error is None else error * BRIDGE_SLOPE * sites
    gradients = 6e9 * (sites / 1600) ** 2 * (0.08 / nats) ** 2
    return [compiling(0.7 * COMPILATION), sampling("walk", BRIDGE_SITE * gradients), analysing(WALK_ANALYSIS)]
