"""What does the choice of levels cost in bias?  Volumes against exact ones, with two rules for how far a step goes.

    python benchmarks/choice_of_levels.py            about five minutes on two cores

A step may keep 95% of the effective size.  Measured as the quotient of Kish's sizes after and before it, the rule listens to
the noise of the weights that are carried along; as the conditional effective size (`population.kept_share`) it does not.
A Gaussian in 100 dimensions has an exact log G(E): told is how far the last one is off, mean over replicas, and by the last
rows the log odds of the phases of phi^6 at L = 16, where mu2* = 2.28660(4) by multicanonical chains.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np

import lattices
import observables
import quenchphys as qp
from quenchphys import levels
from quenchphys.devices import programs
from quenchphys.population import effective_size, kept_share

SOFTNESS, EXACT_MU2 = 46.0, 2.28660


def quotient(log_weight: Any, log_ratio: Any) -> Any:
    return effective_size(log_weight + log_ratio) / effective_size(log_weight)


RULES = {"Kish, after over before": quotient, "conditional": kept_share}


def last_volume(particles: int) -> tuple[float, float, int]:
    """Measured minus exact log G at the last level of a Gaussian's ladder, its error, and the number of levels."""
    target = qp.targets.gaussian(100)
    ladder = qp.quench(target, particles=particles, replicas=64, softness=SOFTNESS, configurations=1, progress=False)
    last = ladder.levels.level_count.values.astype(int) - 1
    off = []
    for replica, k in enumerate(last):
        energy, log_volume = (float(ladder.levels[name].values[replica, k]) for name in ("energy", "log_volume"))
        off.append(log_volume - target.log_volume(energy, SOFTNESS))
    return float(np.mean(off)), float(np.std(off, ddof=1) / np.sqrt(len(off))), int(last.mean())


def log_odds(particles: int) -> tuple[float, float, int]:
    """Of the phases of phi^6 at the exact mu2*, where they are 0."""
    model = lattices.phi6(L=16, mu2=EXACT_MU2)
    ladder = qp.quench(model, particles=particles, replicas=64, softness=SOFTNESS, configurations=1, progress=False)
    # Telescoped volumes: solving for them self-consistently hides some of the bias.
    found = observables.equal_weight(observables.Pool(ladder, volumes="telescoped"))
    slope = abs(float(found.log_odds_slope))
    value, error = slope * (float(found.mu2) - EXACT_MU2), slope * float(found.mu2_err)
    return value, error, int(ladder.levels.level_count.mean())


def main() -> None:
    rows = []
    print(f"{'target':18s} {'particles':>9s}   {'rule':24s} {'levels':>6s}   off by")
    for name, measure, sizes in (("gaussian(100)", last_volume, (50, 200)), ("phi6(L=16)", log_odds, (50, 200))):
        for particles in sizes:
            for rule, function in RULES.items():
                programs.cache_clear()
                jax.clear_caches()
                with mock.patch.object(levels, "kept_share", function):
                    value, error, count = measure(particles)
                rows.append({"target": name, "particles": particles, "rule": rule, "off": value, "error": error})
                print(f"{name:18s} {particles:9d}   {rule:24s} {count:6d}   {value:+.3f} +- {error:.3f}", flush=True)
    Path("out").mkdir(exist_ok=True)
    Path("out/choice_of_levels.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
