"""Table of path lengths: levels of both paths on the Gaussian, and how many of them carry posterior weight.

For QES the theory of the paper can be made quantitative.  Where the density of states is locally exponential, the slack of a
particle is Gamma(nu+1) in units of 1/beta_E, and the drop d between levels follows from the target ESS.  With beta_E = 1 and
Var(E) = D/(2 (1 + sigma^2)^2) + nu + 1, the Kish number of levels under a normal P(E) is 2 sqrt(pi Var E)/d.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy import integrate, optimize

import quenchphys as qp
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import AUTO, QES, SMC, ladder_of
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# tab:typical: rungs and those carrying weight of QES, stages and those carrying weight of SMC
PAPER = {
    10: ("43", "20.0", "16", "9.9"),
    50: ("139", "48.8", "35", "9.5"),
    100: ("238", "68.9", "50", "9.7"),
    200: ("416", "93.7", "71", "9.8"),
    500: ("892", "144.4", "112", "9.5"),
    1000: ("1684", "217.3", "158", "9.7"),
    2000: ("3144", "303.6", "224", "9.5"),
    5000: ("7446", "488.6", "354", "9.6"),
    10000: ("14493", "674.9", "502", "9.9"),
}
METHODS = [QES, SMC, AUTO]
NOTE = (
    "Our paths begin at the first level, or stage, that ten times as many prior draws support, which saves the first seven "
    "or eight stages.\nExact: of QES the local approximation 2 sqrt(pi Var E)/d, good at large D."
)


def drop(target_ess: float, nu: float = 2.0) -> float:
    """The drop d of a level that keeps this share of the effective sample size, where log g(E) has slope 1.

    With s ~ Gamma(nu+1) the weights r = ((s - d)_+/s)^nu have E r = exp(-d).
    """

    def kept(d: float) -> float:
        square = integrate.quad(lambda s: (s - d) ** (2 * nu) * s**-nu * math.exp(-s), d, 80.0)[0] / math.gamma(nu + 1)
        return math.exp(-2 * d) / square - target_ess

    return float(optimize.brentq(kept, 1e-3, 3.0))


def expected_carrying(dim: int, sigma: float = 0.5, target_ess: float = 0.95, nu: float = 2.0) -> float:
    """Levels of QES that carry weight on the Gaussian, in the local approximation."""
    variance = dim / (2 * (1 + sigma**2) ** 2) + nu + 1
    return 2 * math.sqrt(math.pi * variance) / drop(target_ess, nu)


def run(bench: Bench) -> xr.Dataset:
    """Levels and carrying levels for each dimension and method."""
    rows, counts = [], []
    settings = {name: bench.settings[name] for name in ("particles", "replicas")}
    for dim in bench.settings["dims"]:
        target = qp.targets.gaussian(dim)
        for method in bench.settings["methods"]:
            found = bench.part(f"gaussian_{dim}_{method}", ladder_of(method, target, settings), target)
            printed = {QES: PAPER[dim][:2], SMC: PAPER[dim][2:]}.get(method)
            exact = {"carrying": expected_carrying(dim)} if method == QES else {}
            for place, quantity in enumerate(("levels", "carrying")):
                rows.append(
                    Row(
                        f"gaussian {dim}",
                        method,
                        {"levels": "levels", "carrying": "carrying weight"}[quantity],
                        float(found[quantity].mean()),
                        paper=stated(printed[place]) if printed else None,
                        exact=exact.get(quantity, math.nan),
                        gradients=float(found["gradients"]),
                    )
                )
            counts.append((dim, method, float(found["levels"].mean()), float(found["carrying"].mean())))
    return collect(rows).assign(_curves(counts)).assign_attrs(note=NOTE)


def _curves(counts: list[tuple[int, str, float, float]]) -> xr.Dataset:
    """Levels and carrying levels over (method, dim)."""
    dims = list(dict.fromkeys(row[0] for row in counts))
    methods = list(dict.fromkeys(row[1] for row in counts))
    values = {(dim, method): pair for dim, method, *pair in counts}
    table = np.array([[values[dim, method] for dim in dims] for method in methods])
    return xr.Dataset(
        {"levels": (("curve", "dim"), table[..., 0]), "carrying": (("curve", "dim"), table[..., 1])},
        coords={"dim": dims, "curve": methods},
    )


def figure(result: xr.Dataset) -> Figure:
    """Levels and carrying levels over D, with the paper's."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing, axes = plt.subplots(1, 2, figsize=(7.6, 3.2), sharex=True)
    for ax, quantity, column in ((axes[0], "levels", 0), (axes[1], "carrying", 1)):
        for number, method in enumerate(result["curve"].values):
            ax.loglog(
                result["dim"],
                result[quantity].sel(curve=method),
                "o-",
                color=COLOURS[number],
                markersize=4,
                label=method,
            )
        for number, first in ((0, 0), (1, 2)):
            printed = [float(PAPER[dim][first + column]) for dim in result["dim"].values]
            ax.loglog(result["dim"], printed, "x", color=COLOURS[number], markersize=7)
        ax.set(xlabel="dimension $D$", ylabel={"levels": "levels", "carrying": "levels that carry weight"}[quantity])
    axes[0].plot([], [], "kx", label="paper")
    axes[0].legend()
    return drawing


EXPERIMENT = Experiment(
    "path-length",
    "tab:typical",
    "Levels of QES and stages of tempering on the Gaussian, and how many of them carry posterior weight",
    {
        Effort.QUICK: {"dims": [10, 50, 100], "methods": METHODS, "particles": 250, "replicas": 2},
        Effort.STANDARD: {"dims": [10, 50, 100, 200, 500, 1000], "methods": METHODS, "particles": 200, "replicas": 2},
        Effort.PAPER: {"dims": list(PAPER), "methods": METHODS, "particles": 1000, "replicas": 3},
    },
    {Effort.QUICK: 1.5, Effort.STANDARD: 4, Effort.PAPER: 5040},
    run,
    figure,
)
