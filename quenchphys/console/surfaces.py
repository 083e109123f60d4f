"""Where progress is shown: a bar in a terminal or a notebook, by tqdm, or lines in a log."""

from __future__ import annotations

import sys
import threading
import warnings
from typing import Any, Protocol, TextIO

from quenchphys.console.forecast import duration

BAR = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


class Surface(Protocol):
    """Something to draw on."""

    period: float
    """Seconds between two drawings."""
    first_after: float
    """Seconds before the first one."""

    def draw(self, done: float, what: str, words: str, elapsed: float) -> None:
        """Draw the share that is done, what is being done, and further words."""
        ...

    def message(self, text: str) -> None:
        """Show a line of its own."""
        ...

    def close(self, done: float, what: str, words: str) -> None:
        """Draw for the last time."""
        ...


class Bar:
    """A bar of tqdm, which finds out by itself whether it is in a notebook."""

    period = 0.5
    first_after = 0.0

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._bar: Any = None
        self._lock = threading.RLock()

    def draw(self, done: float, what: str, words: str, elapsed: float = 0.0) -> None:
        with self._lock:
            if self._bar is None:
                self._bar = _tqdm()(total=100, bar_format=BAR, file=self._stream, dynamic_ncols=True, mininterval=0)
            self._bar.n = round(100 * done, 1)
            self._bar.set_description_str(what, refresh=False)
            self._bar.set_postfix_str(words, refresh=False)
            self._bar.refresh()

    def message(self, text: str) -> None:
        with self._lock:
            if self._bar is None:
                print(text, file=self._stream, flush=True)
            else:
                self._bar.write(text, file=self._stream)

    def close(self, done: float, what: str, words: str) -> None:
        with self._lock:
            if self._bar is not None:
                self.draw(done, what, words)
                self._bar.close()


class Log:
    """Lines in a file or a pipe: one a minute.

    Parameters
    ----------
    stream
        Where they are written.
    at_once
        Whether to begin at once, and to show messages; else only runs that take longer than a minute write anything.
    """

    period = 60.0

    def __init__(self, stream: TextIO, at_once: bool):
        self._stream, self._at_once = stream, at_once
        self.first_after = 0.0 if at_once else self.period

    def draw(self, done: float, what: str, words: str, elapsed: float) -> None:
        self._write(f"{what}, {100 * done:.0f}% after {duration(elapsed)}" + (f", {words}" if words else ""))

    def message(self, text: str) -> None:
        if self._at_once:
            self._write(text)

    def close(self, done: float, what: str, words: str) -> None:
        if self._at_once:
            self._write(f"{what}: {100 * done:.0f}%, {words}")

    def _write(self, text: str) -> None:
        try:
            print(text, file=self._stream, flush=True)
        except ValueError:  # the stream was closed: nobody reads it any more
            return


def surface_for(wanted: bool | None, stream: TextIO) -> Surface | None:
    """None: nothing is shown."""
    if wanted is False:
        return None
    if in_notebook() or stream.isatty():
        return Bar(stream)
    return Log(stream, at_once=wanted is True)


def in_notebook() -> bool:
    """Whether this is a kernel of Jupyter; IPython is not imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def _tqdm() -> Any:
    """tqdm's bar for this place, without its monitor thread: we draw often enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that ipywidgets are missing; the bar is text then
        from tqdm.auto import tqdm
    return type("Bar", (tqdm,), {"monitor_interval": 0})
