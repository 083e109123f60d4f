"""Sampling near a critical point: canonical chains with sign clusters at three couplings of every size, or one ladder.

Sizes are sampled one after the other.  The two smallest lie at the quarter points of the bracket; every larger one is
centred where xi/L, or else the Binder cumulants, of the two before it cross in the bracket, with couplings as far apart as
the cumulant takes to change by SPREAD, so that all of them overlap at any size.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import observables
import quenchphys as qp
from quenchphys.autocorrelation import gamma_method
from quenchphys.console.progress import WalkMeter
from quenchphys.problem import view
from workflows.budget import LadderSettings, Use, WalkSettings, seed_of
from workflows.cluster import run_all
from workflows.model_family import ModelFamily
from workflows.scaling.curves import Curves, curves_of
from workflows.store import Study

SPREAD = 0.03  # of the Binder cumulant, from one coupling to the next
COUPLINGS = 3  # of every size
BEYOND = 2.0  # couplings apart, up to which curves go beyond the outer ones, where samples support that
WARM_UP = 0.1  # of the sweeps
LEAST_WARM_UP = 64
TIMES = ("m2", "energy")  # quantities whose autocorrelation times are told


class Sampled(NamedTuple):
    """One size: its curves, and what is known of how it was sampled."""

    curves: Curves
    pool: observables.Pool
    times: dict[str, tuple[float, float]]  # tau and its error in sweeps; none for a ladder
    burn_in: int = 0  # sweeps of every chain before those that count


def has_clusters(problem: Any) -> bool:
    """Whether chains with sign clusters can sample a problem."""
    return all(hasattr(problem, name) for name in ("lane_action", "lane_sign_couplings", "lane_lowest"))


def sample_chains(
    families: dict[int, ModelFamily], bracket: tuple[float, float], settings: WalkSettings, study: Study, client: Any
) -> list[Sampled]:
    """Canonical chains at three couplings of every size."""
    found: list[Sampled] = []
    centre, apart = 0.5 * sum(bracket), 0.25 * (bracket[1] - bracket[0])
    for number, (L, family) in enumerate(families.items()):
        if number > 1:
            centre, apart = _next_place(found[-2].curves, found[-1].curves, L, bracket)
        values = [centre + (i - (COUPLINGS - 1) / 2) * apart for i in range(COUPLINGS)]
        walks = _walks(family, values, settings, L, study, client)
        pool = observables.Pool(walks)
        ends = (values[0] - BEYOND * apart, values[-1] + BEYOND * apart)
        middle = walks[COUPLINGS // 2]
        times = {name: gamma_method(np.moveaxis(middle.data[name].values, 1, 0)) for name in TIMES}
        burn_in = int(json.loads(middle.attrs["settings"])["warm_up"])
        found.append(Sampled(curves_of(pool, L, family.coupling, ends, _wave(family, centre)), pool, times, burn_in))
    return found


def _next_place(small: Curves, large: Curves, L: int, bracket: tuple[float, float]) -> tuple[float, float]:
    """Where a further size is sampled: at the crossing of two others, and how far apart."""
    # xi/L has the smaller corrections: small sizes cross closer to the critical point.
    crossing = small.crossing(large, "ratio" if "ratio" in small.tables else "binder")
    centre = crossing if bracket[0] <= crossing <= bracket[1] else 0.5 * sum(bracket)
    slopes = [abs(float(size.slope("binder", centre)[0])) for size in (small, large)]
    power = np.clip(np.log(slopes[1] / slopes[0]) / np.log(large.length / small.length), 0.5, 2.0)
    steepness = slopes[1] * (L / large.length) ** power
    error = np.hypot(small.error("binder", centre), large.error("binder", centre)) / abs(slopes[1] - slopes[0])
    # Where two sizes have the same slope, as far from the transition, their crossing says nothing.
    widest = (bracket[1] - bracket[0]) / (COUPLINGS + 1)
    return centre, float(np.clip(error, SPREAD / steepness, max(SPREAD / steepness, widest)))


def _walks(
    family: ModelFamily, values: Sequence[float], settings: WalkSettings, L: int, study: Study, client: Any
) -> list[qp.Walk]:
    made: list[Any] = [None] * len(values)
    if client is not None:
        calls = [(family, value, settings, (L, i), study.path, study.request) for i, value in enumerate(values)]
        made = run_all(client, size_walk, calls)
    walks = []
    for i, value in enumerate(values):
        label = f"L = {L}, {family.coupling} = {value:.6g}"
        meter = WalkMeter(study.display, settings.sweeps)
        meter.part(0, settings.sweeps, label)

        def make(value: float = value, i: int = i, meter: WalkMeter = meter) -> qp.Walk:
            return made[i] or chains_at(family, value, settings, (L, i), meter)

        walks.append(study.walk(f"L{L}_{value:.9g}", label, make, family.at(value)))
    return walks


def chains_at(
    family: ModelFamily, value: float, settings: WalkSettings, place: tuple[int, int], progress: WalkMeter | bool = False
) -> qp.Walk:
    """The chains at one coupling of one size; each has a seed of its own."""
    return qp.canonical(
        family.at(value),
        sweeps=settings.sweeps,
        warm_up=max(LEAST_WARM_UP, int(WARM_UP * settings.sweeps)),
        groups=settings.groups,
        chains=settings.chains,
        seed=seed_of(settings.seed, Use.CHAINS, COUPLINGS * place[0] + place[1]),
        progress=progress,
    )


def size_walk(
    family: ModelFamily,
    value: float,
    settings: WalkSettings,
    place: tuple[int, int],
    out: Path | None,
    request: dict[str, Any],
) -> qp.Walk | None:
    """The chains at one coupling, on a worker; None if they were written to the folder of a study."""
    part = Study(None, request, progress=False)
    part.path = out  # locked and prepared by the process that asked for this
    name = f"L{place[0]}_{value:.9g}"
    walk = part.walk(name, name, lambda: chains_at(family, value, settings, place), family.at(value))
    return walk if out is None else None


def sample_ladders(
    families: dict[int, ModelFamily], bracket: tuple[float, float], settings: LadderSettings, study: Study, client: Any
) -> list[Sampled]:
    """One ladder of every size in the middle of the bracket, for models without sign clusters."""
    middle = 0.5 * sum(bracket)
    made: dict[int, Any] = {}
    if client is not None:
        calls = [
            (family, middle, settings, f"L{L}_{middle:.9g}", study.path, study.request, study.overwrite)
            for L, family in families.items()
        ]
        made = dict(zip(families, run_all(client, size_ladder, calls), strict=True))
    found = []
    for L, family in families.items():
        label = f"L = {L}, {family.coupling} = {middle:.6g}"
        ladder = made.get(L) or study.ladder(f"L{L}_{middle:.9g}", family.at(middle), settings, label)
        pool = observables.Pool(ladder)
        found.append(Sampled(curves_of(pool, L, family.coupling, bracket, _wave(family, middle)), pool, {}))
    return found


def size_ladder(
    family: ModelFamily,
    value: float,
    settings: LadderSettings,
    name: str,
    out: Path | None,
    request: dict[str, Any],
    overwrite: bool,
) -> qp.Ladder | None:
    """The ladder of one size; None if it was written to the folder of a study that another process holds open."""
    part = Study(None, request, progress=False, overwrite=overwrite)
    part.path = out  # locked and prepared by the process that asked for this
    ladder = part.ladder(name, family.at(value), settings, name)
    return ladder if out is None else None


def _wave(family: ModelFamily, value: float) -> float:
    """khat^2 of the smallest momentum, for xi; NaN for a model without a lattice."""
    lattice = getattr(view(family.at(value)).problem, "lattice", None)
    return float(getattr(lattice, "lowest_eigenvalue", np.nan))
