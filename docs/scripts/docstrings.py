"""How do docstrings written to be read in a terminal become Markdown?  An extension of griffe, used by `mkdocs.yml`.

Three things would be lost otherwise: `<U>` is an average and not an HTML tag, a list of names with their meanings set in
columns is a table and not a paragraph, and a sentence after a list of parameters is not a parameter.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"^\S.*\n-{3,}\n")
COLUMNS = re.compile(r"^(?P<name>\S.*?) {3,}(?P<meaning>\S.*)$")  # two spaces only end a sentence


class TerminalDocstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(sentences_first(obj.docstring.value))


def sentences_first(text: str) -> str:
    """Paragraphs that follow a section of numpydoc, moved before the first section: numpydoc has no place for them."""
    paragraphs = text.split("\n\n")
    sections = [i for i, p in enumerate(paragraphs) if SECTION.match(p)]
    if not sections:
        return text
    first = sections[0]
    later = [i for i, p in enumerate(paragraphs) if i > first and not p.startswith(" ") and not SECTION.match(p)]
    order = [*range(first), *later, *(i for i in range(first, len(paragraphs)) if i not in later)]
    return "\n\n".join(paragraphs[i] for i in order)


def to_markdown(text: str) -> str:
    """Columns as tables, `<` and `*` as characters; indented formulas stay, Markdown shows them as they stand."""
    out: list[str] = []
    rows: list[tuple[str, str]] = []
    in_section = False  # of numpydoc, whose indented lines are text
    for line in [*text.splitlines(), ""]:
        in_section |= bool(line.strip()) and set(line.strip()) == {"-"}
        if columns := COLUMNS.match(line):
            rows.append((columns["name"], columns["meaning"]))
        elif rows and line.startswith(" ") and line.strip():
            name, meaning = rows[-1]
            rows[-1] = name, f"{meaning} {line.strip()}"
        else:
            out += _table(rows)
            rows = []
            out.append(line if line.startswith("    ") and not in_section else escaped(line))
    return "\n".join(out).rstrip()


def escaped(text: str) -> str:
    """`<` and `*` as characters, except within backquotes."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", r"\*") for part in parts)


def _table(rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    cells = [f"| `{name}` | {escaped(meaning)} |" for name, meaning in rows]
    return ["", "| | |", "|---|---|", *cells, ""]
