"""Checks of an HTML page: well formed, self-contained, and, where Chromium is installed, drawn without complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import numpy as np

VOID = {"meta", "br", "hr", "img", "link", "input"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
A4 = (595, 842)  # points


class Reader(HTMLParser):
    """Refuses tags that are not closed in order, and whatever a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.identifiers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.look_at(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.look_at(tag, attrs)

    def look_at(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "iframe", "img", "object"), f"{tag} may fetch something"
        for name, value in attrs:
            if name in ("href", "xlink:href", "src"):
                assert (value or "").startswith("#"), f"{tag} refers to {value}"
            if name == "id":
                self.identifiers.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"


def check_page(text: str) -> None:
    """Well formed, no reference to anything outside, every picture well formed, identifiers used once."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert len(set(reader.identifiers)) == len(reader.identifiers)
    assert not re.search(r"url\((?!#)|@import", text)
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert pictures
    for picture in pictures:
        drawn = ElementTree.fromstring(picture)
        assert len(list(drawn.iter())) >= 3, "an empty picture"


def check_in_browser(page: Path) -> None:
    """Open it in Chromium without a network: it draws something, says nothing on its console, and prints on A4.

    Where there is no Chromium the test report says so; `.ci/run` installs it where it can.
    """
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        warnings.warn("Chromium was not found, so the report was NOT opened in a browser.", stacklevel=2)
        return
    picture, printed = page.with_suffix(".png"), page.with_suffix(".pdf")
    common = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
              f"--user-data-dir={page.parent / 'browser'}", "--host-resolver-rules=MAP * ~NOTFOUND"]  # fmt: skip
    on_screen = [f"--screenshot={picture}", "--window-size=1000,3000"]
    on_paper = [f"--print-to-pdf={printed}", "--no-pdf-header-footer"]
    for order in (on_screen, on_paper):
        said = subprocess.run([*common, *order, page.as_uri()], capture_output=True, text=True, timeout=300).stderr
        assert "CONSOLE" not in said, said
    shown = matplotlib.image.imread(picture)[..., :3]
    assert np.mean(shown.min(axis=-1) < 0.5) > 0.003, "there is ink"
    sizes = re.findall(rb"/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)", printed.read_bytes())
    assert sizes and all(abs(float(w) - A4[0]) < 2 and abs(float(h) - A4[1]) < 2 for w, h in sizes)
