"""What a compiled program is made for: its static plan, and the plan together with what is sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quenchphys.kernels import Kernel
from quenchphys.parallel.sharding import ParticleSharding
from quenchphys.problem import ProblemView
from quenchphys.smc.levels import Family


@dataclass(frozen=True)
class Plan:
    """The constants of a compiled program: another plan compiles again, another seed or coupling does not."""

    particles: int
    draws: int  # prior draws of each replica
    kernel: Kernel
    kept: int  # configurations kept of each level
    replicas_together: int | None  # moved in one operation, tile by tile; None: all particles of a device at once
    sharding: ParticleSharding


class Work(NamedTuple):
    """What is sampled and how: the same at every level of a run."""

    problem: ProblemView
    plan: Plan
    family: Family
