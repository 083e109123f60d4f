"""The `quenchphys` command: its error messages and its exit codes.

Exit codes: 0 the answer can be trusted, 1 it cannot, 2 a wrong request, 130 interrupted.  The commands themselves are in
`workflows.commands`, what is typed is read in `workflows.command_parser`.  Everything that takes long to import is imported
when a command runs, so that the help appears at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import Any

from workflows.command_parser import WrongRequest, read
from workflows.commands import Exit

LONG_TO_IMPORT = ("workflows.calibration", "workflows.results", "workflows.scaling.finite_size")  # and all that they need


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every failure is one sentence on standard error.

    Parameters
    ----------
    arguments
        What is typed after `quenchphys`, as a list of strings; default: what was typed.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["coexistence", "--L", "8", "--out", "run.nc"])
    0
    """
    try:
        chosen = read(sys.argv[1:] if arguments is None else list(arguments))
        return _run(chosen, sys.argv[1:] if arguments is None else list(arguments))
    except WrongRequest as wrong:
        _print_error(wrong)
        return Exit.WRONG_REQUEST
    except KeyboardInterrupt as stopped:
        print(f"\n{str(stopped) or 'Interrupted.'}", file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.TRUSTED


@contextmanager
def _stopping_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process, while nothing is lost by that.

    In the middle of an import a `KeyboardInterrupt` becomes an error of whatever library is being initialised.
    """

    def stop(*_: Any) -> None:
        print("\nInterrupted.", file=sys.stderr, flush=True)
        os._exit(Exit.INTERRUPTED)

    usual = threading.current_thread() is threading.main_thread()
    if not usual or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(chosen: Namespace, arguments: list[str]) -> int:
    with _stopping_at_once():
        for name in LONG_TO_IMPORT:
            import_module(name)
        from quenchphys.console.messages import one_sentence
        from quenchphys.parallel.processes import ProcessLost
        from quenchphys.storage.lock import InUse
        from workflows.provenance import typed

    try:
        with _interrupts_not_lost(), _warnings_as_sentences(), _joined(chosen), typed(arguments):
            return chosen.run(chosen)
    except ProcessLost as lost:
        _print_error(lost)
        os._exit(Exit.DOUBTFUL)  # JAX would wait for the process that is lost
    except InUse as busy:
        _print_error(busy)
        return Exit.WRONG_REQUEST
    except RuntimeError as doubt:
        _print_error(one_sentence(doubt))
        return Exit.DOUBTFUL
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, MemoryError, OverflowError, ImportError) as wrong:
        _print_error(one_sentence(wrong))
        return Exit.WRONG_REQUEST


@contextmanager
def _interrupts_not_lost() -> Iterator[None]:
    """Send Ctrl-C again where Python had to drop it: while a destructor or the callback of a weak reference ran."""
    usual = sys.unraisablehook

    def again(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            usual(dropped)
        elif threading.current_thread() is threading.main_thread():
            this = threading.get_ident()
            timer = threading.Timer(0.01, signal.pthread_kill, [this, signal.SIGINT])  # when the destructor is over
            timer.daemon = True
            timer.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = usual


@contextmanager
def _joined(chosen: Namespace) -> Iterator[None]:
    """Join the other processes of a run, if there are any; only the first of them prints."""
    from quenchphys.parallel.processes import first, join

    given = {name: getattr(chosen, name, None) for name in ("coordinator", "processes", "process")}
    if all(value is None for value in given.values()):
        yield
        return
    join(**({} if given["coordinator"] == "auto" else given))
    if first():
        yield
        return
    chosen.progress = False
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        yield


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Print warnings about old names and unused settings as one line; doubts about a result are in its table."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        _print_error(message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.showwarning = show
        yield


def _print_error(message: object) -> None:
    print(f"quenchphys: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
