"""Figure of the soft wall: an asymmetric double well, the densities of a level with hard and soft wall, and their scores.

Nothing is sampled.  The table compares Z from the volumes of the levels, 1/Gamma(nu+1) int G_nu(E) exp(-E) dE, with the
integral over x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy.integrate import simpson
from scipy.special import gammaln

from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.table import Row, collect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray

LEVEL = 5.5
SOFTNESS = (0.0, 2.0)
SEEN = 0.02  # of the level, below which a score is not drawn: it diverges at the wall


def energy(x: Array) -> Array:
    """U(x): two wells, the right one deeper."""
    return 3.0 * (x**2 - 1.6) ** 2 - 2.0 * x


def slope(x: Array) -> Array:
    """dU/dx"""
    return 12.0 * x * (x**2 - 1.6) - 2.0


def prior(x: Array) -> Array:
    return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


def level_factor(level: Array, x: Array, nu: float) -> Array:
    """(E - U(x))_+^nu"""
    slack = level - energy(x)
    return np.where(slack > 0, np.maximum(slack, 1e-300) ** nu, 0.0)


def score(x: Array, nu: float) -> Array:
    """d log rho_E / dx = -x - nu U'(x)/(E - U(x)); NaN outside the level and next to its wall."""
    slack = LEVEL - energy(x)
    return np.where(slack > SEEN * LEVEL, -x - nu * slope(x) / np.where(slack > 0, slack, 1.0), np.nan)


def run(bench: Bench) -> xr.Dataset:
    """Curves of the figure, and Z from the volumes of both families."""
    x = np.linspace(-5.0, 5.0, bench.settings["points"])
    levels = np.linspace(energy(x).min() + 1e-6, 60.0, bench.settings["levels"])
    exact = float(simpson(prior(x) * np.exp(-energy(x)), x=x))
    rows, density, scores = [], [], []
    for nu in SOFTNESS:
        volume = np.array([simpson(prior(x) * level_factor(level, x, nu), x=x) for level in levels])
        found = float(simpson(volume * np.exp(-levels - gammaln(nu + 1)), x=levels))
        rows.append(Row("double well", f"levels, nu={nu:g}", "log Z", float(np.log(found)), exact=float(np.log(exact))))
        rho = prior(x) * level_factor(np.array(LEVEL), x, nu)
        density.append(rho / simpson(rho, x=x))
        scores.append(score(x, nu))
    curves = {"density": (("nu", "x"), np.array(density)), "score": (("nu", "x"), np.array(scores))}
    curves_of_x = {"well": ("x", energy(x)), "force": ("x", np.abs(slope(x)))}
    return collect(rows).assign(xr.Dataset(curves | curves_of_x, coords={"x": x, "nu": list(SOFTNESS)}))


def figure(result: xr.Dataset) -> Figure:
    """Energy with the level as a waterline; densities; scores."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, (well, density, force) = plt.subplots(3, 1, figsize=(5.4, 6.2), sharex=True)
    x = result["x"].values
    well.plot(x, result["well"], color="0.2")
    well.axhline(LEVEL, color=COLOURS[1], linestyle="--", linewidth=1.0)
    well.fill_between(x, result["well"], LEVEL, where=result["well"].values < LEVEL, color=COLOURS[0], alpha=0.15)
    well.text(2.3, LEVEL + 0.4, "$E$", color=COLOURS[1])
    well.set(ylabel="energy $U(x)$", ylim=(-4, 14), xlim=(-2.5, 2.5))
    for number, nu in enumerate(result["nu"].values):
        label = rf"$\nu = {nu:g}$" + (" (nested sampling)" if nu == 0 else " (QES)")
        density.plot(x, result["density"].sel(nu=nu), color=COLOURS[number], label=label)
        force.plot(x, result["score"].sel(nu=nu), color=COLOURS[number], label=label)
    density.set(ylabel=r"$\rho_E(x)$", ylim=(0, None))
    density.legend()
    inside = np.where(result["well"].values < LEVEL, result["force"].values, np.nan)
    force.plot(x, inside, "k:", linewidth=0.8, label=r"$|\nabla U|$")
    force.set(xlabel="$x$", ylabel=r"$\partial_x \log \rho_E$", ylim=(-40, 40))
    force.legend(ncols=3)
    return drawing


FINE = {"points": 8001, "levels": 4001}
EXPERIMENT = Experiment(
    "sketch",
    "fig:sketch",
    "The soft wall of a level in one dimension: energy, density and score",
    {Effort.QUICK: FINE, Effort.STANDARD: FINE, Effort.PAPER: FINE},
    dict.fromkeys(Effort, 0.1),
    run,
    figure,
)
