"""A coexistence point without crossing: the free energy of each phase by a bridge from its own Gaussian.

    scouts      short bridges to both phases, on a smaller lattice if there is one: their log odds and the slope, hence a
                better value of the coupling, until the odds are about even
    bridges     long ones there: the point, and both phases at it

The log odds of two phases of V sites, m of the ordered one, are V df(c) + log m, so a small lattice knows df(c) of a large
one.  The cost to a given error of the coupling does not grow with the lattice.  What is missing is what lies between the
phases: the barrier, the interface tension and the valley of P(q).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import lattices
import observables
import quenchphys as qp
from lattices.torus import Torus
from quenchphys.console.progress import WalkMeter
from workflows.budget import BridgeSettings, Use, seed_of
from workflows.model_family import ModelFamily
from workflows.store import Study

PHASES = ("disordered", "ordered")
MOST_SCOUTS = 8  # pairs of short bridges
SCOUT_SWEEPS = 32
SCOUT_SITES = 4096  # of the lattice of scouts, where the lattice can be made smaller
EVEN = 3.0  # nats of log odds, within which the long bridges are run
TOO_FAR = 12.0  # nats at the coupling of long bridges, beyond which they are run again where they say that the point is
DEFAULT_ERROR = 0.1  # of the log odds, in nats
ODD = ("m", "m_err")  # the bridge to an ordered phase has one of two signs
MISSED = 2.0  # times the error that was asked for, above which the answer is not what was asked for


class Odds(NamedTuple):
    """The log odds of the ordered phase at a coupling, and what they are made of."""

    value: float
    slope: float
    """d log odds / dc"""
    sites: int
    multiplicity: int
    lengths: np.ndarray
    """Of the bridges to both phases."""

    def on(self, sites: int) -> Odds:
        """The same for a lattice of another size: what is proportional to V grows, log m stays."""
        ratio, constant = sites / self.sites, math.log(self.multiplicity)
        value = ratio * (self.value - constant) + constant
        return Odds(value, ratio * self.slope, sites, self.multiplicity, math.sqrt(ratio) * self.lengths)


class BridgedPoint:
    """The search for one coexistence point by bridges, kept by a study."""

    def __init__(self, family: ModelFamily, study: Study, settings: BridgeSettings):
        self.family, self.study, self.settings = family, study, settings

    def find(self, bracket: tuple[float, float], start: float) -> xr.Dataset:
        """Scouts from `start`, then the point; refused if it does not lie in the bracket."""
        at, odds = self._scouted(bracket, start)
        error = DEFAULT_ERROR if self.settings.error is None else self.settings.error * abs(odds.slope)
        for _ in range(2):
            bridges = self._long_bridges(at, odds, error)
            point = observables.separate_phases(bridges[0], bridges[1], coupling=self.family.coupling)
            found = float(point[self.family.coupling])
            self._check_inside(bracket, found)
            if abs(float(point["log_odds"])) < TOO_FAR:
                break
            at = found
        self.study.analyse()
        return described(point.drop_vars(ODD), bridges, self.family, error)

    def _long_bridges(self, at: float, odds: Odds, error: float) -> list[qp.Ladder]:
        # Samples cost the same in both phases, and errors are length / sqrt(samples): this division of the square of the
        # error takes the fewest.
        shares = np.sqrt(odds.lengths / odds.lengths.sum())
        phases = lattices.phase_fields(self._field(at))
        return [
            self._bridge(phases[name], at, name, "bridge", self.settings, error=float(error * share))
            for name, share in zip(PHASES, shares, strict=True)
        ]

    def _scouted(self, bracket: tuple[float, float], at: float) -> tuple[float, Odds]:
        """A coupling at which the odds are about even, and the odds there."""
        coupling = self.family.coupling
        sites = self._field(at).lattice.sites
        inside, tried = list(bracket), set()
        for _ in range(MOST_SCOUTS):
            tried.add(at)
            odds = self._scouts(at).on(sites)
            self.study.message(f"scouts: log odds {odds.value:+.3g} at {coupling} = {at:.6g}")
            following = at - odds.value / odds.slope
            if abs(odds.value) < EVEN:
                self._check_inside(bracket, following)
                return following, odds
            inside[int(following < at)] = at  # the point lies on one side of what was tried
            at = float(np.clip(following, *bracket))
            if at in tried:
                self._check_inside(bracket, following)
                at = 0.5 * sum(inside)
        raise RuntimeError(
            f"The odds of the phases were not even at any of {MOST_SCOUTS} values of {coupling}, the last {at:.6g}, so the "
            "coexistence point cannot be found from them; try a bracket closer to the point."
        )

    def _scouts(self, at: float) -> Odds:
        """Short bridges to both phases."""
        field = smaller(self._field(at))
        phases = lattices.phase_fields(field)
        settings = self.settings.scouts
        pair = [self._bridge(phases[name], at, name, "scout", settings, sweeps=SCOUT_SWEEPS) for name in PHASES]
        log_odds, slope = log_odds_of(pair, self.family.coupling)
        lengths = np.array([ladder.attrs["length"] for ladder in pair])
        return Odds(log_odds, slope, field.lattice.sites, phases["ordered"].multiplicity, lengths)

    def _bridge(
        self, phase: lattices.PhaseField, at: float, name: str, kind: str, settings: BridgeSettings, **effort: Any
    ) -> qp.Ladder:
        file = f"{kind}_{name}_{at:.9g}"
        seed = seed_of(settings.seed, Use.CHAINS, _number_of(file))
        label = f"{kind}: {name} phase of {self.family.name} at {self.family.coupling} = {at:.6g}"
        meter = WalkMeter(self.study.display, effort.get("sweeps", 0))

        def make() -> qp.Ladder:
            return qp.bridge(phase, groups=settings.groups, seed=seed, progress=meter, **effort)

        return self.study.bridge(file, label, make, phase)

    def _field(self, at: float) -> lattices.ScalarField:
        return self.family.at(at)

    def _check_inside(self, bracket: tuple[float, float], found: float) -> None:
        if bracket[0] <= found <= bracket[1]:
            return
        side, end = ("below", bracket[0]) if found < bracket[0] else ("above", bracket[1])
        raise ValueError(
            f"The bracket does not contain the coexistence point: {self.family.coupling} lies {side} {end:g}, near "
            f"{found:.5g}."
        )


def _number_of(file: str) -> int:
    """A number that follows from a name: bridges at different couplings have different seeds, in whatever order they run."""
    return int.from_bytes(file.encode(), "big")


def smaller(field: lattices.ScalarField) -> lattices.ScalarField:
    """The same field on a lattice of at most SCOUT_SITES sites, where it is periodic and larger than that."""
    if not isinstance(field.lattice, Torus) or field.lattice.sites <= SCOUT_SITES:
        return field
    factor = (SCOUT_SITES / field.lattice.sites) ** (1 / len(field.lattice.shape))
    shape = tuple(max(2, math.floor(factor * length)) for length in field.lattice.shape)
    return replace(field, lattice=replace(field.lattice, shape=shape))


def log_odds_of(pair: list[qp.Ladder], coupling: str) -> tuple[float, float]:
    """log(Z_o / Z_d) and its slope in the coupling, where the bridges were run."""
    found = []
    for ladder in pair:
        _, conjugate, factor = ladder.couplings[coupling]
        log_z = float(observables.partition_function(ladder)["log_z"]) + float(ladder.parameters["log_scale"])
        found.append((log_z, -factor * float(observables.order_parameters(ladder)[conjugate])))
    return found[1][0] - found[0][0], found[1][1] - found[0][1]


def described(point: xr.Dataset, bridges: list[qp.Ladder], family: ModelFamily, error: float) -> xr.Dataset:
    """The result, P(q) on both sides, and the reasons to doubt it."""
    coupling = family.coupling
    why = doubts(point, bridges, error)
    if why:
        warnings.warn("The coexistence point is not to be trusted: " + " ".join(why), stacklevel=6)
    result = point.assign(_distribution(bridges, coupling, float(point[coupling])))
    result["mixed_weight"] = xr.Variable(
        (), mixed_weight(bridges), {"long_name": "bound (95%) on the weight of mixed states: no chain met one"}
    )
    return result.assign_attrs(
        workflow="coexistence",
        method="phases",
        problem=family.name,
        coupling=coupling,
        phase_by="q",
        phase_cut=float(bridges[0].parameters["high"]),
        trusted=int(not why),
        why=" ".join(why),
    )


def mixed_weight(bridges: list[qp.Ladder]) -> float:
    """If none of n trajectories came to the border of its phase, what lies there weighs less than 3/n with 95%."""
    trajectories = min(ladder.particles.sizes["particle"] * ladder.particles.sizes["replica"] for ladder in bridges)
    return 3 / trajectories


def doubts(point: xr.Dataset, bridges: list[qp.Ladder], error: float) -> list[str]:
    """Why the answer might be wrong: each a sentence."""
    why = []
    for name, ladder in zip(PHASES, bridges, strict=True):
        if ladder.outcome is qp.Outcome.LEFT_PHASE:
            why.append(
                f"{float(ladder.attrs['left']):.2g} of the trajectories left the {name} phase: it is not metastable on this "
                "lattice, so the phases cannot be sampled apart; use method='crossing'."
            )
        elif not ladder.outcome.trusted:
            why.append(f"The bridge to the {name} phase ended with '{ladder.outcome.value}'.")
    if (reached := float(point["log_odds_err"])) > MISSED * error:
        why.append(f"The log odds of the phases are known to {reached:.2g} nats only, and {error:.2g} were asked for.")
    return why


def _distribution(bridges: list[qp.Ladder], coupling: str, value: float) -> dict[str, Any]:
    """P(q) at coexistence, half of it from either phase; between the phases nothing was sampled."""
    axes: list[np.ndarray] = []
    here: dict[str, Any] = {coupling: value}
    densities: dict[str, list[np.ndarray]] = {"p": [], "p_err": []}
    for ladder in bridges:
        found = observables.distribution(ladder, of="q", bins="adaptive", **here)
        axes.append(found["q"].values)
        for part, values in densities.items():
            values.append(0.5 * found[part].values)
    words = {"long_name": "probability density of q; between the phases nothing was sampled"}
    return {
        "q_axis": ("q_axis", np.concatenate(axes), {"long_name": "q"}),
        "p_q": ("q_axis", np.concatenate(densities["p"]), words),
        "p_q_err": ("q_axis", np.concatenate(densities["p_err"]), words),
    }
