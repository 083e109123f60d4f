"""The style of all figures: colours, fonts, widths for a screen or a journal, symbols, panel letters, marks of doubt."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from observables.headings import given_couplings, size_of

COLOURS = ["#1f4e79", "#c0504d", "#4f8f5b", "#8064a2", "#d08b2c", "#5b9aa0"]
DOUBT = "#b00020"

STYLE: Any = {
    "figure.figsize": (4.6, 3.2),
    "figure.dpi": 120,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "font.family": "serif",
    "mathtext.fontset": "cm",
    "axes.prop_cycle": plt.cycler(color=COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "figure.titlesize": 9,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "image.cmap": "RdBu_r",
}
# A journal prints a figure at its own width, so nothing may be cut or scaled, and type is of its size from the beginning.
PRINT: Any = {
    "savefig.bbox": None,
    "savefig.dpi": 400,
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "figure.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.0,
}
WIDTHS = {"one-column": 3.375, "two-column": 7.0}  # inches, of a journal with two columns
PANEL = 3.4  # inches, of a panel on a screen
NARROWEST = 2.0  # inches, below which a panel goes into the next row
ASPECT, FLATTER = 0.8, 0.66  # height of a panel over its width, beside others and alone in its row

_width: ContextVar[float | None] = ContextVar("width", default=None)
_styled: ContextVar[bool] = ContextVar("styled", default=False)

# Names of couplings and observables as they are printed in papers.
SYMBOLS = {
    "mu2": r"\mu^2",
    "lam": r"\lambda",
    "eta": r"\eta",
    "m0_sq": r"m_0^2",
    "beta": r"\beta",
    "q": "q",
    "m": "m",
    "m2": "m^2",
    "m4": "m^4",
    "abs_m": "|m|",
    "phi2": r"\sum\phi^2",
    "phi4": r"\sum\phi^4",
    "phi6": r"\sum\phi^6",
    "energy": "U",
    "U": "U",
    "log_z": r"\log Z",
    "L": "L",
}
MODELS = {"phi4": r"\phi^4", "phi6": r"\phi^6"}


@contextmanager
def style(name: str | None = None) -> Iterator[None]:
    """The style of all figures here, for figures of one's own.

    Parameters
    ----------
    name : str
        "screen"; "one-column" or "two-column" for the widths of a journal, at which nothing needs to be scaled; or any
        style of matplotlib, by its name or file, on top of "screen".  By default that of the context around it, else
        "screen".

    Returns
    -------
    context manager
        Inside it matplotlib draws in this style.

    Examples
    --------
    >>> with observables.plot.style("one-column"):
    ...     figure, ax = plt.subplots()
    """
    if name is None and _styled.get():
        yield
        return
    width = WIDTHS.get(name or "screen")
    with plt.rc_context(), _set(_width, width), _set(_styled, True):
        plt.rcParams.update(STYLE)
        if width is not None:
            plt.rcParams.update(PRINT | {"figure.figsize": (width, 0.75 * min(width, 4.0))})
        elif name not in (None, "screen"):
            _use(str(name))
        yield


def check_style(name: str | None) -> None:
    """Refuse a style that does not exist."""
    with style(name):
        pass


def _use(name: str) -> None:
    try:
        plt.style.use(name)
    except OSError:
        known = ", ".join(("screen", *WIDTHS))
        raise ValueError(f"There is no style {name!r}; there are {known}, and those of matplotlib.") from None


@contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def panels(count: int, columns: int | None = None) -> tuple[Figure, list[Axes]]:
    """A figure of several panels with letters, side by side as far as the style has room for them.

    Parameters
    ----------
    count : int
        Number of panels.
    columns : int
        Most panels in a row; by default four.

    Returns
    -------
    figure, list of Axes
    """
    width = _width.get()
    most = min(count, columns or 4)
    fitting = most if width is None else max(1, min(most, int(width / NARROWEST)))
    rows = -(-count // fitting)
    whole = PANEL * fitting if width is None else width
    height = rows * (ASPECT if fitting > 1 else FLATTER) * whole / fitting + (0.35 if width is None else 0.25)
    figure, axes = plt.subplots(rows, fitting, figsize=(whole, height), squeeze=False)
    used = list(axes.flat)[:count]
    for ax in list(axes.flat)[count:]:
        ax.remove()
    if count > 1:
        for ax, letter in zip(used, string.ascii_lowercase, strict=False):
            ax.set_title(f"({letter})", loc="left")
    return figure, used


def symbol(name: str) -> str:
    """A name as it is printed: mu2 as a Greek letter with its power, in mathematical type where it has a symbol."""
    return f"${SYMBOLS[name]}$" if name in SYMBOLS else name.replace("_", " ")


def model_symbol(name: str) -> str:
    """The name of a model as it is printed."""
    return f"${MODELS[name]}$" if name in MODELS else name.replace("_", " ")


def title_of(attrs: Mapping[Any, Any]) -> str:
    """Model, lattice and couplings of a run or a result, as they are printed in a figure."""
    words = [model_symbol(str(attrs.get("problem", "a problem")))]
    words += [f"${text}$" if text.startswith("L") else text for text in size_of(attrs)]
    words += [rf"${SYMBOLS.get(name, name)} = {value:.6g}$" for name, value in given_couplings(attrs).items()]
    return ", ".join(words)


def mark_doubt(figure: Figure, trusted: bool) -> None:
    """Mark the figure of a result that is not to be trusted, so that it cannot be used by mistake."""
    if trusted:
        return
    figure.text(
        0.5, 0.5, "not to be trusted", color=DOUBT, alpha=0.25, fontsize=28, rotation=20, ha="center", va="center", zorder=10
    )
    figure.patch.set(edgecolor=DOUBT, linewidth=2.0)


def label_line(ax: Axes, x: float, text: str) -> None:
    """A dotted vertical line with a label at its top."""
    ax.axvline(x, color="0.5", linewidth=0.8, linestyle=":")
    ax.annotate(
        text, (x, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -2), textcoords="offset points",
        ha="left", va="top", fontsize="small", color="0.35",
    )  # fmt: skip


def band(ax: Axes, x: np.ndarray, y: np.ndarray, error: np.ndarray, **look: Any) -> None:
    """A curve with a band of one standard error on both sides."""
    (line,) = ax.plot(x, y, **look)
    ax.fill_between(x, y - error, y + error, color=line.get_color(), alpha=0.25, linewidth=0)
