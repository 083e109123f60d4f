"""How much sampling does a study spend on a ladder?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import quenchphys as qp
from quenchphys.settings import Settings, check_softness
from quenchphys.stopping import StopRule

# The error of a coexistence point is that of the log odds over V: a larger lattice needs fewer particles.
SITES_IN_ALL = 250_000
PARTICLES = (512, 1000)
PILOT_SHARE = 4  # a pilot has a fourth of the particles
PILOT_PARTICLES = 64  # and not fewer than these
PILOT_REPLICAS = 4  # the fewest with a jackknife


@dataclass(frozen=True)
class Effort:
    """Settings of a ladder that a study hands on; everything else has the engine's default."""

    particles: int
    replicas: int
    seed: int = 0
    softness: float | None = None

    def __post_init__(self) -> None:
        Settings(particles=self.particles, replicas=self.replicas, seed=self.seed)
        if self.softness is not None:
            check_softness(self.softness)

    @staticmethod
    def on(problem: Any, particles: int | None, replicas: int, seed: int, softness: float | None) -> Effort:
        """The number of particles given, or one for the size of the problem."""
        if particles is None:
            shape = getattr(problem, "shape", ())
            fewest, most = PARTICLES
            particles = min(max(fewest, SITES_IN_ALL // max(1, math.prod(shape))), most) if shape else most
        return Effort(particles, replicas, seed, softness)

    def pilot(self, number: int) -> Effort:
        """A smaller ladder, with a seed of its own."""
        particles = min(self.particles, max(PILOT_PARTICLES, self.particles // PILOT_SHARE))
        return Effort(particles, min(self.replicas, PILOT_REPLICAS), self.seed + 1 + number, self.softness)

    def softened(self, softness: float) -> Effort:
        """The same with this softness, unless one was given."""
        return self if self.softness is not None else replace(self, softness=softness)

    def request(self) -> dict[str, Any]:
        return asdict(self)

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
