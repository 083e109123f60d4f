"""How long the stages of a study take on an idle machine of two cores; the display scales this by what it measures."""

from __future__ import annotations

import math
from typing import Any

from quenchphys.console.forecast import Stage, analysing, compiling, sampling
from quenchphys.console.progress import COMPILATION
from quenchphys.problem import view
from workflows.budget import PARTS, CoexistenceSettings, LadderSettings, WalkSettings

SITE_GRADIENTS = 2.5e8  # a second
LADDER_GRADIENTS = 40.0  # of a particle at a level
SWEEP_GRADIENTS = 4 * 48.0  # of a chain in a sweep
BETA_SAMPLE = 2e-8  # seconds to weight one sample at one temperature


def levels_of(sites: int) -> float:
    """Levels of a ladder: measured for phi^6 at L = 8, 16 and 40 (141, 250, 579)."""
    return 17.5 * math.sqrt(sites)


def stages_of_ladder(problem: Any, settings: LadderSettings, temperatures: int = 1) -> list[Stage]:
    """One ladder, and an analysis at some temperatures."""
    sites = math.prod(view(problem).shape)
    particles = settings.particles * settings.replicas
    samples = levels_of(sites) * particles
    return [
        compiling(COMPILATION),
        sampling("ladder", samples * sites * LADDER_GRADIENTS / SITE_GRADIENTS),
        analysing(1.0 + temperatures * samples * BETA_SAMPLE),
    ]


def stages_of_walk(problem: Any, settings: WalkSettings) -> list[Stage]:
    """Multicanonical chains, and the analysis of their samples."""
    sites = math.prod(view(problem).shape)
    sweeps = settings.sweeps_until(PARTS) * settings.groups * settings.chains
    return [
        compiling(0.7 * COMPILATION),
        sampling("walk", sweeps * sites * SWEEP_GRADIENTS / SITE_GRADIENTS),
        analysing(1.0 + 4e-6 * sweeps),
    ]


def stages_of_point(problem: Any, settings: CoexistenceSettings) -> list[Stage]:
    """A pilot ladder and a walk."""
    pilot = LadderSettings(settings.pilot.particles, settings.pilot.replicas)
    first, ladder, analysis = stages_of_ladder(problem, pilot, temperatures=10)
    return [first, sampling("pilot", ladder.expected), analysis, *stages_of_walk(problem, settings.walk)]
