"""How long the rest of a run will take, from its plan and from how long its stages took so far.

A plan is a list of stages with the seconds that each is expected to take on an idle reference machine.  Only their ratios
matter once something was measured: stages of one kind (compilation, sampling, analysis) share the ratio of measured to
expected seconds.  A kind that was not measured yet takes the square root of the ratio of the others together, because a
busy machine does not slow all work down alike; compilation tells nothing about it, because it may come from a cache.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

OVERRUN = 0.3  # of the time a stage has taken, that is left when it takes longer than expected
TRUSTED_SHARE = 0.1  # of a stage done, at which its own speed counts as much as the plan
# Stages shorter than this tell nothing about the speed of the machine: their time is spent on starting up.
SHORTEST = 0.5


@dataclass
class Stage:
    """One stage of a run."""

    name: str
    """As the display shows it: compiling, pilot, walk, analysis."""
    expected: float
    """Seconds on an idle reference machine."""
    kind: str
    """"compile", "sample" or "analyse": stages of a kind share their speed."""
    begun: float | None = None
    ended: float | None = None
    share: float = 0.0
    """How much of it is done, from 0 to 1."""


def compiling(expected: float) -> Stage:
    """Compilation of a program."""
    return Stage("compiling", expected, "compile")


def sampling(name: str, expected: float) -> Stage:
    """A ladder or a walk."""
    return Stage(name, expected, "sample")


def analysing(expected: float) -> Stage:
    """Estimates from samples."""
    return Stage("analysis", expected, "analyse")


class Forecast:
    """The stages of a run, planned, begun and ended, and the seconds that are left.

    Parameters
    ----------
    stages
        What is planned, in order.

    Examples
    --------
    >>> forecast = Forecast([sampling("pilot", 10.0), sampling("walk", 60.0)])
    >>> forecast.begin("pilot", now=0.0)
    >>> forecast.begin("walk", now=20.0)
    >>> forecast.left(now=20.0)  # the pilot took twice as long as expected
    120.0
    """

    def __init__(self, stages: Iterable[Stage] = ()):
        self.stages = list(stages)
        self._current = -1

    @property
    def current(self) -> Stage | None:
        """The stage that is running."""
        return self.stages[self._current] if self._current >= 0 else None

    def begin(self, name: str, now: float, expected: float | None = None, kind: str = "sample") -> None:
        """End the current stage and begin the next planned one of this name.

        Stages that were planned between the two are not run any more: a file had their result.  A stage that was not
        planned comes next, and is expected to take as long as the last of its name, if no other time is given.
        """
        self.end(now)
        later = [i for i, stage in enumerate(self.stages) if i > self._current and stage.name == name]
        if later:
            del self.stages[self._current + 1 : later[0]]
        else:
            alike = [stage for stage in self.stages[: self._current + 1] if stage.name == name]
            like = alike[-1] if alike else Stage(name, 1.0, kind)
            self.stages.insert(self._current + 1, Stage(name, like.expected, like.kind))
        self._current += 1
        stage = self.stages[self._current]
        stage.begun = now
        if expected is not None:
            stage.expected = expected

    def end(self, now: float) -> None:
        """End the current stage."""
        if self.current is not None and self.current.ended is None:
            self.current.ended = now

    def append(self, stages: Iterable[Stage]) -> None:
        """Plan more stages, after all others."""
        self.stages += list(stages)

    def left(self, now: float) -> float:
        """Seconds until the last stage ends."""
        ahead = self.stages[self._current + 1 :]
        return self._left_of_current(now) + sum(stage.expected * self._speed(stage.kind) for stage in ahead)

    def _left_of_current(self, now: float) -> float:
        stage = self.current
        if stage is None or stage.begun is None or stage.ended is not None:
            return 0.0
        passed = now - stage.begun
        planned = stage.expected * self._speed(stage.kind)
        if stage.share <= 0:
            return max(planned - passed, OVERRUN * passed if passed > planned else 0.0)
        seen = passed * (1 - stage.share) / stage.share
        own = stage.share / (stage.share + TRUSTED_SHARE)
        return own * seen + (1 - own) * planned * (1 - stage.share)

    def _speed(self, kind: str) -> float:
        """Measured over expected seconds of the stages of this kind that have ended, else what the others suggest."""
        ended = [stage for stage in self.stages if stage.ended is not None]
        alike = [stage for stage in ended if stage.kind == kind]
        if sum(stage.expected for stage in alike) >= SHORTEST:
            return _ratio(alike)
        others = [stage for stage in ended if stage.kind != "compile"]
        return math.sqrt(_ratio(others)) if sum(stage.expected for stage in others) >= SHORTEST else 1.0


def _ratio(stages: list[Stage]) -> float:
    """Measured over expected seconds of stages that have ended."""
    measured = sum((stage.ended or 0.0) - (stage.begun or 0.0) for stage in stages)
    return measured / sum(stage.expected for stage in stages)


class Approach:
    """The share of a ladder that is done, from the distance to its end by the stop rule.

    Levels come closer to the end at a speed that changes slowly, so the recent half of the updates gives the speed, and
    share = passed / (passed + left) in levels since the first update: a resumed ladder begins somewhere.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._past: deque[tuple[int, float]] = deque(maxlen=400)  # (level, remaining)

    def share(self, level: int, remaining: float) -> float:
        """The share that is done after `level` levels; 0 while nothing can be said."""
        self._first = level if self._first is None else self._first
        self._past.append((level, remaining))
        if remaining <= 0:
            return 1.0
        first, far = self._past[len(self._past) // 2 if len(self._past) > 2 else 0]
        if not (far > remaining and level > first and math.isfinite(far)):
            return 0.0
        left = remaining * (level - first) / (far - remaining)
        passed = level - self._first
        return passed / (passed + left)


def duration(seconds: float) -> str:
    """A time as a person says it: 8 s, 2 min 10 s, 3 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return f"{whole // 60} min {whole % 60:02d} s" if whole % 60 else f"{whole // 60} min"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
