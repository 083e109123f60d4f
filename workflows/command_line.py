"""The `quenchphys` command: its parser, its error messages and its exit codes.

Exit codes: 0 the answer can be trusted, 1 it cannot, 2 a wrong request, 130 interrupted.  The commands themselves are in
`workflows.commands`.
"""

from __future__ import annotations

import os
import sys
import warnings
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

from quenchphys.parallel.processes import ProcessLost, first, join
from quenchphys.storage.lock import InUse
from workflows.commands import Exit, all_commands

FILES = """
A file that exists is never replaced without --overwrite.  Ladders are kept beside the result, in a folder that ends in
.ladders: the same command again continues where it was interrupted, and with --overwrite analyses them again."""


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
    >>> main(["coexistence", "--L", "8", "--bracket", "2.25", "2.33", "--out", "run.nc"])
    0
    """
    try:
        chosen = parser().parse_args(arguments)
        with _warnings_as_sentences(), _joined(chosen):
            return chosen.run(chosen)
    except ProcessLost as lost:
        _print_error(lost)
        os._exit(Exit.DOUBTFUL)  # JAX would wait for the process that is lost
    except KeyboardInterrupt as stopped:
        print(f"\n{str(stopped) or 'Interrupted.'}", file=sys.stderr)
        return Exit.INTERRUPTED
    except InUse as busy:
        _print_error(busy)
        return Exit.WRONG_REQUEST
    except RuntimeError as doubt:
        _print_error(doubt)
        return Exit.DOUBTFUL
    except (ValueError, TypeError, OSError, MemoryError) as wrong:
        _print_error(wrong)
        return Exit.WRONG_REQUEST


def parser() -> ArgumentParser:
    """The parser with every command of `workflows.commands`."""
    known = all_commands()
    examples = [f"  quenchphys {example}" for command in known for example in command.examples]
    top = ArgumentParser(
        prog="quenchphys",
        description="Free energies of lattice models across first-order transitions, by Quenched Ensemble Sampling.",
        epilog="\n".join(["examples:", *examples, FILES]),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    into = top.add_subparsers(required=True, metavar="command")
    for command in known:
        text = f"{command.summary}.  {command.description}".strip()
        own = into.add_parser(command.name, help=command.summary, description=text, allow_abbrev=False)
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return top


@contextmanager
def _joined(chosen: Namespace) -> Iterator[None]:
    """Join the other processes of a run, if there are any; only the first of them prints."""
    given = {name: getattr(chosen, name, None) for name in ("coordinator", "processes", "process")}
    if all(value is None for value in given.values()):
        yield
        return
    join(**({} if given["coordinator"] == "auto" else given))
    if first():
        yield
        return
    chosen.silent = True
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
