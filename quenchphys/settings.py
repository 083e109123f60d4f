"""The settings of a run, checked in one place before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quenchphys.kernels import HMC, MALA, Kernel
from quenchphys.plain_values import finite, in_short, plain, real, whole
from quenchphys.stopping import StopRule

SEED_BITS = 64
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
        A whole number from 0 to 2^64 - 1; the same seed gives the same ladder.
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
        keep_plain(self, particles=2, replicas=1, draws_per_particle=2, configurations=1, max_levels=1)
        object.__setattr__(self, "seed", check_seed(self.seed))
        object.__setattr__(self, "target_ess", _fraction("target_ess", self.target_ess))
        object.__setattr__(self, "resample_ess", _fraction("resample_ess", self.resample_ess, including_ends=True))
        check_kernel(self.kernel)


def keep_plain(settings: Any, **least: int) -> None:
    """Replace these whole numbers of a frozen dataclass by Python's own, each refused if it is less than given here."""
    for name, smallest in least.items():
        object.__setattr__(settings, name, whole(name, getattr(settings, name), smallest))


def check_seed(seed: Any) -> int:
    """The seed as an int, refused unless it is a whole number from 0 to 2^64 - 1."""
    return whole("seed", seed, 0, bits=SEED_BITS)


def check_softness(softness: Any) -> float:
    """The softness as a float, refused unless it is a finite number greater than -1."""
    try:
        number = finite("softness", softness)
    except (TypeError, ValueError):
        raise ValueError(f'softness must be a finite number greater than -1 or "auto"; {softness!r} was given') from None
    if number <= -1:
        raise ValueError(f"softness must be greater than -1, so that levels have finite volumes; {number} was given")
    return number


def check_stop(stop: Any) -> StopRule:
    """The stop rule itself, refused if it is none or can never fire."""
    if not isinstance(stop, StopRule):
        raise TypeError(f"stop must be a rule such as RemainingEvidence(-3) or LevelLimit(100); {stop!r} was given")
    if (fault := stop.fault()) is not None:
        raise ValueError(f"the stop rule {stop!r} can never fire: {fault}")
    return stop


def check_kernel(kernel: Any) -> None:
    """Refuse what is not a kernel, or one whose settings make no sense."""
    if not hasattr(kernel, "transition") or isinstance(kernel, type):
        raise TypeError(f"kernel must be a kernel such as MALA() or HMC(); {kernel!r} was given")
    step = kernel.step_size
    if step is not None and finite("the step size of a kernel", step) <= 0:
        raise ValueError(f"the step size of a kernel must be positive and finite; {step} was given")
    if not 0 < real("the target acceptance of a kernel", kernel.target_acceptance) < 1:
        raise ValueError(
            f"the target acceptance of a kernel must lie between 0 and 1; {kernel.target_acceptance} was given"
        )
    for what, count in (("transitions", kernel.transitions(1)), ("gradients", kernel.gradients())):
        if not real(f"the number of {what} of a kernel", count) >= 1:
            raise ValueError(f"a kernel must make at least one step at each level; {kernel!r} was given")
    plain("the settings of a kernel", vars(kernel))


def check_schedule(name: str, schedule: Any, *, increasing: bool) -> np.ndarray:
    """The levels of a prescribed ladder in float32, refused unless they are finite and strictly monotone."""
    try:
        values = np.asarray(schedule, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a list of finite numbers; {in_short(schedule)} was given") from None
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


def check_whole(name: str, value: Any, least: int) -> int:
    """The value as an int, refused unless it is a whole number of at least `least`."""
    return whole(name, value, least)


def _fraction(name: str, value: Any, including_ends: bool = False) -> float:
    number = real(name, value)
    if not (0 <= number <= 1 if including_ends else 0 < number < 1):
        raise ValueError(f"{name} must lie between 0 and 1; {number} was given")
    return number
