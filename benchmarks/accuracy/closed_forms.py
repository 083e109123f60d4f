"""One ladder against closed forms: Z and C of gaussian(100) over beta, and the barrier of spike_slab(D) over D.

    python -m benchmarks.accuracy.closed_forms [particles]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import observables
import quenchphys as qp
from benchmarks import harness
from observables.peaks import deepest_valley
from workflows.reproduction.exact import log_energy_density


def gaussian(particles: int) -> None:
    """Z(beta) = (1 + beta/sigma^2)^(-D/2), C = D/2 (beta/sigma^2)^2 / (1 + beta/sigma^2)^2"""
    problem = qp.targets.gaussian(100)
    pool = observables.Pool(qp.quench(problem, particles=particles, replicas=1, seed=0))
    beta = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.25, 1.5])
    found = observables.thermodynamics(pool, beta)
    exact = np.array([problem.log_z_at(b) for b in beta])
    capacity = 50 * (4 * beta / (1 + 4 * beta)) ** 2
    print(f"gaussian(100), one ladder of {particles} particles, {len(pool.replicas[0].level)} levels")
    columns = {"beta": "6.2f", "log Z": "9.3f", "error": "7.3f", "exact": "9.3f", "z": "6.2f"}
    columns |= {"C": "8.3f", "error of C": "8.3f", "exact C": "8.3f", "z of C": "6.2f", "ess": "8.0f"}
    table = harness.Table(columns)
    for b in range(len(beta)):
        at = found.isel(beta=b)
        log_z, heat = (
            (value := float(at[name]), error := float(at[f"{name}_err"]), known, (value - known) / error)
            for name, known in (("log_z", exact[b]), ("heat_capacity", capacity[b]))
        )
        table.add(beta[b], *log_z, *heat, float(at.ess))
    for outside in (2.5, 4.0, 10.0):
        try:
            there = observables.partition_function(pool, outside)
            z = float((there.log_z - problem.log_z_at(outside)) / there.log_z_err)
            print(f"beta = {outside:g}: log Z {float(there.log_z):.3f}({float(there.log_z_err):.3f}), z = {z:.2f}")
        except ValueError as refusal:
            print(f"beta = {outside:g}: {refusal}")


def spike_slab(particles: int) -> None:
    print(
        f"\nspike_slab(D), one ladder of {particles} particles each; barrier of P(E) at beta = 1 and at equal heights"
    )
    columns = {"D": "4d", "levels": "d", "barrier": ".2f", "error": "6.2f", "exact": "6.2f", "equal heights": ".2f"}
    columns |= {"error of it": ".2f", "exact there": ".2f", "over D": ".4f", "rms of log P - exact": ".2f"}
    table = harness.Table(columns)
    for dim in (50, 100, 200):
        problem = qp.targets.spike_slab(dim)
        pool = observables.Pool(qp.quench(problem, particles=particles, replicas=1, seed=0))
        found = observables.energy_distribution(pool, bins=400)
        fine = np.linspace(float(found.energy[0]), float(found.energy[-1]), 20001)
        curve = log_energy_density(problem, fine)
        tilts = np.linspace(-1, 1, 2001) * 60 / (fine[-1] - fine[0])
        equal = max(deepest_valley(curve - tilt * fine)[0] for tilt in tilts)
        exact = log_energy_density(problem, found.energy.values)
        seen = (found.bin_ess > 30).values & np.isfinite(exact) & np.isfinite(found.log_p.values)
        off = (found.log_p.values - exact)[seen]
        here = float(found.barrier), float(found.barrier_err), deepest_valley(curve)[0]
        there = float(found.barrier_equal_height), float(found.barrier_equal_height_err), equal
        table.add(dim, len(pool.replicas[0].level), *here, *there, there[0] / dim, float(np.std(off)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("particles", type=int, nargs="?", default=400)
    particles = parser.parse_args(arguments).particles
    gaussian(particles)
    spike_slab(particles)


if __name__ == "__main__":
    main()
