"""Time and memory for the analysis of a very long ladder: 20,000 levels of 1000 particles.

    python -m benchmarks.speed.large_ladder [levels] [particles]

The ladder is exact and synthetic: U has the density k U^(k-1)/T^k under the prior, so a level E is E times a
Beta(k, nu+1) variable, G = k B(k, nu+1) E^(k+nu)/T^k, and Z(beta) = k gamma(k, beta T)/(beta T)^k.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence

import numpy as np
from scipy.special import betaln, gammaln

import observables
import quenchphys as qp
from benchmarks import harness
from tests.support import synthetic

SOFTNESS, POWER, TOP = 2.0, 2000, 80_000.0


def make(levels: int, particles: int) -> qp.Ladder:
    """The synthetic ladder; a tenth of its levels resample."""
    rng = np.random.default_rng(0)
    energy = TOP * np.exp(-np.linspace(0, np.log(TOP / POWER) + 0.2, levels))
    u = np.empty((1, levels, particles), np.float32)
    parent = np.tile(np.arange(particles, dtype=np.int32), (1, levels, 1))
    for i, level in enumerate(energy):
        u[0, i] = level * rng.beta(POWER, SOFTNESS + 1, particles)
        if i % 10 == 0:
            parent[0, i] = rng.integers(0, particles, particles)
    log_volume = np.log(POWER) + betaln(POWER, SOFTNESS + 1) + (POWER + SOFTNESS) * np.log(energy) - POWER * np.log(TOP)
    runs = {
        "u": u,
        "share": np.full(u.shape, 0.5, np.float32),
        "log_w": np.full(u.shape, -np.log(particles), np.float32),
        "parent": parent,
        "log_g": log_volume[None],
        "prior_u": TOP * rng.beta(POWER, 1, (1, 10 * particles)),
        "prior_share": np.full((1, 10 * particles), 0.5),
    }
    return synthetic.build(synthetic.Chi2(), SOFTNESS, energy, runs, 0)


def memory() -> float:
    """Largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("levels", type=int, nargs="?", default=20_000)
    parser.add_argument("particles", type=int, nargs="?", default=1000)
    chosen = parser.parse_args(arguments)
    levels, particles = chosen.levels, chosen.particles
    ladder = make(levels, particles)
    print(f"{levels} levels of {particles} particles; the ladder itself: {memory():.2f} GB")
    timer = harness.Timer()
    exact = np.log(POWER) + gammaln(POWER) - POWER * np.log(TOP)

    def done(what: str) -> None:
        print(f"{timer.wall:6.1f} s ({timer.processor:5.1f} s of processor time)  {memory():5.2f} GB  {what}", flush=True)

    pool = observables.Pool(ladder)
    done("pool: self-consistent volumes, table of D, weights")
    found = observables.partition_function(pool, np.linspace(0.9, 1.0, 11))
    z = float((found.log_z[-1] - exact) / found.log_z_err[-1])
    done(f"log Z at 11 temperatures, with errors: log Z(1) = {float(found.log_z[-1]):.2f}"
         f"({float(found.log_z_err[-1]):.2f}), exact {exact:.2f}, z = {z:.2f}")  # fmt: skip
    states = observables.density_of_states(pool, bins=50)
    done(f"density of states in 50 bins, with errors; largest error {float(states.log_g_err.max()):.2f}")
    order = observables.order_parameters(pool)
    done(
        f"order parameters, with errors: <U> = {float(order.energy):.2f}({float(order.energy_err):.2f}), exact {POWER}"
    )


if __name__ == "__main__":
    main()
