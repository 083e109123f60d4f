"""How is a long run stopped?  Ctrl-C and SIGTERM are remembered until the next block of levels is done."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A run was asked to stop; what was finished is kept, and the message says where."""


class Asked:
    """True once the run was asked to stop."""

    def __init__(self) -> None:
        self._asked = False

    def __bool__(self) -> bool:
        return self._asked

    def ask(self) -> None:
        self._asked = True


@contextmanager
def interruptible() -> Iterator[Asked]:
    """Remembers Ctrl-C and SIGTERM; a second Ctrl-C stops at once.

    Signals reach the main thread alone; in any other nothing is caught.
    """
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        asked.ask()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nStopping as soon as what was done is kept; once more to stop at once.", file=sys.stderr, flush=True)

    # A process that was told to ignore a signal, as in the background of a script, goes on ignoring it.
    caught = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, ask) for number in caught}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
