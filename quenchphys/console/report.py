"""The report of a ladder in words: how it ended, and why it can or cannot be trusted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from quenchphys.outcome import Outcome
from quenchphys.samplers.softness import too_soft
from quenchphys.smc.lag import LARGEST_SHARE, SLOW, slowest_quantity

if TYPE_CHECKING:
    from quenchphys.ladder import Ladder

WORDS = {
    Outcome.CONVERGED: "The evidence below the last level is negligible.",
    Outcome.REACHED_ENERGY: "The ladder reached the requested energy.",
    Outcome.REACHED_BETA: "The ladder reached its last inverse temperature.",
    Outcome.LEVEL_LIMIT: "The ladder hit its limit of levels before it was deep enough: raise max_levels or the LevelLimit.",
    Outcome.TIME_LIMIT: "The ladder hit its time limit before it was deep enough: the part below its last level is missing.",
    Outcome.FROZEN: "The particles stopped moving, or no lower level could be found: volumes from there on are meaningless.",
    Outcome.MISSED_PHASE: "A phase that the problem names was never reached: averages and log Z lack it.",
    Outcome.LAGGED: "Particles hardly forgot one level before the next: volumes between the phases are not to be trusted.",
    Outcome.UNDEFINED_ENERGY: "The energy is NaN on part of the space and was taken as infinite there: results exclude it.",
}


BRIDGE_WORDS = {
    Outcome.REACHED_BETA: "Chains were in equilibrium at every step between the prior and the phase, and stayed inside it.",
    Outcome.LEFT_PHASE: "Chains left the phase again and again: it is not metastable, and a bridge cannot give its log Z.",
    Outcome.LAGGED: "Chains forget their start too slowly, or early samples differ from late ones: try longer trajectories.",
    Outcome.FROZEN: "The chains hardly moved at one of the steps.",
    Outcome.LEVEL_LIMIT: "The largest number of sweeps was reached before the error that was asked for.",
}


def describe(ladder: Ladder) -> str:
    """The report of a ladder.

    Parameters
    ----------
    ladder
        A finished run.

    Returns
    -------
    str
        Outcome, size, acceptance and ancestors, then every reason for doubt, one a line, and what trust does not cover.
    """
    if ladder.method == "bridge":
        return describe_bridge(ladder)
    lines = [*_headline(ladder), *_pilots(ladder), *_doubts(ladder), *_limits(ladder)]
    return "\n".join(lines)


def describe_bridge(ladder: Ladder) -> str:
    """The report of a bridge: its outcome, its size, and what its chains did."""
    levels, particles = ladder.levels, ladder.particles
    trust = "can be trusted" if ladder.outcome.trusted else "NOT TO BE TRUSTED"
    inside = np.isfinite(ladder.prior["energy"].values).mean()
    return "\n".join(
        [
            f"bridge to {ladder.problem}: {ladder.outcome.value} ({trust})",
            (BRIDGE_WORDS | {Outcome.UNDEFINED_ENERGY: WORDS[Outcome.UNDEFINED_ENERGY]})[ladder.outcome],
            f"{particles.sizes['replica']} groups of chains at {levels.sizes['level']} values of beta, "
            f"{particles.sizes['particle']} sweeps, length {ladder.attrs['length']:.3g}, {ladder.attrs['wall_time']:.1f} s",
            f"acceptance {float(levels['acceptance'].mean()):.2f} (lowest {float(levels['acceptance'].min()):.2f}), "
            f"{inside:.1%} of the prior draws are inside the phase",
        ]
    )


def _headline(ladder: Ladder) -> list[str]:
    levels, outcome, count = ladder.levels, ladder.outcome, _level_count(ladder)
    parameter = "beta" if ladder.method == "temper" else "energy"
    ends = [float(levels[parameter][r, n - 1]) for r, n in enumerate(count)]
    firsts = [float(levels[parameter][r, 0]) for r in range(len(count))]
    return [
        f"{ladder.method} of {ladder.problem}: {outcome.value} "
        f"({'can be trusted' if outcome.trusted else 'NOT TO BE TRUSTED'})",
        WORDS[outcome],
        f"{len(count)} replicas of {_size(ladder)}, {_span(count)} levels, "
        f"{parameter} from {np.mean(firsts):.6g} to {np.mean(ends):.6g}, {ladder.attrs.get('wall_time', 0.0):.1f} s",
        *_moves(ladder),
    ]


def _moves(ladder: Ladder) -> list[str]:
    """Acceptance, moves and ancestors, as far as they were recorded."""
    levels, words = ladder.levels, []
    if "acceptance" in levels:
        acceptance = levels["acceptance"]
        words.append(f"acceptance {float(acceptance.mean()):.2f} (lowest {float(acceptance.min()):.2f})")
    if "displacement" in levels:
        words.append(f"move per level {float(levels['displacement'].median()):.2f} of a coordinate's scale")
    if "lineages" in levels:
        words.append(f"ancestors left {_span(_lineages(ladder))}")
    return [", ".join(words)] if words else []


def _size(ladder: Ladder) -> str:
    particles = ladder.particles.sizes["particle"]
    if ladder.method == "nested":
        return f"{ladder.attrs['live_points']} live points, {particles} born at each level"
    return f"{particles} particles"


def _limits(ladder: Ladder) -> list[str]:
    """What a trusted outcome rests on, and what no run can see."""
    if not ladder.outcome.trusted:
        return []
    phases = ", ".join(ladder.phases) or "none is named"
    return [
        f"Checked: depth, moves of the particles, NaN energies, phases ({phases}); no check can see a mode that no prior "
        "draw and no particle came near and that the problem does not name as a phase"
    ]


def _pilots(ladder: Ladder) -> list[str]:
    if not ladder.attrs.get("pilot_gradients"):
        return []
    spent = f"{ladder.attrs['gradients']:.3g} gradients, and {ladder.attrs['pilot_gradients']:.3g} for the pilots"
    return [f"softness {ladder.softness:.3g}, chosen by pilot ladders; {spent}"]


def _doubts(ladder: Ladder) -> list[str]:
    outcomes = enumerate(json.loads(ladder.attrs.get("replica_outcomes", "[]")))
    others = [f"replica {r} ended with {outcome!r}" for r, outcome in outcomes if outcome != ladder.outcome.value]
    lines = [f"Not all replicas ended alike: {', '.join(others)}"] if others else []
    if "unverified" in ladder.attrs:
        lines.append(f"Not verified: {ladder.attrs['unverified']}, so nobody can tell whether it was changed")
    if ladder.attrs.get("undefined_draws"):
        lines.append(f"{ladder.attrs['undefined_draws']} prior draws had an undefined (NaN) energy")
    if ladder.method == "quench" and (doubt := too_soft(ladder)):
        lines.append(doubt)
    if ladder.outcome is Outcome.LAGGED:
        lines.append(_lag(ladder))
    if "lineages" in ladder.levels and _lineages(ladder).min() == 1:
        lines.append(
            "All particles of a replica descend from one ancestor: take its error bar from lagged genealogies or replicas"
        )
    return lines


def _lag(ladder: Ladder) -> str:
    levels = ladder.levels
    found = slowest_quantity(levels["correlation"].values, [str(name) for name in levels["quantity"].values])
    parameter = "beta" if ladder.method == "temper" else "energy"
    nested = "use more steps or live points, or qp.quench"
    advice = nested if ladder.method == "nested" else "use workflows.polish, or more transitions a level"
    return (
        f"The correlation of {found.quantity} over a level is above {SLOW:g} at {found.share:.0%} of the levels (up to "
        f"{LARGEST_SHARE:.0%} is safe), and {found.correlation:.2f} near {parameter} "
        f"{float(levels[parameter][:, found.level].mean()):.4g}: {advice}"
    )


def _level_count(ladder: Ladder) -> np.ndarray:
    levels = ladder.levels
    if "level_count" in levels:
        return levels["level_count"].values
    return np.full(levels.sizes["replica"], levels.sizes["level"])


def _lineages(ladder: Ladder) -> np.ndarray:
    """Distinct ancestors of the last population of each replica."""
    return np.array([int(ladder.levels["lineages"][r, n - 1]) for r, n in enumerate(_level_count(ladder))])


def _span(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}-{high}"
