"""Figures of observables, in one style; every function draws on Axes and returns them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from observables.distributions import distribution as _distribution
from observables.samples.pool import Pool, Source
from observables.spectrum import density_of_states as _density_of_states
from observables.spectrum import energy_distribution as _energy_distribution
from observables.thermal import thermodynamics

COLOURS = ["#1f4e79", "#c0504d", "#4f8f5b", "#8064a2", "#d08b2c", "#5b9aa0"]

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
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "image.cmap": "RdBu_r",
}


@contextmanager
def style() -> Iterator[None]:
    """The style of all figures here, for figures of one's own.

    Returns
    -------
    context manager
        Inside it matplotlib draws in this style.

    Examples
    --------
    >>> with observables.plot.style():
    ...     figure, ax = plt.subplots()
    """
    with plt.rc_context(STYLE):
        yield


def ladder(source: Source, axes: Any = None) -> np.ndarray:
    """The level (E or beta), log G and the acceptance over the number of the level, one line for each replica.

    Parameters
    ----------
    source : Ladder, several of them, or Pool
        The ladders.
    axes : three Axes
        Where to draw; by default a new figure.

    Returns
    -------
    array of three Axes

    Examples
    --------
    >>> axes = observables.plot.ladder(ladder)
    """
    pool = Pool.of_levels(source, "A figure of levels")
    with style():
        if axes is None:
            _, axes = plt.subplots(3, 1, sharex=True, figsize=(4.6, 5.0))
        axes = np.asarray(axes)
        if axes.shape != (3,):
            raise ValueError(f"A ladder is drawn on 3 Axes, but {axes.size} were given.")
        quenched = not pool.ladders[0].tempered
        for number, one in enumerate(pool.ladders):
            for r in range(one.levels.sizes["replica"]):
                levels = one.levels.isel(replica=r)
                look = {"color": COLOURS[number % len(COLOURS)], "alpha": 0.7, "linewidth": 0.9}
                axes[0].plot(levels["energy" if quenched else "beta"], **look)
                axes[1].plot(levels["log_volume"], **look)
                if "acceptance" in levels:
                    axes[2].plot(levels["acceptance"], **look)
        axes[0].set_ylabel("level $E_k$" if quenched else r"$\beta_k$")
        axes[1].set_ylabel(r"$\log\,G_k$" if quenched else r"$\log\,Z(\beta_k)$")
        axes[2].set(ylabel="acceptance", xlabel="level $k$", ylim=(0, 1))
        axes[0].figure.align_ylabels(axes)
    return axes


def energy_distribution(
    source: Source | xr.Dataset, beta: float = 1.0, ax: Axes | None = None, **couplings: Any
) -> Axes:
    """P(E) with its error band.

    Parameters
    ----------
    source : Ladder, Walk, several of them, Pool, or Dataset
        The samples, or the answer of `observables.energy_distribution`.
    beta, couplings
        The target, for samples.
    ax : Axes
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> observables.plot.energy_distribution(ladder, beta=1.0).figure.savefig("p.png")
    """
    found = source if isinstance(source, xr.Dataset) else _energy_distribution(source, beta, **couplings)
    p = np.exp(found["log_p"].values)
    with style():
        ax = _curve(ax, found["energy"].values, p, p * found["log_p_err"].values)
        ax.set(xlabel="energy $E$", ylabel="$P(E)$", ylim=(0, None))
    return ax


def free_energy(source: Source | xr.Dataset, beta: float = 1.0, ax: Axes | None = None, **couplings: Any) -> Axes:
    """F(E) = -log P(E) above its minimum, with the barrier between two phases if there is one.

    Parameters
    ----------
    source, beta, ax, couplings
        As in `energy_distribution`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> observables.plot.free_energy(ladder, mu2=2.286)
    """
    found = source if isinstance(source, xr.Dataset) else _energy_distribution(source, beta, **couplings)
    f = found["free_energy"].values - np.nanmin(found["free_energy"].where(found["bin_ess"] > 10).values)
    with style():
        ax = _curve(ax, found["energy"].values, f, found["free_energy_err"].values)
        ax.set(xlabel="energy $E$", ylabel=r"$F(E) = -\log\,P(E)$", ylim=(-0.5, None))
        if np.isfinite(found["barrier"]):
            text = rf"$\Delta F = {float(found['barrier']):.2f} \pm {float(found['barrier_err']):.2f}$"
            ax.axvline(float(found["valley"]), color="0.6", linewidth=0.7, linestyle=":")
            ax.annotate(text, (float(found["valley"]), 0.97), xycoords=("data", "axes fraction"), ha="center", va="top",
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5}, fontsize=8)  # fmt: skip
    return ax


def density_of_states(source: Source | xr.Dataset, ax: Axes | None = None, **couplings: Any) -> Axes:
    """log g(E) with its error band.

    Parameters
    ----------
    source, ax, couplings
        As in `energy_distribution`; a Dataset is the answer of `observables.density_of_states`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> observables.plot.density_of_states(ladder)
    """
    found = source if isinstance(source, xr.Dataset) else _density_of_states(source, **couplings)
    with style():
        ax = _curve(ax, found["energy"].values, found["log_g"].values, found["log_g_err"].values)
        ax.set(xlabel="energy $E$", ylabel=r"$\log\,g(E)$")
    return ax


def partition_function(source: Source | xr.Dataset, beta: Any = None, ax: Axes | None = None, **couplings: Any) -> Axes:
    """log Z over beta with its error band.

    Parameters
    ----------
    source : Ladder, Walk, several of them, Pool, or Dataset
        The samples, or the answer of `observables.thermodynamics` or `observables.partition_function`.
    beta : sequence of floats
        Inverse temperatures, for samples; by default 50 from 0.02 to 1.
    ax : Axes
        Where to draw; by default a new figure.
    couplings
        The target, for samples.

    Returns
    -------
    Axes

    Examples
    --------
    >>> observables.plot.partition_function(ladder, beta=np.linspace(0.1, 1.2, 40))
    """
    found = _over_beta(source, beta, couplings)
    with style():
        ax = _curve(ax, found["beta"].values, found["log_z"].values, found["log_z_err"].values)
        ax.set(xlabel=r"inverse temperature $\beta$", ylabel=r"$\log\,Z(\beta)$")
    return ax


def heat_capacity(source: Source | xr.Dataset, beta: Any = None, ax: Axes | None = None, **couplings: Any) -> Axes:
    """C over beta with its error band.

    Parameters
    ----------
    source, beta, ax, couplings
        As in `partition_function`; a Dataset is the answer of `observables.thermodynamics`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> observables.plot.heat_capacity(ladder)
    """
    found = _over_beta(source, beta, couplings)
    with style():
        ax = _curve(ax, found["beta"].values, found["heat_capacity"].values, found["heat_capacity_err"].values)
        ax.set(xlabel=r"inverse temperature $\beta$", ylabel=r"heat capacity $C(\beta)$", ylim=(0, None))
    return ax


def distribution(
    source: Source | xr.Dataset, of: str, beta: float = 1.0, ax: Axes | None = None, **couplings: Any
) -> Axes:
    """The probability density of an observable, such as m or q, as a histogram with error bars.

    Parameters
    ----------
    source : Ladder, Walk, several of them, Pool, or Dataset
        The samples, or the answer of `observables.distribution`.
    of : str
        The observable.
    beta, ax, couplings
        As in `energy_distribution`.

    Returns
    -------
    Axes

    Examples
    --------
    >>> observables.plot.distribution(ladder, "q", mu2=2.286)
    """
    found = source if isinstance(source, xr.Dataset) else _distribution(source, of, beta, **couplings)
    x, p, error = found[of].values, found["p"].values, found["p_err"].values
    step = x[1] - x[0]
    with style():
        ax = ax or plt.subplots()[1]
        line = ax.stairs(p, np.append(x - step / 2, x[-1] + step / 2), fill=True, alpha=0.3)
        ax.stairs(p, np.append(x - step / 2, x[-1] + step / 2), color=line.get_edgecolor())
        ax.errorbar(x, p, error, fmt="none", ecolor="0.25", elinewidth=0.7)
        ax.set(xlabel=f"${of}$" if len(of) == 1 else of.replace("_", " "), ylabel="probability density", ylim=(0, None))
    return ax


def configurations(source: Source | xr.Dataset, count: int = 6, axes: Any = None) -> np.ndarray:
    """Some configurations of the posterior on one colour scale, from low to high energy.

    Parameters
    ----------
    source : Ladder, several of them, Pool, or Dataset
        The ladders, or the answer of `observables.posterior`.
    count : int
        Number of configurations.
    axes : array of Axes
        Where to draw; by default a new figure.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> observables.plot.configurations(ladder, count=4)
    """
    if isinstance(source, xr.Dataset):
        drawn = source
    else:
        from observables.draws import posterior

        drawn = posterior(source, draws=200)
    flat = drawn.stack(sample=("chain", "draw")).sortby("energy")
    chosen = flat.isel(sample=np.linspace(0, flat.sizes["sample"] - 1, count).round().astype(int))
    fields = chosen["field"].transpose("sample", ...).values
    if fields.ndim != 3:
        raise ValueError(f"Only fields on a plane can be drawn, but these have {fields.ndim - 1} dimensions.")
    limit = np.abs(fields).max()
    with style():
        if axes is None:
            _, axes = plt.subplots(1, count, figsize=(1.25 * count + 0.6, 1.7))
        axes = np.atleast_1d(axes)
        for ax, field, energy in zip(axes, fields, chosen["energy"].values, strict=True):
            picture = ax.imshow(field, vmin=-limit, vmax=limit, interpolation="nearest")
            ax.set(xticks=[], yticks=[], title=f"$U = {round(float(energy))}$")
            for spine in ax.spines.values():
                spine.set_visible(False)
        axes[0].figure.colorbar(picture, ax=list(axes), shrink=0.8, label=r"$\phi$")
    return axes


def _over_beta(source: Source | xr.Dataset, beta: Any, couplings: dict[str, Any]) -> xr.Dataset:
    if isinstance(source, xr.Dataset):
        return source
    return thermodynamics(source, np.linspace(0.02, 1.0, 50) if beta is None else beta, **couplings)


def _curve(ax: Axes | None, x: np.ndarray, y: np.ndarray, error: np.ndarray) -> Axes:
    """A line with a band of one standard error."""
    ax = ax or plt.subplots()[1]
    (line,) = ax.plot(x, y)
    ax.fill_between(x, y - error, y + error, color=line.get_color(), alpha=0.25, linewidth=0)
    return ax
