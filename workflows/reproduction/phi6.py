"""Table of lattice phi^6 at coexistence: who sees the ordered phase, on 40 x 40 sites.

The exact column holds references by other methods, at the paper's mu^2 = 2.28347: with equal weight at 2.28396(3),
log Z_dis = -54.53(2) and d log odds/d mu^2 = -V (q_ord - q_dis)/2 = -1365, the ordered phase has the log odds +0.67(4)
there, and log Z = log Z_dis + log(1 + odds).  Tempering and canonical chains should stay in the disordered phase.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

import lattices
import observables
import quenchphys as qp
from workflows.budget import LadderSettings, WalkSettings
from workflows.refinement import Polished, polished
from workflows.reproduction.experiment import Bench, Effort, Experiment
from workflows.reproduction.methods import QES, SMC, sample
from workflows.reproduction.table import Row, collect, stated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

L, MU2 = 40, 2.28347
CUT = 1.25
SAME = 1e-9  # scatter of draws that all say the same: a phase that was never seen has a share of 10^-40 or so
DEEP = qp.RemainingEvidence(-850.0)  # beyond the barrier of 741 nats of a uniform field
STEPS = 64
LADDER, OURS, NUTS = "QES, ladder", "QES, chains", "NUTS"
QUANTITIES = ("levels", "log_z", "ordered_share", "abs_m", "q")
WORDS = {"levels": "levels", "log_z": "log Z", "ordered_share": "ordered share", "abs_m": "<|m|>", "q": "<q>"}

# tab:phi6, by schedule: levels, log Z, ordered share, <|m|>, <q>
_DISORDERED = {"log_z": stated("-54.54"), "ordered_share": stated("0.000"), "q": stated("0.184")}
PAPER: Mapping[str, Mapping[str, Any]] = {
    QES: {
        "levels": stated("11502", "372"), "log_z": stated("-53.76", "0.01"), "ordered_share": stated("0.543", "0.009"),
        "abs_m": stated("0.733", "0.011"), "q": stated("1.112", "0.015"),
    },
    "SMC 0.95": _DISORDERED | {"levels": stated("20"), "abs_m": stated("0.027")},
    "SMC 0.99": _DISORDERED | {"levels": stated("44"), "abs_m": stated("0.028")},
    "SMC 0.999": _DISORDERED | {"levels": stated("137"), "abs_m": stated("0.028")},
    "SMC fixed": _DISORDERED | {"levels": stated("10000"), "abs_m": stated("0.028")},
}  # fmt: skip

# (value, error) by other methods: see the first lines, and docs/validation.md
LOG_ODDS, LOG_Z_DISORDERED = (0.67, 0.04), (-54.53, 0.02)
DISORDERED = {"q": 0.184, "abs_m": 0.028}
ORDERED = {"q": 1.89, "abs_m": 1.33}
NOTE = (
    "Exact: references by other methods.  QES has the softness and kernel of the paper, QES, ladder those that the model "
    "recommends; QES, chains\nare chains in equilibrium over its energies.  A ladder lags in the mixed region, "
    "as the paper's does.\nGradients of chains are in the row of log Z."
)


def reference(quantity: str, both_phases: bool) -> tuple[float, float]:
    """(value, error) of what a method should give that samples both phases, or the disordered one alone."""
    share = 1 / (1 + math.exp(-LOG_ODDS[0])) if both_phases else 0.0
    error = share * (1 - share) * LOG_ODDS[1]
    if quantity == "ordered_share":
        return share, error
    if quantity == "log_z":
        return LOG_Z_DISORDERED[0] - math.log1p(-share), math.hypot(LOG_Z_DISORDERED[1], share * LOG_ODDS[1])
    if quantity in DISORDERED:
        gap = ORDERED[quantity] - DISORDERED[quantity]
        return DISORDERED[quantity] + share * gap, math.hypot(error * gap, 0.5e-3 + 0.005 * share)
    return math.nan, 0.0


def measure(source: qp.Ladder | qp.Walk) -> xr.Dataset:
    """log Z, share of the ordered phase, <|m|> and <q> with errors; for ladders the number of levels."""
    pool = observables.Pool(source)
    found = [observables.partition_function(pool), observables.order_parameters(pool)]
    found.append(observables.phase_weights(pool, by="q", cut=CUT))
    answers: dict[str, float] = {}
    for name in QUANTITIES[1:]:
        answer = next(one for one in found if name in one)
        answers |= {name: float(answer[name].squeeze()), f"{name}_err": float(answer[f"{name}_err"].squeeze())}
    if isinstance(source, qp.Ladder):
        answers["levels"] = float(source.levels["level_count"].mean())
    return xr.Dataset(answers | {"gradients": float(source.attrs["gradients"])})


def chain(model: Any, settings: Mapping[str, Any], seed: int) -> xr.Dataset:
    """Window-adapted NUTS from prior draws: the same averages without log Z, errors from the scatter of chains."""
    drawn = qp.chains(model, kernel="nuts", seed=seed, fields=False, progress=False, **settings)
    count = drawn.sizes["chain"]
    means = {
        "ordered_share": (drawn["q"] > CUT).mean("draw"),
        "abs_m": drawn["abs_m"].mean("draw"),
        "q": drawn["q"].mean("draw"),
    }
    answers = {"gradients": float(drawn["gradients"].sum())}
    for name, value in means.items():
        answers |= {name: float(value.mean()), f"{name}_err": float(value.std(ddof=1) / math.sqrt(count))}
    return xr.Dataset(answers)


def equilibrated(bench: Bench, model: Any) -> tuple[qp.Ladder, Polished]:
    """Our own way: a ladder of the recommended softness, and multicanonical chains over its energies."""
    ladder = bench.study.ladder(
        "ladder", model, LadderSettings(seed=bench.seed_of("ladder"), **bench.settings["ladder"]), "ladder"
    )
    walk = WalkSettings(seed=bench.seed_of("chains"), **bench.settings["walk"])
    return ladder, polished(model, ladder, 1.0, walk, bench.study)


def run(bench: Bench) -> xr.Dataset:
    """Every method of the table."""
    settings = bench.settings
    model = lattices.phi6(L=settings["L"], mu2=settings["mu2"])
    found: dict[str, xr.Dataset] = {}
    if settings["qes"]:
        own = settings["qes"] | {"stop": DEEP, "steps": STEPS}
        found[QES] = bench.part("QES", lambda seed, c: measure(sample(QES, model, own, seed, c)), model)
    ladder, walked = equilibrated(bench, model)
    found |= {LADDER: measure(ladder), OURS: measure(walked.walk)}
    for schedule in settings["schedules"]:
        name = f"{SMC} {schedule}"
        found[name] = bench.part(name.replace(" ", "_"), _tempered(model, schedule, settings["smc"]), model)
    found[NUTS] = bench.part(NUTS, lambda seed, _: chain(model, settings["nuts"], seed), model)
    rows = [row for method, one in found.items() for row in _rows(f"phi6 L={settings['L']}", method, one)]
    return collect(rows).assign_attrs(note=NOTE, doubt=" ".join(walked.doubts))


def _tempered(model: Any, schedule: Any, settings: Mapping[str, Any]) -> Any:
    """A tempered ladder at a target ESS, or at equally spaced temperatures."""
    if schedule == "fixed":
        own = dict(settings) | {"betas": list(np.linspace(0, 1, 10_001)[1:])}
    else:
        own = dict(settings) | {"target_ess": float(schedule)}

    def make(seed: int, checkpoint: Path | None) -> xr.Dataset:
        return measure(sample(SMC, model, own | {"steps": STEPS}, seed, checkpoint))

    return make


def _rows(case: str, method: str, found: xr.Dataset) -> list[Row]:
    rows = []
    printed = PAPER.get(QES if method == LADDER else method, {})
    for quantity in QUANTITIES:
        if quantity not in found:
            continue
        error = float(found[f"{quantity}_err"]) if f"{quantity}_err" in found else math.nan
        error = error if error > SAME else math.nan
        exact, exact_err = reference(quantity, method in (QES, LADDER, OURS))
        # Every draw of a method that stays in one phase says the same share: its scatter is no error.
        judged = error > 0 and method != QES
        rows.append(
            Row(
                case, method, WORDS[quantity], float(found[quantity]), error,
                printed.get(quantity), exact if judged else math.nan,
                float(found["gradients"]) if quantity == "log_z" or method == NUTS else math.nan, exact_err=exact_err,
            )
        )  # fmt: skip
    return rows


def figure(result: xr.Dataset) -> Figure:
    """log Z and the share of the ordered phase of every method, with the printed values and the references."""
    import matplotlib.pyplot as plt  # takes a second to import

    table = result[["method", "quantity", "paper", "paper_err", "ours", "ours_err"]].to_dataframe()
    drawing, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), sharey=True)
    methods = list(dict.fromkeys(table["method"]))
    for ax, name in zip(axes, ("log_z", "ordered_share"), strict=True):
        own = table[table["quantity"] == WORDS[name]].set_index("method").reindex(methods)
        place = np.arange(len(methods))
        ax.errorbar(own["ours"], place, xerr=np.nan_to_num(own["ours_err"]), fmt="o", markersize=4, label="ours")
        ax.errorbar(
            own["paper"], place + 0.15, xerr=np.nan_to_num(own["paper_err"]), fmt="kx", markersize=5, label="paper"
        )
        for both in (False, True):
            ax.axvline(reference(name, both)[0], color="0.6", linewidth=0.8, linestyle="-" if both else "--")
        ax.set(xlabel={"log_z": r"$\log Z$", "ordered_share": "share of the ordered phase"}[name])
        ax.set_yticks(place, methods)
    axes[0].invert_yaxis()
    axes[0].legend(loc="lower right", title="solid: both phases\ndashed: disordered")
    return drawing


SCHEDULES = [0.95, 0.99, 0.999]
EXPERIMENT = Experiment(
    "phi6",
    "tab:phi6",
    "Lattice phi^6 at coexistence, L = 40: QES resolves both phases, tempering and NUTS stay disordered",
    {
        Effort.QUICK: {
            "L": L, "mu2": MU2, "qes": None, "schedules": SCHEDULES, "smc": {"particles": 100, "replicas": 2},
            "ladder": {"particles": 64, "replicas": 4}, "walk": {"groups": 8, "chains": 4, "sweeps": 800},
            "nuts": {"chains": 4, "draws": 100, "tune": 100},
        },
        Effort.STANDARD: {
            "L": L, "mu2": MU2, "qes": None, "schedules": SCHEDULES,
            "smc": {"particles": 200, "replicas": 3}, "ladder": {"particles": 200, "replicas": 4},
            "walk": {}, "nuts": {"chains": 4, "draws": 1000, "tune": 500},
        },
        Effort.PAPER: {
            "L": L, "mu2": MU2, "qes": {"particles": 8000, "replicas": 3}, "schedules": [*SCHEDULES, "fixed"],
            "smc": {"particles": 8000, "replicas": 3}, "ladder": {"particles": 400, "replicas": 8},
            "walk": {}, "nuts": {"chains": 4, "draws": 2000, "tune": 500},
        },
    },
    {Effort.QUICK: 4, Effort.STANDARD: 4, Effort.PAPER: 3744},
    run,
    figure,
    needs="the extra rivals for NUTS",
)  # fmt: skip
