"""How a run is shown beyond its own attributes: log Z, a card in a notebook, a figure.

The engine samples and does not analyse, so what stands above it is asked: a presenter registers itself when it is imported
(`observables` does), or is found by the entry point `quenchphys.presenters` of an installed package, as xarray finds its
readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.metadata import entry_points
from typing import Any, Protocol

GROUP = "quenchphys.presenters"


class Presenter(Protocol):
    """What can be asked about a ladder or a walk."""

    def words(self, run: Any, beta: float) -> list[str]:
        """Sentences for the report: log Z with its error, and diagnostics."""
        ...

    def card(self, run: Any) -> str:
        """HTML: outcome, log Z with its error, P(E)."""
        ...

    def plot(self, run: Any, **named: Any) -> Any:
        """A figure."""
        ...


_registered: list[Presenter] = []


def register(presenter: Presenter) -> None:
    """Let this presenter be asked from now on."""
    _registered[:] = [presenter]


def presenter() -> Presenter | None:
    """The presenter; None if no installed package has one."""
    if not _registered:
        for entry in entry_points(group=GROUP):
            entry.load()  # registers itself
    return _registered[-1] if _registered else None


def described(facts: Mapping[str, str], title: str) -> str:
    """A short text of a title and a few facts, for `repr`."""
    width = max(len(name) for name in facts)
    return "\n".join([title, *(f"  {name:<{width}}  {value}" for name, value in facts.items())])


def as_html(text: str) -> str:
    """A text in the type it was made for."""
    return f"<pre>{escape(text)}</pre>"
