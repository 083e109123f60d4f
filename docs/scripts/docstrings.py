"""An extension of griffe, used by `mkdocs.yml`, that turns docstrings written for a terminal into Markdown.

Without it `<U>`, an average, would be an HTML tag; names with their meanings, set in columns, would be a paragraph and not a
table; and a sentence after a list of parameters would be a parameter.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(?P<title>\S.*)\n-{3,}\n")
TEXT_SECTIONS = ("Examples", "Notes", "References", "See Also")  # sections that consist of paragraphs
NAMES = re.compile(r"^\*{0,2}\w+(?:, \*{0,2}\w+)*(?: : .*)?$")  # of parameters, with or without their type
COLUMNS = re.compile(r"^(?P<name>\S.*?) {3,}(?P<meaning>\S.*)$")  # two spaces only end a sentence


class TerminalDocstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(sentences_first(obj.docstring.value))


def sentences_first(text: str) -> str:
    """Move paragraphs that follow a list of parameters before the first section, because numpydoc has no place for them."""
    paragraphs = text.split("\n\n")
    before: list[str] = []
    sections: list[str] = []
    title = ""
    for paragraph in paragraphs:
        if section := SECTION.match(paragraph):
            title = section["title"]
        belongs = title and (section or title in TEXT_SECTIONS or paragraph.startswith(" "))
        (sections if belongs else before).append(paragraph)
    return "\n\n".join(before + sections)


def to_markdown(text: str) -> str:
    """Columns as tables, `<` and `*` as characters; indented formulas and examples stay as they are."""
    out: list[str] = []
    rows: list[tuple[str, str]] = []
    in_section = False  # of numpydoc, whose indented lines are text
    in_example = False  # from `>>>` to the next blank line, output included
    for line in [*text.splitlines(), ""]:
        in_example = bool(line.strip()) and (in_example or line.startswith(">>>"))
        in_section |= bool(line.strip()) and set(line.strip()) == {"-"}
        if in_example or (in_section and NAMES.match(line)):
            out.append(line)
        elif columns := COLUMNS.match(line):
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
