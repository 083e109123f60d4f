"""Progress of a call: one bar for all of its stages in a terminal or a notebook, a line a minute in a log.

    display   holds the stages and the forecast of the time left; a thread draws it, so that the clock moves while a program
              is compiled, and the loops that sample only set numbers
    meter     what a sampler reports to, after each block of levels or sweeps; any object with `update` and `close` will do
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from quenchphys.console.forecast import Approach, Forecast, Stage, compiling, duration, sampling
from quenchphys.console.surfaces import Surface, surface_for

COMPILATION = 14.0  # seconds for the programs of a ladder on an idle machine, without a cache
LADDER = 20.0  # seconds for a ladder of which nothing is known

# What methods without levels count.
COUNTED = {"multicanonical": "sweep", "canonical": "sweep", "bridge": "sweep", "chains": "draw", "laplace": "step"}


class Meter(Protocol):
    """A display of progress; any object with these two methods will do."""

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        """Show where the run is; called after each block of levels, or of sweeps of chains.

        Parameters
        ----------
        level
            Number of finished levels, or of sweeps.
        parameter
            E, or beta of a tempered ladder, at the last of them; the average over replicas, as all that follow.  For
            chains: their mean energy.
        acceptance
            Acceptance rate there.
        log_volume
            log G there; NaN for chains.
        remaining
            Distance to the end by the stop rule, in its own units; for chains the sweeps that are left.
        """
        ...

    def close(self) -> None:
        """Called once, when the run ends."""
        ...


class Silent:
    """No display."""

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        pass

    def close(self) -> None:
        pass


class Display:
    """One bar for a whole call: the stage by name, the share that is done, the time, and the time left.

    Parameters
    ----------
    title
        What is run, such as "coexistence".
    wanted
        None: shown in a terminal and in a notebook, and as a line a minute in anything else, from the second minute on.
        True: also at once, with all messages.  False: nothing is shown.
    stages
        What is planned, see `quenchphys.console.forecast`.
    stream
        Where it is written; default: standard error.
    clock
        Seconds; default: the clock on the wall.

    Examples
    --------
    >>> with Display("quench", stages=[compiling(10), sampling("ladder", 20)]) as display:
    ...     display.stage("compiling")
    ...     display.stage("ladder")
    ...     display.update(0.5, "level 80")
    """

    def __init__(
        self,
        title: str,
        wanted: bool | None = None,
        stages: Iterable[Stage] = (),
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.title, self.wanted = title, wanted
        self.forecast = Forecast(stages)
        self._clock, self._begun = clock, clock()
        self._detail = ""
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._surface: Surface | None = surface_for(wanted, stream or sys.stderr)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Display:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(finished=kind is None)

    @property
    def elapsed(self) -> float:
        """Seconds since the display was made."""
        return self._clock() - self._begun

    @property
    def left(self) -> float:
        """Seconds until the end, as far as they can be told."""
        with self._lock:
            return self.forecast.left(self._clock())

    def stage(self, name: str, expected: float | None = None, kind: str = "sample", detail: str = "") -> None:
        """Begin a stage: the next planned one of this name, or a new one."""
        with self._lock:
            self.forecast.begin(name, self._clock(), expected, kind)
            self._detail = detail
        self._open()

    def update(self, share: float, detail: str = "") -> None:
        """Set how much of the current stage is done, from 0 to 1."""
        with self._lock:
            if self.forecast.current is not None:
                self.forecast.current.share = min(max(share, 0.0), 1.0)
            self._detail = detail

    def message(self, text: str) -> None:
        """Show a line of its own, above the bar."""
        if self._surface is not None:
            self._surface.message(text)

    def close(self, finished: bool = True) -> None:
        """Stop drawing; a bar that is finished stays with its time."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._surface is not None:
            with self._lock:
                self.forecast.end(self._clock())
                done = (1.0, self.title, f"in {duration(self.elapsed)}") if finished else self.state()
            self._surface.close(*done)
            self._surface = None

    def state(self) -> tuple[float, str, str]:
        """The share of the whole that is done, what is being done, and the time left with details."""
        with self._lock:
            now = self._clock()
            left, passed = self.forecast.left(now), now - self._begun
            current = self.forecast.current
            done = passed / (passed + left) if passed + left > 0 else 0.0  # it may fall, as the time left may grow
            what = self.title if current is None or current.name == self.title else f"{self.title}: {current.name}"
            words = [f"about {duration(rounded(left))} left" if left > 0 else "", self._detail]
            return min(done, 0.99), what, ", ".join(word for word in words if word)

    def _open(self) -> None:
        if self._surface is None or self._thread is not None or self._stop.is_set():
            return
        self._thread = threading.Thread(target=self._draw, name="quenchphys progress", daemon=True)
        self._thread.start()

    def _draw(self) -> None:
        surface = self._surface
        assert surface is not None
        wait = surface.first_after
        while not self._stop.wait(wait):
            surface.draw(*self.state(), elapsed=self.elapsed)
            wait = surface.period


