"""How much sampling a study spends on ladders, pilots and chains: the defaults, and their validation."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import quenchphys as qp
from quenchphys.console.progress import Meter
from quenchphys.settings import Settings, check_softness, check_whole
from quenchphys.stopping import StopRule
from quenchphys.walk import Walk
from workflows import defaults

# A walk is run in parts, each saved when it is finished.
PARTS = 11
MOST_PARTS = 100  # chains that have hardly crossed go on up to this many parts
BURN_IN = 0.1  # share of all sweeps in the first part, which is not counted
SWEEPS_IN_A_CALL = 16  # of `quenchphys.multicanonical`, which rounds every part up to a multiple of it


class Use(IntEnum):
    """What a random seed of a study is for."""

    PILOT = 1
    STARTS = 2
    CHAINS = 3
    CALIBRATION = 4
    REPRODUCTION = 5


def seed_of(study: int, use: Use, number: int = 0) -> int:
    """The seed of one part of a study.

    Sums such as seed + number would give neighbouring studies parts in common.
    """
    return int(np.random.SeedSequence([study, int(use), number]).generate_state(1)[0])


@dataclass(frozen=True)
class LadderSettings:
    """Sampling of one ladder; every other setting has the engine's default."""

    particles: int = defaults.LADDER_PARTICLES
    """Particles in each population; the error falls with the square root of their number."""
    replicas: int = defaults.LADDER_REPLICAS
    """Independent populations, run side by side.  Error bars come from a jackknife over them and from their genealogies."""
    seed: int = 0
    """The same seed gives the same numbers."""
    softness: float | None = None
    """Softness nu of the levels; None: what the model recommends."""

    def __post_init__(self) -> None:
        Settings(particles=self.particles, replicas=self.replicas, seed=self.seed)
        if self.softness is not None:
            check_softness(self.softness)

    def softened(self, softness: float) -> LadderSettings:
        """The same settings with this softness."""
        return replace(self, softness=softness)

    def request(self) -> dict[str, Any]:
        return asdict(self)

    def quench(
        self, problem: Any, stop: StopRule | None, progress: bool | Meter | None, checkpoint: Path | None
    ) -> qp.Ladder:
        """Run a ladder until `stop`, or as deep as the problem recommends."""
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


@dataclass(frozen=True)
class PilotSettings:
    """Sampling of the pilot ladders of a coexistence point, which find the coupling and the multicanonical weight.

    A pilot leads the chains and adds nothing to their error bars, so it can be small.
    """

    particles: int = defaults.PILOT_PARTICLES
    """Particles in each population of a pilot."""
    replicas: int = defaults.PILOT_REPLICAS
    """Independent populations of a pilot."""
    seed: int = 0
    """Seed of the study; every pilot has a seed of its own that follows from it, see `seed_of`."""
    softness: float | None = None
    """Softness nu of the levels; None: what the model recommends, or less where a pilot finds that too large."""

    def __post_init__(self) -> None:
        check_whole("pilot_particles", self.particles, 2)
        check_whole("pilot_replicas", self.replicas, 1)
        check_whole("seed", self.seed, 0)
        if self.softness is not None:
            check_softness(self.softness)

    def ladder(self, number: int) -> LadderSettings:
        """The settings of one pilot, with a seed of its own."""
        return LadderSettings(self.particles, self.replicas, seed_of(self.seed, Use.PILOT, number), self.softness)


@dataclass(frozen=True)
class WalkSettings:
    """Sampling of the multicanonical chains between two phases."""

    groups: int = defaults.WALK_GROUPS
    """Groups of chains that are told of one by one; error bars are a jackknife over the chains of all groups."""
    chains: int = defaults.WALK_CHAINS
    """Chains in each group, which share step size and scale.  A chain of phi^6 at L = 40 crosses about three times."""
    sweeps: int = defaults.WALK_SWEEPS
    """Sweeps of each chain; the error falls with the square root.  Chains that have hardly crossed go on for up to nine
    times as many."""
    seed: int = 0
    """Seed of the study."""

    def __post_init__(self) -> None:
        check_whole("groups", self.groups, defaults.FEWEST_GROUPS)
        check_whole("chains", self.chains, 1)
        check_whole("sweeps", self.sweeps, SWEEPS_IN_A_CALL * PARTS)
        check_whole("seed", self.seed, 0)

    def walk(
        self,
        problem: Any,
        start: np.ndarray | Walk,
        weight: tuple[np.ndarray, np.ndarray],
        part: int,
        progress: bool | Meter | None = False,
    ) -> Walk:
        """One part of the walk, from where the part before it ended."""
        seed = seed_of(self.seed, Use.CHAINS, part)
        return qp.multicanonical(problem, start, *weight, sweeps=self.sweeps_of(part), seed=seed, progress=progress)

    def sweeps_of(self, part: int) -> int:
        """Sweeps in one part: the first is burn-in, the others are alike."""
        return math.ceil((BURN_IN if part == 0 else (1 - BURN_IN) / (PARTS - 1)) * self.sweeps)

    def sweeps_until(self, part: int) -> int:
        """Sweeps in all parts before one."""
        return sum(self.sweeps_of(earlier) for earlier in range(part))


