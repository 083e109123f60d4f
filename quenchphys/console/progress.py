"""What a person sees while a ladder grows: one line, rewritten, on a terminal; nothing anywhere else."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import Protocol, TextIO


class Meter(Protocol):
    """Told after each device call; may be swapped for another."""

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None: ...

    def close(self) -> None: ...


class Silent:
    """No display."""

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        pass

    def close(self) -> None:
        pass


class Line:
    """level, E (or beta), acceptance, log G - E (the log of the weight of the level at beta = 1), rate, time, time left.

    The time left is how far the stop rule says the end is, over how fast it came nearer in the last updates.
    """

    def __init__(self, method: str, stream: TextIO | None = None):
        self._method, self._stream = method, stream or sys.stderr
        self._start = time.monotonic()
        self._width = 0
        self._past: deque[tuple[float, float]] = deque(maxlen=5)  # (seconds, remaining)

    def update(self, level: int, parameter: float, acceptance: float, log_volume: float, remaining: float) -> None:
        elapsed = time.monotonic() - self._start
        if self._method == "quench":
            place = f"E {parameter:.6g}  log G - E {log_volume - parameter:.5g}"
        else:
            place = f"beta {parameter:.5g}  log Z {log_volume:.5g}"
        rate = level / max(elapsed, 1e-9)
        text = f"level {level}  {place}  acceptance {acceptance:.2f}  {rate:.3g} levels/s  {elapsed:.0f} s"
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
    """`None`: a line if standard error is a terminal; `True` or `False`: a line or not; or a meter of one's own."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    if isinstance(wanted, bool):
        return Line(method) if wanted else Silent()
    return wanted
