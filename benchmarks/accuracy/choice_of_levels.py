"""Bias of the volumes under three rules for the distance between levels, against exact volumes.

    python -m benchmarks.accuracy.choice_of_levels [--without phi6]       some minutes on two cores

A step may keep 95% of the effective sample size.  Measured as the quotient of Kish's sizes after and before it, the rule
follows the noise of the weights carried over from earlier levels; as the conditional effective size
(`population.kept_share`) it does not.  Either way the level is chosen from the particles that then measure it; what that
adds to first order (`population.choice_bias`) is subtracted in the third rule, which the engine uses.  Gaussian and spike
and slab have an exact log G(E), and the table shows by how much the logarithm of the mean of G at the last level is off.
The last rows have the log odds of the phases of phi^6 at L = 16, where mu2* = 2.28660(4) by multicanonical chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import jax
import numpy as np

import lattices
import observables
import quenchphys as qp
from benchmarks import harness
from quenchphys.smc import levels, step
from quenchphys.smc.population import choice_bias, effective_size, kept_share
from quenchphys.smc.programs import programs_for

SOFTNESS, EXACT_MU2 = 46.0, 2.28660
REPLICAS = 64


def quotient(log_weight: Any, log_ratio: Any) -> Any:
    return effective_size(log_weight + log_ratio) / effective_size(log_weight)


def nothing(*_: Any) -> float:
    return 0.0


RULES = {
    "Kish, after over before": (quotient, nothing),
    "conditional": (kept_share, nothing),
    "conditional, corrected": (kept_share, choice_bias),
}


def last_volume(target: Any, particles: int) -> tuple[float, float, int]:
    """log of the mean of measured over exact G at the last level, nu = 2, its error, and the number of levels."""
    ladder = qp.quench(target, particles=particles, replicas=REPLICAS, softness=2.0, configurations=1, progress=False)
    last = ladder.levels.level_count.values.astype(int) - 1
    off = []
    for replica, k in enumerate(last):
        energy, log_volume = (float(ladder.levels[name].values[replica, k]) for name in ("energy", "log_volume"))
        off.append(np.exp(log_volume - target.log_volume(energy, 2.0)))
    mean = float(np.mean(off))
    return float(np.log(mean)), float(np.std(off, ddof=1) / np.sqrt(len(off)) / mean), int(last.mean())


def log_odds(particles: int) -> tuple[float, float, int]:
    """Log odds of the phases of phi^6 at the exact mu2*, where they are 0, their error, and the number of levels."""
    model = lattices.phi6(L=16, mu2=EXACT_MU2)
    ladder = qp.quench(model, particles=particles, replicas=REPLICAS, softness=SOFTNESS, configurations=1, progress=False)
    # Telescoped volumes: solving for them self-consistently hides some of the bias.
    found = observables.equal_weight(observables.Pool(ladder, volumes="telescoped"))
    slope = abs(float(found.log_odds_slope))
    value, error = slope * (float(found.mu2) - EXACT_MU2), slope * float(found.mu2_err)
    return value, error, int(ladder.levels.level_count.mean())


def gaussian(particles: int) -> tuple[float, float, int]:
    return last_volume(qp.targets.gaussian(100), particles)


def spike_slab(particles: int) -> tuple[float, float, int]:
    return last_volume(qp.targets.spike_slab(20), particles)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--without", nargs="*", default=[], choices=("gaussian", "spike_slab", "phi6"))
    without = parser.parse_args(arguments).without
    measures = {"gaussian": gaussian, "spike_slab": spike_slab, "phi6": log_odds}
    labels = {"gaussian": "gaussian(100)", "spike_slab": "spike_slab(20)", "phi6": "phi6(L=16)"}
    table = harness.Table(
        {"target": "15s", "particles": "d", "rule": "24s", "levels": "d", "off by": "+.3f", "error": ".3f"}
    )
    for measure, name in labels.items():
        for particles in () if measure in without else (50, 200):
            for rule, (share, bias) in RULES.items():
                programs_for.cache_clear()
                jax.clear_caches()
                with mock.patch.object(levels, "kept_share", share), mock.patch.object(step, "choice_bias", bias):
                    value, error, count = measures[measure](particles)
                table.add(name, particles, rule, count, value, error)
    harness.save("choice_of_levels", table.rows)


if __name__ == "__main__":
    main()