class LadderMeter:
    """Shows a ladder as a stage of a display: its level, E or beta, and acceptance.

    Parameters
    ----------
    display
        Where it is shown.
    name
        The name of the stage, such as "pilot".
    method
        "quench", "temper" or "nested".
    last
        Whether the display ends with the ladder.
    """

    def __init__(self, display: Display, name: str, method: str = "quench", last: bool = False):
        self.display = display
        self._name, self._letter, self._last = name, "beta" if method == "temper" else "E", last
        self._approach: Approach | None = None

    def begin(self) -> None:
        """Called before anything is compiled."""
        self.display.stage("compiling", kind="compile")

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        if self._approach is None:
            self._approach = Approach()
            self.display.stage(self._name)
        words = [f"level {level}", f"{self._letter} {parameter:.5g}"]
        if math.isfinite(acceptance):
            words.append(f"acceptance {acceptance:.2f}")
        self.display.update(self._approach.share(level, remaining), ", ".join(words))

    def close(self) -> None:
        if self._last:
            self.display.close()


class WalkMeter:
    """Shows chains as a stage of a display, also those that run in several parts.

    Parameters
    ----------
    display
        Where it is shown.
    sweeps
        Sweeps of all parts together.
    last
        Whether the display ends with the walk.
    counted
        What is counted.
    """

    def __init__(self, display: Display, sweeps: float, last: bool = False, counted: str = "sweep"):
        self.display, self.sweeps, self.words = display, sweeps, ""
        self._last, self._counted = last, counted
        self._before = 0.0  # sweeps of earlier parts
        self._first: float | None = None  # sweeps when the stage began, after compilation

    def begin(self) -> None:
        """Called before anything is compiled."""
        if self._first is None:
            self.display.stage("compiling", kind="compile")

    def part(self, before: float, sweeps: float, words: str) -> None:
        """A new part begins, after so many sweeps; all parts together will have `sweeps`."""
        self._before, self.sweeps, self.words = before, sweeps, words

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        done = self._before + level
        if self._first is None:
            self._first = done
            self.display.stage("walk")
        total = max(self.sweeps, done + remaining) - self._first
        words = [self.words or f"{self._counted} {level}"]
        if math.isfinite(acceptance):
            words.append(f"acceptance {acceptance:.2f}")
        self.display.update((done - self._first) / total if total > 0 else 1.0, ", ".join(words))

    def close(self) -> None:
        if self._last:
            self.display.close()


def meter(method: str, wanted: bool | Meter | None) -> Meter:
    """The display for one ladder or one walk.

    Parameters
    ----------
    method
        "quench", "temper", "nested", "multicanonical", "canonical", "bridge", "chains" or "laplace".
    wanted
        None: in a terminal, in a notebook, and a line a minute elsewhere.  True: also at once.  False: nothing.  Or a meter
        of your own.

    Returns
    -------
    Meter
        The display.
    """
    if wanted is False:
        return Silent()
    if wanted is not None and not isinstance(wanted, bool):
        return wanted
    if method in COUNTED:
        display = Display(method, wanted, [compiling(COMPILATION / 2), sampling("walk", LADDER)])
        return WalkMeter(display, 0, last=True, counted=COUNTED[method])
    name = "ladder"
    display = Display(method, wanted, [compiling(COMPILATION), sampling(name, LADDER)])
    return LadderMeter(display, name, method, last=True)


def beside(meter: Meter, name: str) -> Callable[[], Meter]:
    """Makes meters for ladders that are run before another one, as stages of its display."""

    def make() -> Meter:
        return LadderMeter(meter.display, name) if isinstance(meter, LadderMeter) else Silent()

    return make


@contextmanager
def closed_on_failure(meter: Meter) -> Iterator[None]:
    """Close a meter if what comes before its run fails."""
    try:
        yield
    except BaseException:
        meter.close()
        raise


@contextmanager
def shown(meter: Meter) -> Iterator[None]:
    """Tell a meter that compilation begins, if it has a method `begin`, and close it however the run ends."""
    start: Any = getattr(meter, "begin", None)
    try:
        if start is not None:
            start()
        yield
    finally:
        meter.close()


def rounded(seconds: float) -> float:
    """Seconds as exact as a forecast is: to five from a minute on."""
    return 5 * round(seconds / 5) if seconds >= 60 else seconds
