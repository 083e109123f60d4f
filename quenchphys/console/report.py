"""What a ladder says about itself in words: how it ended, and why it can or cannot be trusted."""

from __future__ import annotations

import json

import numpy as np

from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.samplers.softness import too_soft

WORDS = {
    Outcome.CONVERGED: "The evidence below the last level is negligible against what was gathered above it.",
    Outcome.REACHED_ENERGY: "The ladder reached the energy it was asked to reach.",
    Outcome.REACHED_BETA: "The ladder reached its last temperature.",
    Outcome.LEVEL_LIMIT: "The ladder ran out of levels before it was deep enough: raise max_levels or its LevelLimit.",
    Outcome.TIME_LIMIT: "The ladder ran out of time before it was deep enough: what lies below it is missing.",
    Outcome.FROZEN: "The population stopped moving, or no lower level could be found: volumes below mean nothing.",
    Outcome.MISSED_PHASE: "A phase the problem names was never met: averages and log Z lack it.",
    Outcome.UNDEFINED_ENERGY: "The energy was NaN on part of the space, taken as infinite: results hold for the rest alone.",
}


def report(ladder: Ladder) -> str:
    levels, outcome = ladder.levels, ladder.outcome
    parameter = "energy" if ladder.method == "quench" else "beta"
    count = levels["level_count"].values
    ends = [float(levels[parameter][r, n - 1]) for r, n in enumerate(count)]
    firsts = [float(levels[parameter][r, 0]) for r in range(len(count))]
    lineages = [int(levels["lineages"][r, n - 1]) for r, n in enumerate(count)]
    lines = [
        f"{ladder.method} of {ladder.attrs['problem']}: {outcome.value} "
        f"({'can be trusted' if outcome.trusted else 'NOT TO BE TRUSTED'})",
        WORDS[outcome],
        f"{len(count)} replicas of {ladder.particles.sizes['particle']} particles, {_span(count)} levels, "
        f"{parameter} from {np.mean(firsts):.6g} to {np.mean(ends):.6g}, {ladder.attrs['wall_time']:.1f} s",
        f"acceptance {float(levels['acceptance'].mean()):.2f} "
        f"(lowest {float(levels['acceptance'].min()):.2f}), move per level {float(levels['displacement'].median()):.2f} "
        f"of a coordinate's scale, ancestors left {_span(np.array(lineages))}",
    ]
    if ladder.attrs.get("pilot_gradients"):
        taken = f"{ladder.attrs['gradients']:.3g} gradients, after {ladder.attrs['pilot_gradients']:.3g} of pilots"
        lines.append(f"softness {ladder.softness:.3g}, read from pilot ladders; {taken}")
    odd = [
        f"replica {r}: {said}"
        for r, said in enumerate(json.loads(ladder.attrs["replica_outcomes"]))
        if said != outcome.value
    ]
    if odd:
        lines.append("Replicas with another end: " + ", ".join(odd))
    if ladder.attrs["undefined_draws"]:
        lines.append(f"{ladder.attrs['undefined_draws']} prior draws had undefined (NaN) energy")
    if ladder.method == "quench" and (doubt := too_soft(ladder)):
        lines.append(doubt)
    if min(lineages) == 1:
        lines.append(
            "All particles of a replica descend from one: its error bar must come from lagged genealogies or replicas"
        )
    return "\n".join(lines)


def _span(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}-{high}"
