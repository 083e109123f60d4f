"""The settings of a run, checked in one place before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quenchphys.kernels import HMC, MALA, Kernel
from quenchphys.stopping import StopRule

LARGEST_FOR_MALA = 4.0  # softness up to which MALA is the default kernel


@dataclass(frozen=True)
class Settings:
    """The settings that `quench` and `temper` have in common; a wrong one is refused when the object is made.

    Parameters
    ----------
    particles
        Size of the population of each replica, at least 2.
    replicas
        Number of independent populations.
    seed
        A whole number; the same seed gives the same ladder.
    target_ess
        Share of the effective sample size that the step from one level to the next keeps, between 0 and 1.
    resample_ess
        Resample when the effective number of lineages falls below this share of the particles, from 0 to 1.
    kernel
        The mutation kernel: `MALA()`, `HMC()`, `Barker()` or `MinimumNorm()`.
    draws_per_particle
        Exact prior draws per particle, at least 2.
    configurations
        Most configurations of each replica that are kept of its levels; some of its prior draws are kept beside them.
    max_levels
        Number of levels after which a ladder ends in any case.

    Examples
    --------
    >>> Settings(particles=400, kernel=HMC()).replicas
    4
    """

    particles: int = 1000
    replicas: int = 4
    seed: int = 0
    target_ess: float = 0.95
    resample_ess: float = 0.5
    kernel: Kernel = field(default_factory=MALA)
    draws_per_particle: int = 10
    configurations: int = 4096
    max_levels: int = 100_000

    def __post_init__(self) -> None:
        check_whole("particles", self.particles, 2)
        check_whole("replicas", self.replicas, 1)
        check_whole("seed", self.seed, 0)
        check_whole("draws_per_particle", self.draws_per_particle, 2)
        check_whole("configurations", self.configurations, 1)
        check_whole("max_levels", self.max_levels, 1)
        _check_fraction("target_ess", self.target_ess)
        _check_fraction("resample_ess", self.resample_ess, including_ends=True)
        check_kernel(self.kernel)


def check_softness(softness: Any) -> float:
    """The softness as a float, refused unless it is a finite number greater than -1."""
    if isinstance(softness, bool) or not isinstance(softness, int | float | np.number) or not math.isfinite(softness):
        raise ValueError(f'softness must be a finite number greater than -1 or "auto"; {softness!r} was given')
    if softness <= -1:
        raise ValueError(f"softness must be greater than -1, so that levels have finite volumes; {softness} was given")
    return float(softness)


def check_stop(stop: Any) -> StopRule:
    """The stop rule itself, refused if it is none or can never fire."""
    if not isinstance(stop, StopRule):
        raise TypeError(f"stop must be a rule such as RemainingEvidence(-3) or LevelLimit(100); {stop!r} was given")
    if (fault := stop.fault()) is not None:
        raise ValueError(f"the stop rule {stop!r} can never fire: {fault}")
    return stop


def check_kernel(kernel: Any) -> None:
    """Refuse what is not a kernel, or one whose settings make no sense."""
    if not hasattr(kernel, "transition"):
        raise TypeError(f"kernel must be a kernel such as MALA() or HMC(); {kernel!r} was given")
    step = kernel.step_size
    if step is not None and not (math.isfinite(step) and step > 0):
        raise ValueError(f"the step size of a kernel must be positive and finite; {step} was given")
    if not 0 < kernel.target_acceptance < 1:
        raise ValueError(
            f"the target acceptance of a kernel must lie between 0 and 1; {kernel.target_acceptance} was given"
        )
    if kernel.transitions(1) < 1 or kernel.gradients() < 1:
        raise ValueError(f"a kernel must make at least one step at each level; {kernel!r} was given")


def check_schedule(name: str, schedule: Any, *, increasing: bool) -> np.ndarray:
    """The levels of a prescribed ladder in float32, refused unless they are finite and strictly monotone."""
    values = np.asarray(schedule, dtype=np.float32)
    if values.ndim != 1 or values.size < 1 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a list of finite numbers; {schedule!r} was given")
    steps = np.diff(values)
    if not ((steps > 0).all() if increasing else (steps < 0).all()):
        raise ValueError(
            f"{name} must be strictly {'increasing' if increasing else 'decreasing'} when rounded to float32"
        )
    return values


def default_kernel(softness: float) -> Kernel:
    """MALA near a hard wall, where a leapfrog step is limited by the slack; HMC where the wall is soft."""
    return MALA() if softness <= LARGEST_FOR_MALA else HMC()


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number; {value!r} was given")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; {value} was given")


def _check_fraction(name: str, value: Any, including_ends: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number between 0 and 1; {value!r} was given")
    if not (0 <= value <= 1 if including_ends else 0 < value < 1):
        raise ValueError(f"{name} must lie between 0 and 1; {value} was given")
