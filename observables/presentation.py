"""How ladders and walks show themselves: sentences of a report, cards in notebooks, figures.

`import observables` registers it with the engine (`quenchphys.console.presentation`), which cannot analyse by itself.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from observables.checks import findings
from observables.numbers import number
from observables.samples.pool import Pool
from observables.spectrum import energy_distribution
from observables.thermal import partition_function
from quenchphys.ladder import Ladder
from quenchphys.walk import Walk

GOOD, BAD = "#2e7d32", "#b00020"
DEEPEST = 15.0  # nats below its peak to which a small P(E) is drawn
CARD = (
    "display:inline-block;border:1px solid #ccc;border-left:5px solid {colour};border-radius:4px;padding:6px 12px;"
    "font-family:sans-serif;font-size:90%;line-height:1.45"
)


class Analyst:
    """Presents runs by what the observables say about them."""

    def words(self, run: Ladder | Walk, beta: float) -> list[str]:
        """Sentences for the report of a run."""
        return findings(Pool(run), beta)

    def card(self, run: Ladder | Walk) -> str:
        """Outcome, log Z with its error, and P(E)."""
        title, *facts = repr(run).splitlines()
        trusted = run.outcome.trusted if isinstance(run, Ladder) else float(run.attrs.get("undefined", 0.0)) == 0
        log_z, picture = _log_z_and_distribution(run)
        rows = [tuple(fact.strip().split("  ", 1)) for fact in facts]
        return card(title, [*rows, ("log Z", log_z)], bool(trusted), picture)

    def plot(self, run: Ladder | Walk, **named: Any) -> Any:
        """The figure of a run."""
        from observables import plot

        return plot.run(run, **named)


def card(title: str, rows: list[Any], trusted: bool, picture: str = "") -> str:
    """A frame with a title, rows of names and values, and a small picture; green if it can be trusted, else red."""
    lines = "".join(
        f"<tr><td style='text-align:left;color:#666;padding:0 10px 0 0'>{escape(name)}</td>"
        f"<td style='text-align:left'>{escape(value.strip())}</td></tr>"
        for name, value in rows
    )
    return (
        f"<div style='{CARD.format(colour=GOOD if trusted else BAD)}'><b>{escape(title)}</b>"
        f"<table style='border:none;margin:4px 0'>{lines}</table>{picture}</div>"
    )


def sparkline(x: Any, y: Any, label: str, width: int = 260, height: int = 56) -> str:
    """A curve without axes, as SVG."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    some = np.isfinite(x) & np.isfinite(y)
    if some.sum() < 2:
        return ""
    x, y = x[some], y[some]
    across = 4 + (width - 8) * (x - x.min()) / (np.ptp(x) or 1.0)
    up = height - 18 - (height - 24) * (y - y.min()) / (np.ptp(y) or 1.0)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    text = f"{escape(label)}, from {x.min():.4g} to {x.max():.4g}"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' role='img' aria-label='{text}'>"
        f"<polyline points='{points}' fill='none' stroke='#1f4e79' stroke-width='1.5'/>"
        f"<text x='4' y='{height - 4}' font-size='10' fill='#666'>{text}</text></svg>"
    )


def _log_z_and_distribution(run: Ladder | Walk) -> tuple[str, str]:
    """log Z at beta = 1 in words, and a small P(E); the reason, and nothing, where they cannot be given."""
    try:
        pool = Pool(run)
        found = partition_function(pool)
        spectrum = energy_distribution(pool, bins="adaptive")
    except (ValueError, RuntimeError, ArithmeticError) as cause:
        return f"cannot be given: {str(cause).splitlines()[0]}", ""
    log_p = spectrum["log_p"].values
    picture = sparkline(spectrum["energy"], np.where(log_p > np.nanmax(log_p) - DEEPEST, log_p, np.nan), "log P(E)")
    return f"{number(float(found.log_z), float(found.log_z_err))} at beta = 1", picture

