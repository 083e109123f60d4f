"""Ctrl-C and SIGTERM in a long run: remembered until the state can be saved."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType

from quenchphys.parallel.processes import any_of


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


SAVING = "Saving state, then stopping."
STOPPING = "Stopping; nothing is kept of a run without a checkpoint."
PARTS_KEPT = "Stopping; finished parts are kept."
AT_ONCE = "Interrupted at once; what was saved before is kept."


class StopRequest:
    """True once Ctrl-C was pressed or SIGTERM arrived."""

    def __init__(self) -> None:
        self._made = False

    def __bool__(self) -> bool:
        return self._made

    def make(self) -> None:
        """Request that the run stops."""
        self._made = True


_waiting: list[StopRequest] = []  # requests of the contexts that are open, the innermost last


@contextmanager
def interruptible(words: str = SAVING) -> Iterator[StopRequest]:
    """Remember Ctrl-C and SIGTERM instead of stopping; a second Ctrl-C stops immediately.

    A request that came too late to be noticed is not lost: it passes to the context around this one, or stops the run when
    this one ends.  Only the main thread receives signals, so nothing is caught in any other.

    Parameters
    ----------
    words
        What is shown when the first signal arrives.

    Yields
    ------
    StopRequest
        False until one of the two arrives.
    """
    request = StopRequest()
    with _caught(request, words) if threading.current_thread() is threading.main_thread() else nullcontext():
        yield request
    if any_of(bool(request)):
        if not _waiting:
            raise Interrupted("Interrupted; run the same call again to continue.")
        _waiting[-1].make()


@contextmanager
def interruptible_alone() -> Iterator[StopRequest]:
    """As `interruptible`, for work of which nothing can be kept until it is done.

    If a caller catches signals already, its request stops this work too, and the caller says what is kept.
    """
    if _waiting and threading.current_thread() is threading.main_thread():
        yield _waiting[-1]
        return
    with interruptible(STOPPING) as request:
        yield request


@contextmanager
def _caught(request: StopRequest, words: str) -> Iterator[None]:
    def remember(number: int, frame: FrameType | None) -> None:
        if not request:
            request.make()
            with suppress(RuntimeError):  # the signal arrived while something else was being printed
                print(f"\n{words} Press Ctrl-C again to stop immediately.", file=sys.stderr, flush=True)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt(AT_ONCE)

    # A process that was told to ignore a signal, as in the background of a script, keeps ignoring it.
    caught = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, remember) for number in caught}
    _waiting.append(request)
    try:
        yield
    finally:
        _waiting.remove(request)
        for number, handler in before.items():
            signal.signal(number, handler)
