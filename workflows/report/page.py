"""One self-contained HTML page: its parts, its style, and figures as inline SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 Georgia, 'Times New Roman', serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ccc; }
p.of { color: #555; margin: 0 0 1rem; }
.verdict { border-left: 6px solid; padding: .6rem 1rem; margin: 1rem 0; }
.trusted { border-color: #2e7d32; background: #edf7ee; } .doubtful { border-color: #b00020; background: #fdecee; }
.verdict b { display: block; }
pre { font: 13px/1.4 'DejaVu Sans Mono', Menlo, Consolas, monospace; background: #f7f7f7; padding: .7rem; overflow-x: auto; }
pre.text { white-space: pre-wrap; }
table { border-collapse: collapse; font-size: 14px; }
td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; }
th { font-weight: normal; color: #555; } tr + tr td, tr + tr th { border-top: 1px solid #eee; }
td { overflow-wrap: anywhere; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; } figcaption { font-size: 14px; color: #555; }
@page { size: A4; margin: 15mm; }
@media print {
  body { margin: 0; max-width: none; font-size: 10.5pt; } pre { font-size: 8pt; white-space: pre-wrap; background: none; }
  figure, tr, .verdict { break-inside: avoid; } h2 { break-after: avoid; }
}
"""


class Page:
    """An HTML page, part by part.

    Parameters
    ----------
    title
        Its first heading.
    of
        What it is of, in a line below.

    Examples
    --------
    >>> page = Page("Coexistence point", "phi6, L = 8")
    >>> page.verdict(True, "Both phases were sampled.")
    >>> page.section("Settings")
    >>> page.table({"seed": "0"})
    >>> page.html()
    """

    def __init__(self, title: str, of: str):
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="of">{escape(of)}</p>']
        self._number = count(1)

    def verdict(self, trusted: bool, why: str) -> None:
        """Whether to trust it, and why."""
        kind, words = ("trusted", "Can be trusted") if trusted else ("doubtful", "Not to be trusted")
        self._parts.append(f'<div class="verdict {kind}" role="status"><b>{words}</b>{escape(why)}</div>')

    def section(self, title: str) -> None:
        """A heading."""
        self._parts.append(f"<h2>{escape(title)}</h2>")

    def text(self, words: str) -> None:
        """A paragraph."""
        self._parts.append(f"<p>{escape(words)}</p>")

    def lines(self, text: str, wrapped: bool = False) -> None:
        """Lines in columns, as a terminal shows them; or sentences, which may be wrapped."""
        self._parts.append(f'<pre class="{"text" if wrapped else "columns"}">{escape(text)}</pre>')

    def table(self, rows: Mapping[str, Any]) -> None:
        """Names and values."""
        cells = "".join(
            f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(str(value))}</td></tr>' for name, value in rows.items()
        )
        self._parts.append(f"<table>{cells}</table>")

    def columns(self, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table with a heading for every column."""
        top = "".join(f'<th scope="col">{escape(str(cell))}</th>' for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
        self._parts.append(f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>")

    def figure(self, drawing: Figure, caption: str) -> None:
        """A figure of matplotlib, which is closed."""
        picture = svg(drawing, f"figure{next(self._number)}", caption)
        self._parts.append(f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>")

    def html(self) -> str:
        """The whole page."""
        body = "\n".join(self._parts)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self._title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
        )


def svg(drawing: Figure, name: str, label: str) -> str:
    """A figure as an SVG element; its identifiers begin with `name`, because a page has many figures."""
    import matplotlib.pyplot as plt

    stream = io.StringIO()
    with plt.rc_context({"svg.fonttype": "path", "svg.hashsalt": name}):
        drawing.savefig(stream, format="svg", edgecolor=drawing.get_edgecolor())
    plt.close(drawing)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'((?:xlink:)?href)="#', rf'\1="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
