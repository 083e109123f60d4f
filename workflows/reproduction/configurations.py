"""Figure of phi^6 at coexistence: configurations of both phases and between them, and P(m), P(q) of three methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import lattices
import observables
import quenchphys as qp
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import SMC, sample
from workflows.reproduction.phi6 import CUT, DISORDERED, MU2, NUTS, ORDERED, OURS, STEPS, L, equilibrated
from workflows.reproduction.phi6 import EXPERIMENT as TABLE
from workflows.reproduction.table import Row, collect

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 60
EDGES = {"m": np.linspace(-1.6, 1.6, BINS + 1), "q": np.linspace(0.0, 2.2, BINS + 1)}
SHOWN = {"disordered": DISORDERED["q"], "barrier": CUT, "ordered": ORDERED["q"]}  # typical q
NOTE = "Exact: averages within each phase by canonical chains.  The barrier is a configuration at the cut q = 1.25."


def densities(source: qp.Ladder | qp.Walk) -> xr.Dataset:
    """P(m) and P(q) in common bins."""
    pool = observables.Pool(source)
    found = {
        name: (f"{name}_bin", observables.distribution(pool, name, bins=edges)["p"].values)
        for name, edges in EDGES.items()
    }
    return xr.Dataset(found)


def of_chain(model: Any, settings: dict[str, Any], seed: int) -> xr.Dataset:
    """The same of a single NUTS chain from a prior draw, as the paper shows it."""
    drawn = qp.chains(model, kernel="nuts", seed=seed, fields=False, progress=False, **settings | {"chains": 1})
    return xr.Dataset(
        {name: (f"{name}_bin", np.histogram(drawn[name], edges, density=True)[0]) for name, edges in EDGES.items()}
    )


def representative(ladder: qp.Ladder) -> xr.Dataset:
    """Of the configurations that a ladder kept, those whose q is typical of each phase, and one at the cut."""
    fields = ladder.configurations["field"].values
    fields = fields.reshape(-1, *fields.shape[2:])
    fields = fields[np.isfinite(fields).all(axis=(1, 2))]
    q = (fields**2).mean(axis=(1, 2))
    chosen = np.array([fields[np.argmin(np.abs(q - wanted))] for wanted in SHOWN.values()])
    chosen *= np.sign(chosen.mean(axis=(1, 2)))[:, None, None]  # phi -> -phi is a symmetry
    return xr.Dataset({"field": (("shown", "x", "y"), chosen)}, coords={"shown": list(SHOWN)})


def run(bench: Bench) -> xr.Dataset:
    """Configurations, distributions, and averages within the phases."""
    model = lattices.phi6(L=bench.settings["L"], mu2=bench.settings["mu2"])
    ladder, walked = equilibrated(bench, model)

    def tempered(seed: int, checkpoint: Path | None) -> xr.Dataset:
        return densities(sample(SMC, model, bench.settings["smc"] | {"steps": STEPS}, seed, checkpoint))

    parts = {
        OURS: densities(walked.walk),
        SMC: bench.part(SMC, tempered, model),
        NUTS: bench.part(NUTS, lambda seed, _: of_chain(model, bench.settings["nuts"], seed), model),
    }
    phases = observables.phase_averages(walked.walk)
    rows = []
    for phase, exact in zip(phases["phase"].values, (DISORDERED, ORDERED), strict=True):
        for name, word in (("q", "<q>"), ("abs_m", "<|m|>")):
            at = phases.sel(phase=phase)
            # References are known to half a unit of their last digit.
            unit = 0.0005 if phase == phases["phase"].values[0] else 0.005
            rows.append(Row(f"phi6 L={bench.settings['L']}, {phase}", OURS, word, float(at[name]), float(at[f"{name}_err"]),
                            exact=exact[name], exact_err=unit))  # fmt: skip
    curves = xr.concat(list(parts.values()), dim="curve").assign_coords(curve=list(parts))
    shown = representative(ladder)
    return collect(rows).assign(curves).assign(shown).assign_attrs(note=NOTE, doubt=" ".join(walked.doubts))


def figure(result: xr.Dataset) -> Figure:
    """Three configurations on one scale above; P(m) and P(q) below."""
    import matplotlib.pyplot as plt  # takes a second to import

    from observables.plot import COLOURS

    drawing = plt.figure(figsize=(9.0, 5.8))
    halves: Any = drawing.subfigures(2, 1, height_ratios=(1.15, 1))
    above, below = halves
    pictures = above.subplots(1, 3)
    for ax, name in zip(pictures, result["shown"].values, strict=True):
        field = result["field"].sel(shown=name).values
        image = ax.imshow(field, vmin=-2.2, vmax=2.2, interpolation="nearest")
        ax.set(xticks=[], yticks=[], title=f"{name}: $q$ = {(field**2).mean():.2f}, $|m|$ = {abs(field.mean()):.2f}")
    above.colorbar(image, ax=list(pictures), label=r"$\phi_x$", shrink=0.9)
    for ax, name in zip(below.subplots(1, 2), EDGES, strict=True):
        for number, method in enumerate(result["curve"].values):
            look = {"fill": True, "alpha": 0.35} if number == 0 else {"linewidth": 1.0}
            ax.stairs(result[name].sel(curve=method).values, EDGES[name], color=COLOURS[number], label=method, **look)
        ax.set(xlabel=f"${name}$", ylabel=f"$P({name})$", ylim=(0, 6))
    ax.legend()
    return drawing


def _settings(effort: Effort) -> dict[str, Any]:
    """Those of the table of phi^6 that this figure needs."""
    own = TABLE.settings[effort]
    return {"L": L, "mu2": MU2} | {name: own[name] for name in ("smc", "ladder", "walk", "nuts")}


EXPERIMENT = Experiment(
    "configurations",
    "fig:phi6",
    "Configurations of phi^6 in both phases and between them, and P(m), P(q) of QES, tempering and NUTS",
    {effort: _settings(effort) for effort in Effort},
    {Effort.QUICK: 3, Effort.STANDARD: 15, Effort.PAPER: 3744},
    run,
    figure,
    needs="the extra rivals for NUTS",
)
