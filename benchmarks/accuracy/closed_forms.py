"""Does one ladder give the closed forms?  gaussian(100) over beta, and the barrier of spike_slab(D) over D.

python benchmarks/accuracy/closed_forms.py [particles]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scipy import stats

import observables
import quenchphys as qp
from observables.peaks import deepest_valley


def gaussian(particles: int) -> None:
    """Z(beta) = (1 + beta/sigma^2)^(-D/2), C = D/2 (beta/sigma^2)^2 / (1 + beta/sigma^2)^2"""
    problem = qp.targets.gaussian(100)
    pool = observables.Pool(qp.quench(problem, particles=particles, replicas=1, seed=0))
    beta = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.25, 1.5])
    found = observables.thermodynamics(pool, beta)
    exact = np.array([problem.log_z_at(b) for b in beta])
    capacity = 50 * (4 * beta / (1 + 4 * beta)) ** 2
    print(f"gaussian(100), one ladder of {particles} particles, {len(pool.replicas[0].level)} levels")
    print(
        f"{'beta':>6} {'log Z':>9} {'error':>7} {'exact':>9} {'z':>6} {'C':>8} {'error':>7} {'exact':>8} {'z':>6} {'ess':>8}"
    )
    for b in range(len(beta)):
        at = found.isel(beta=b)
        z = (at.log_z - exact[b]) / at.log_z_err, (at.heat_capacity - capacity[b]) / at.heat_capacity_err
        print(
            f"{beta[b]:6.2f} {at.log_z:9.3f} {at.log_z_err:7.3f} {exact[b]:9.3f} {z[0]:6.2f} {at.heat_capacity:8.3f} "
            f"{at.heat_capacity_err:7.3f} {capacity[b]:8.3f} {z[1]:6.2f} {at.ess:8.0f}"
        )
    for outside in (2.5, 4.0, 10.0):
        try:
            there = observables.partition_function(pool, outside)
            z = float((there.log_z - problem.log_z_at(outside)) / there.log_z_err)
            print(f"beta = {outside:g}: log Z {float(there.log_z):.3f}({float(there.log_z_err):.3f}), z = {z:.2f}")
        except ValueError as refusal:
            print(f"beta = {outside:g}: {refusal}")


def exact_log_p(problem, energy: np.ndarray) -> np.ndarray:
    """log P(E) at beta = 1 up to a constant: chi^2_D(s) exp(-U(s)) / U'(s) at U(s) = E."""
    s = np.exp(np.linspace(np.log(1e-4), np.log(20 * problem.dim), 400_001))
    u = problem.radial_energy(s, np)
    log_density = stats.chi2.logpdf(s, problem.dim) - u - np.log(np.gradient(u, s))
    return np.interp(energy, u, log_density, left=-np.inf, right=-np.inf)


def spike_slab(particles: int) -> None:
    print(
        f"\nspike_slab(D), one ladder of {particles} particles each; barrier of P(E) at beta = 1 and at equal heights"
    )
    print(f"{'D':>4} {'levels':>6} {'barrier':>8} {'error':>6} {'exact':>7} {'equal':>8} {'error':>6} {'exact':>7} "
          f"{'equal/D':>8} {'rms of log P - exact':>21}")  # fmt: skip
    for dim in (50, 100, 200):
        problem = qp.targets.spike_slab(dim)
        pool = observables.Pool(qp.quench(problem, particles=particles, replicas=1, seed=0))
        found = observables.energy_distribution(pool, bins=400)
        fine = np.linspace(float(found.energy[0]), float(found.energy[-1]), 20001)
        curve = exact_log_p(problem, fine)
        tilts = np.linspace(-1, 1, 2001) * 60 / (fine[-1] - fine[0])
        equal = max(deepest_valley(curve - tilt * fine)[0] for tilt in tilts)
        exact = exact_log_p(problem, found.energy.values)
        seen = (found.bin_ess > 30).values & np.isfinite(exact) & np.isfinite(found.log_p.values)
        off = (found.log_p.values - exact)[seen]
        print(
            f"{dim:4d} {len(pool.replicas[0].level):6d} {float(found.barrier):8.2f} {float(found.barrier_err):6.2f} "
            f"{deepest_valley(curve)[0]:7.2f} {float(found.barrier_equal_height):8.2f} "
            f"{float(found.barrier_equal_height_err):6.2f} {equal:7.2f} {float(found.barrier_equal_height) / dim:8.4f} "
            f"{np.std(off):21.2f}",
            flush=True,
        )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    gaussian(count)
    spike_slab(count)
