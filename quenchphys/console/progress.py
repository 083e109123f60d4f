"""Progress of a growing ladder: one line, rewritten in place, on a terminal; nothing anywhere else."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import Protocol, TextIO

COUNTED = {"chains": "draw", "laplace": "step"}  # what methods without levels count


class Meter(Protocol):
    """A display of progress; any object with these two methods will do."""

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        """Show where the run is; called after each block of levels.

        Parameters
        ----------
        level
            Number of finished levels.
        parameter
            E, or beta of a tempered ladder, at the last of them; the average over replicas, as all that follow.
        acceptance
            Acceptance rate there.
        log_volume
            log G there.
        remaining
            Distance to the end by the stop rule, in its own units.
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


class Line:
    """Level, E (or beta), log G - E (the log of the level's weight at beta = 1), acceptance, rate, time, time left.

    The time left is the distance to the end by the stop rule, over the speed of approach in the last updates.

    Parameters
    ----------
    method
        "quench", "temper", "nested", "chains" or "laplace".
    stream
        Where the line is written; default: standard error.
    """

    def __init__(self, method: str, stream: TextIO | None = None):
        self._method, self._stream = method, stream or sys.stderr
        self._start = time.monotonic()
        self._width = 0
        self._past: deque[tuple[float, float]] = deque(maxlen=5)  # (seconds, remaining)

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        elapsed = time.monotonic() - self._start
        if self._method in COUNTED:
            self._show(f"{COUNTED[self._method]} {level}  U {parameter:.6g}  {elapsed:.0f} s", elapsed, remaining)
            return
        if self._method != "temper":
            place = f"E {parameter:.6g}  log G - E {log_volume - parameter:.5g}"
        else:
            place = f"beta {parameter:.5g}  log Z {log_volume:.5g}"
        rate = level / max(elapsed, 1e-9)
        text = f"level {level}  {place}  acceptance {acceptance:.2f}  {rate:.3g} levels/s  {elapsed:.0f} s"
        self._show(text, elapsed, remaining)

    def _show(self, text: str, elapsed: float, remaining: float) -> None:
        self._past.append((elapsed, remaining))
        text += self._left()
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def _left(self) -> str:
        (begin, far), (now, near) = self._past[0], self._past[-1]
        if not far > near:
            return ""
        left = near * (now - begin) / (far - near)
        return f"  about {left:.0f} s left" if math.isfinite(left) else ""

    def close(self) -> None:
        if self._width:
            self._stream.write("\n")


def meter(method: str, wanted: bool | Meter | None) -> Meter:
    """The display for a run.

    Parameters
    ----------
    method
        "quench", "temper", "nested", "chains" or "laplace".
    wanted
        None: a line if standard error is a terminal.  True or False: a line or nothing.  Or a meter of your own.

    Returns
    -------
    Meter
        The display.
    """
    if wanted is None:
        wanted = sys.stderr.isatty()
    if isinstance(wanted, bool):
        return Line(method) if wanted else Silent()
    return wanted
