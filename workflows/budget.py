"""How much sampling does a study spend on a ladder?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import quenchphys as qp
from quenchphys.settings import Settings, check_softness, check_whole
from quenchphys.stopping import StopRule
from quenchphys.walk import Walk

PARTICLES = 500
PILOT_SHARE = 8  # a pilot, which goes all the way down, has an eighth of the particles
PILOT_PARTICLES = 64  # and not fewer than these
PILOT_REPLICAS = 4  # the fewest with a jackknife
# Walkers between two phases.  Errors come from the groups; a walker of phi^6 at L = 40 crosses about three times.
GROUPS, WALKERS, SWEEPS = 16, 8, 1600
PARTS = 11  # in which they walk, each kept when it is done
MOST_PARTS = 100  # to which they walk on while they have hardly crossed
BURN_IN = 0.1  # of all sweeps, the first part, which is not counted
WALK_SEED = 50  # between those of pilots and those of another study


@dataclass(frozen=True)
class Effort:
    """Settings of a ladder that a study hands on; everything else has the engine's default."""

    particles: int = PARTICLES
    replicas: int = 8
    seed: int = 0
    softness: float | None = None
    sweeps: int = SWEEPS

    def __post_init__(self) -> None:
        check_whole("sweeps", self.sweeps, 16 * PARTS)
        Settings(particles=self.particles, replicas=self.replicas, seed=self.seed)
        if self.softness is not None:
            check_softness(self.softness)

    def pilot(self, number: int) -> Effort:
        """A smaller ladder, with a seed of its own."""
        particles = min(self.particles, max(PILOT_PARTICLES, self.particles // PILOT_SHARE))
        replicas, seed = min(self.replicas, PILOT_REPLICAS), self.seed + 1 + number
        return replace(self, particles=particles, replicas=replicas, seed=seed)

    def softened(self, softness: float) -> Effort:
        """The same with this softness, unless one was given."""
        return self if self.softness is not None else replace(self, softness=softness)

    def request(self) -> dict[str, Any]:
        return asdict(self)

    def walk(
        self, problem: Any, start: np.ndarray | Walk, weight: tuple[np.ndarray, np.ndarray], part: int
    ) -> Walk:
        """One part of the walk, from where the part before ended."""
        sweeps = math.ceil((BURN_IN if part == 0 else (1 - BURN_IN) / (PARTS - 1)) * self.sweeps)
        return qp.multicanonical(problem, start, *weight, sweeps=sweeps, seed=self.seed + WALK_SEED + part)

    def quench(self, problem: Any, stop: StopRule | None, progress: bool | None, checkpoint: Path | None) -> qp.Ladder:
        """Run a ladder until `stop`, or until what the problem recommends."""
        return qp.quench(
            problem,
            particles=self.particles,
            replicas=self.replicas,
            seed=self.seed,
            softness=self.softness,
            stop=stop,
            progress=progress,
            checkpoint=checkpoint,
        )
