"""Ctrl-C and SIGTERM in a long run: remembered until the state can be saved."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A run was stopped by Ctrl-C or SIGTERM after saving its state; the message says how to continue.

    It is a `KeyboardInterrupt`, so that code which catches exceptions in general lets it pass.

    Examples
    --------
    >>> try:
    ...     ladder = qp.quench(model, checkpoint="state")
    ... except qp.Interrupted as stopped:
    ...     print(stopped)
    Interrupted after 320 levels; run the same call again to continue from state.
    """


class StopRequest:
    """True once Ctrl-C was pressed or SIGTERM arrived."""

    def __init__(self) -> None:
        self._made = False

    def __bool__(self) -> bool:
        return self._made

    def make(self) -> None:
        """Request that the run stops."""
        self._made = True


@contextmanager
def interruptible() -> Iterator[StopRequest]:
    """Remember Ctrl-C and SIGTERM instead of stopping; a second Ctrl-C stops immediately.

    Only the main thread receives signals, so nothing is caught in any other.

    Yields
    ------
    StopRequest
        False until one of the two arrives.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def remember(number: int, frame: FrameType | None) -> None:
        request.make()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("\nSaving state, then stopping. Press Ctrl-C again to stop immediately.", file=sys.stderr, flush=True)

    # A process that was told to ignore a signal, as in the background of a script, keeps ignoring it.
    caught = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, remember) for number in caught}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
