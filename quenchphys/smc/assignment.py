"""The assignment of a ladder: what is to be sampled, how, and by which compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jax.sharding import Mesh

from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.sharding import AXIS, ParticleSharding, set_size, tile_size
from quenchphys.problem import ProblemView
from quenchphys.settings import Settings
from quenchphys.smc.levels import Family
from quenchphys.smc.plan import Plan
from quenchphys.smc.programs import Programs, programs_for
from quenchphys.smc.step import Thresholds
from quenchphys.stopping import LevelLimit, StopRule
from quenchphys.storage.album import CONFIGURATION_LIMIT, Album
from quenchphys.storage.attributes import kernel_as_json

KEPT = 32  # configurations offered to the album from each level


@dataclass(frozen=True)
class Assignment:
    """What a run is to do; nothing in it depends on the devices."""

    problem: ProblemView
    method: str
    """"quench" or "temper"."""
    family: Family
    settings: Settings
    stop: StopRule
    schedule: np.ndarray | None = None
    """Prescribed levels; None: levels chosen by effective sample size."""

    @cached_property
    def dimension(self) -> int:
        """Numbers in one configuration."""
        return int(np.prod(self.problem.shape))

    @property
    def adaptive(self) -> bool:
        """Whether levels are chosen on the way."""
        return self.schedule is None

    @property
    def rule(self) -> StopRule:
        """The stop rule, with the limit on levels that every run has."""
        return self.stop | LevelLimit(self.settings.max_levels if self.schedule is None else len(self.schedule))

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds of the effective sample size, as the program takes them."""
        return Thresholds(np.float32(self.settings.target_ess), np.float32(self.settings.resample_ess))

    @property
    def album_size(self) -> int:
        """Configurations of particles that are kept of each replica."""
        return min(self.settings.configurations, max(1, self._room))

    @property
    def kept_draws(self) -> int:
        """Configurations of prior draws that are kept of each replica."""
        return Album.draws(self.settings, self._room)

    @property
    def _room(self) -> int:
        """Configurations of each replica that the memory for them holds."""
        return CONFIGURATION_LIMIT // (4 * self.dimension * self.settings.replicas)


@dataclass(frozen=True)
class Machine:
    """The compiled programs of a run, and the devices they run on."""

    plan: Plan
    mesh: Mesh
    program: Programs
    argument: ProblemView
    """The problem in the form that programs take."""

    @staticmethod
    def of(work: Assignment, plan: Plan, mesh: Mesh) -> Machine:
        return Machine(plan, mesh, programs_for(plan, mesh), work.problem.as_argument())


def plan_for(settings: Settings, dimension: int, devices: int | Sequence[Any] | None = None) -> tuple[Plan, Mesh]:
    """The compiled program's constants, and the devices it runs on."""
    tiles = settings.particles // tile_size(settings.particles, dimension)
    together = set_size(settings.replicas, settings.particles, dimension)
    mesh = mesh_for(settings.replicas // together, tiles, devices)
    plan = Plan(
        particles=settings.particles,
        draws=settings.particles * settings.draws_per_particle,
        kernel=settings.kernel,
        kept=min(KEPT, settings.particles),
        replicas_together=together if mesh.devices.flat[0].platform == "cpu" else None,
        sharding=ParticleSharding(mesh.shape[AXIS], tiles),
    )
    return plan, mesh


def plain(settings: Settings) -> dict[str, Any]:
    """Settings as JSON can hold them."""
    kernel = kernel_as_json(settings.kernel)
    return {name: value for name, value in asdict(settings).items() if name != "kernel"} | {"kernel": kernel}
