"""The time left as the display showed it during a run, against how long the run took.

    python -m benchmarks.speed.time_left --L 8 16

On a busy machine the clock says little, because other work comes and goes, so everything is forecast twice: in seconds of
the clock, and in seconds of processor time of the same run.  The display is read ten times a second, not only when
something changes, because a user looks at it at any moment.
"""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import workflows
from benchmarks import harness
from quenchphys.console.progress import Display

BRACKETS = {8: (2.25, 2.33), 16: (2.27, 2.30), 40: (2.27, 2.30)}
PERIOD = 0.1  # seconds
MOMENTS = (0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)


class Recorder(Display):
    """A silent display that writes down, ten times a second, the time and the time left by two clocks."""

    def __init__(self) -> None:
        super().__init__("coexistence", wanted=False)
        self.processor = Display("coexistence", wanted=False, clock=time.process_time)
        self.rows: list[tuple[float, float, float, float]] = []
        self.stages: list[tuple[str, float, float]] = []
        self.events: list[tuple[Any, ...]] = []  # from which the forecast can be repeated with other constants
        self.ended = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        while not self.ended.wait(PERIOD):
            if self.stages:
                self.rows.append((self.elapsed, self.left, self.processor.elapsed, self.processor.left))

    def stage(self, name, expected=None, kind="sample", detail=""):
        if not self.processor.forecast.stages:
            self.processor.forecast = copy.deepcopy(self.forecast)
        self.events.append(("stage", name, self.elapsed, self.processor.elapsed))
        super().stage(name, expected, kind, detail)
        self.processor.stage(name, expected, kind, detail)
        self.stages.append((name, self.elapsed, self.processor.elapsed))

    def update(self, share, detail=""):
        self.events.append(("share", share, self.elapsed, self.processor.elapsed))
        super().update(share, detail)
        self.processor.update(share, detail)


def table(rows: np.ndarray, ends: tuple[float, float]) -> None:
    """Predicted and true time left at shares of the run, and the worst ratio after the first quarter."""
    for name, column, end in (("clock", 0, ends[0]), ("processor", 2, ends[1])):
        now, left = rows[:, column], rows[:, column + 1]
        print(f"\n  {name}: {end:.1f} s in all\n  {'done':>6}{'left':>10}{'said':>10}{'ratio':>8}")
        for moment in MOMENTS:
            i = int(np.searchsorted(now, moment * end, side="right")) - 1
            true = end - now[i]
            print(f"  {now[i] / end:>6.0%}{true:>10.1f}{left[i]:>10.1f}{left[i] / true:>8.2f}")
        late = (now >= 0.25 * end) & (now <= 0.95 * end)
        ratio = left[late] / (end - now[late])
        inside = np.mean((ratio > 1 / 1.5) & (ratio < 1.5))
        print(f"  from 25% to 95%: ratio {ratio.min():.2f} to {ratio.max():.2f}", end=", ")
        print(f"within 1.5 in {inside:.0%} of {late.sum()} readings")
        total = (now[late] + left[late]) / end
        print(f"  total time said / true: {total.min():.2f} to {total.max():.2f}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--L", type=int, nargs="+", default=[8])
    parser.add_argument("--events", type=Path, metavar="FILE", help="write what happened when, as JSON")
    chosen = parser.parse_args(arguments)
    for L in chosen.L:
        display = Recorder()
        workflows.coexistence(L=L, bracket=BRACKETS.get(L, (2.27, 2.30)), progress=display)
        ends = display.elapsed, display.processor.elapsed
        display.ended.set()
        print(f"\nL = {L}; stages begin at (clock, processor):")
        for (name, wall, cpu), planned in zip(display.stages, display.forecast.stages, strict=False):
            print(f"  {name:<12}{wall:>8.1f}{cpu:>8.1f}   expected {planned.expected:.1f}")
        table(np.array(display.rows), ends)
        if chosen.events is not None:
            chosen.events.write_text(json.dumps({"L": L, "ends": ends, "events": display.events}))


if __name__ == "__main__":
    main()
