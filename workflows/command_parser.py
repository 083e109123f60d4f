"""What is typed after `quenchphys`: options and values, with a suggestion for one that does not exist."""

from __future__ import annotations

import difflib
import re
import runpy
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from workflows.commands import all_commands

FILES = """
The result of a study is never replaced without --overwrite; a picture is.  Ladders and walks are kept beside the result, in
a folder that ends in .ladders: the same command again continues where it was interrupted, and with --overwrite analyses
them again."""


class WrongRequest(ValueError):
    """What was typed cannot be understood; the message is one sentence."""


class Parser(ArgumentParser):
    """A parser that says what is wrong in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Refuse what was typed."""
        raise WrongRequest(self._sentence(message))

    def _sentence(self, message: str) -> str:
        """argparse's message in our words."""
        if match := re.fullmatch(r"the following arguments are required: (.*)", message):
            missing = [name if name.startswith("-") else f"a {name}" for name in match[1].split(", ")]
            return f"{self.prog} needs {' and '.join(missing)} ({self.prog} --help explains it)."
        if match := re.fullmatch(r"argument ([^:]+): invalid choice: (.+) \(choose from (.*)\)", message, re.DOTALL):
            known = [word.strip(" '\"") for word in match[3].split(",")]
            return f"{match[1]} must be one of {', '.join(known)}; {match[2]} was given."
        if match := re.fullmatch(r"argument ([^:]+): expected (.*)", message):
            return f"{match[1]} needs {match[2].replace('argument', 'value')} ({self.prog} --help explains it)."
        if match := re.fullmatch(r"argument ([^:]+): (.*)", message, re.DOTALL):
            return f"{match[1]} {match[2]}."
        return f"{message[0].upper()}{message[1:]} ({self.prog} --help explains the command)."

    @property
    def options(self) -> list[str]:
        """Options that are shown in the help, and those of old that still work."""
        return [option for action in self._actions for option in action.option_strings]

    @property
    def shown(self) -> list[str]:
        """Options that are shown in the help."""
        shown: Iterable[Action] = (action for action in self._actions if action.help != SUPPRESS)
        return [option for action in shown for option in action.option_strings]


def read(typed: Sequence[str]) -> Namespace:
    """The command, its settings, and the function that runs it.

    Parameters
    ----------
    typed
        What was typed after `quenchphys`.

    Returns
    -------
    Namespace
        With an attribute for every option, and `run`.

    Raises
    ------
    WrongRequest
        In one sentence, with the nearest option or command where one does not exist.
    """
    top, commands = parser()
    name = typed[0] if typed else ""
    if not name:
        raise WrongRequest(f"Which command?  There are {', '.join(commands)} (quenchphys --help explains them).")
    if not name.startswith("-") and name not in commands:
        raise WrongRequest(f"There is no command {name!r}{_nearest(name, commands)} (quenchphys --help lists them).")
    own = commands.get(name, top)
    for word in typed:
        option = word.split("=")[0]
        if option.startswith("--") and len(option) > 2 and option not in own.options:
            raise WrongRequest(
                f"{own.prog} has no option {option}{_nearest(option, own.shown)} ({own.prog} --help lists them)."
            )
    chosen, rest = top.parse_known_args(typed)
    if rest:
        raise WrongRequest(f"{own.prog} does not understand {' '.join(rest)!r} ({own.prog} --help explains it).")
    return chosen


def parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole line, and that of every command in `workflows.commands`."""
    known = all_commands()
    examples = [f"  quenchphys {example}" for command in known for example in command.examples]
    top = Parser(
        prog="quenchphys",
        description="Free energies of lattice models across first-order transitions, by Quenched Ensemble Sampling.",
        epilog="\n".join(["examples:", *examples, FILES]),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"quenchphys {version()}", help="show the version and exit")
    into = top.add_subparsers(required=True, metavar="command")
    commands = {}
    for command in known:
        text = f"{command.summary}.  {command.description}".strip()
        own = into.add_parser(command.name, help=command.summary, description=text, allow_abbrev=False)
        command.add_arguments(own)
        own.set_defaults(run=command.run)
        commands[command.name] = own
    return top, commands


def version() -> str:
    """The version, without importing the engine."""
    return runpy.run_path(str(Path(__file__).parents[1] / "quenchphys" / "version.py"))["__version__"]


def _nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt word."""
    # Underscores and capitals are the usual slips; they are no difference at all.
    plain = {name.lower().replace("_", "-"): name for name in known}
    wanted = word.lower().replace("_", "-")
    inside = [name for name in plain if len(wanted.strip("-")) > 2 and name.startswith(wanted)]
    found = difflib.get_close_matches(wanted, plain, n=1, cutoff=0.6) or inside
    return f"; did you mean {plain[found[0]]}?" if found else ""