@dataclass(frozen=True)
class BridgeSettings:
    """Sampling of two phases apart, each by a bridge from its own Gaussian."""

    error: float | None = None
    """Standard error of the coupling to be reached; None: 0.1 nats in the log odds of the phases."""
    groups: int = defaults.WALK_GROUPS
    """Independent groups of chains at every step of a bridge; error bars are a jackknife over them."""
    seed: int = 0
    """Seed of the study."""

    def __post_init__(self) -> None:
        check_whole("groups", self.groups, defaults.FEWEST_GROUPS)
        if self.groups % defaults.FEWEST_GROUPS:
            raise ValueError(
                f"groups must be a multiple of {defaults.FEWEST_GROUPS} for bridges; {self.groups} was given"
            )

    @property
    def scouts(self) -> BridgeSettings:
        """Of the short bridges that look for the coupling."""
        return replace(self, groups=defaults.FEWEST_GROUPS)


METHODS = ("auto", "crossing", "phases", "both")


class CoexistenceSettings(NamedTuple):
    """Sampling of a coexistence point: a pilot ladder and then chains that cross, or bridges to both phases, or both."""

    pilot: PilotSettings
    walk: WalkSettings
    error: float | None = None
    method: str = "auto"

    @staticmethod
    def of(
        pilot_particles: int = PilotSettings.particles,
        pilot_replicas: int = PilotSettings.replicas,
        groups: int = WalkSettings.groups,
        chains: int = WalkSettings.chains,
        sweeps: int = WalkSettings.sweeps,
        seed: int = 0,
        softness: float | None = None,
        error: float | None = None,
        method: str = "auto",
    ) -> CoexistenceSettings:
        """From the keywords of `workflows.coexistence`."""
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; {method!r} was given.")
        if error is not None:
            if isinstance(error, bool) or not isinstance(error, int | float | np.number) or not 0 < error < math.inf:
                raise ValueError(f"error must be positive and finite; {error!r} was given.")
            if method == "crossing":
                raise ValueError("error is for bridges to the phases; the error of method='crossing' follows from sweeps.")
            error = float(error)
        pilot = PilotSettings(pilot_particles, pilot_replicas, seed, softness)
        settings = CoexistenceSettings(pilot, WalkSettings(groups, chains, sweeps, seed), error, method)
        if method in ("phases", "both"):
            settings.bridge  # noqa: B018, refuses what bridges do not allow
        return settings

    @property
    def bridge(self) -> BridgeSettings:
        """What bridges take from these settings."""
        return BridgeSettings(self.error, self.walk.groups, self.walk.seed)

    @property
    def of_chains(self) -> bool:
        """Whether something was chosen that only chains which cross can do."""
        usual = CoexistenceSettings.of(groups=self.walk.groups, seed=self.walk.seed)
        return (self.pilot, self.walk) != (usual.pilot, usual.walk)

    def request(self, method: str | None = None) -> dict[str, Any]:
        """By the names of the keywords, those that the method uses; by default all that were given."""
        if method == "phases":
            return {"method": method, **asdict(self.bridge)}
        pilot, walk = asdict(self.pilot), asdict(self.walk)
        crossing = {
            "pilot_particles": pilot.pop("particles"),
            "pilot_replicas": pilot.pop("replicas"),
            **pilot,
            **walk,
        }
        named = {"method": method or self.method} if (method or self.method) not in ("auto", "crossing") else {}
        return crossing | named | ({} if self.error is None else {"error": self.error})
