"""What does a person see while a study runs, and how can they stop it?"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from quenchphys.stopping import Asked


@dataclass(frozen=True)
class Narrator:
    """Says on standard error what happens; `progress` None: if that is a terminal."""

    progress: bool | None = None

    def say(self, text: str) -> None:
        if self.progress or (self.progress is None and sys.stderr.isatty()):
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def interruptible(self) -> Iterator[Asked]:
        """A stop rule that fires after Ctrl-C or SIGTERM; a second Ctrl-C stops at once.

        Signals reach the main thread alone; in any other the rule never fires.
        """
        asked = Asked()
        if threading.current_thread() is not threading.main_thread():
            yield asked
            return

        def ask(number: int, frame: FrameType | None) -> None:
            asked.ask()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print("\nStopping at the next block of levels; once more to stop at once.", file=sys.stderr, flush=True)

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield asked
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
