"""z-scores of many exact synthetic ladders against the standard normal distribution: a test of the error bars.

    python -m benchmarks.accuracy.zscores [ladders] [processes]

Every line is one quantity, from single ladders (errors from the genealogy) or from 2, 4 or 8 replicas (genealogy and
jackknife together): its typical error, mean and variance of z = (estimate - exact)/error, and the p-value of a
Kolmogorov-Smirnov test.  Errors allow for the few degrees of freedom that they rest on, so z should be standard normal for
any number of replicas.

Estimates are nonlinear in the weights, so their bias is of the order of half an error squared (for log Z and log g, in
nats; for the others, relative): PARTICLES is such that errors stay near 0.1, and a bias shifts z by less than 0.1.  Of
200 z the mean has a standard error of 0.07 and the variance one of 0.10.  The last line has the smallest of all k
p-values and 1 - (1 - p)^k, the chance of one as small among k if every error bar is right.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy import stats

import observables
import quenchphys as qp
from benchmarks import harness
from tests.support import synthetic

PROBLEM = synthetic.Chi2()
PARTICLES = 400
BLOCKS = (1, 2, 4, 8)
BETA = np.array([0.1, 1.0])
MOVED = 1.9  # coupling a, instead of 2
WHERE = (2.0, 1.0, 0.1)  # g is compared in bins around the mean energies at these beta, half a standard deviation wide
KINDS = {
    "quench, nu=2": {"softness": 2.0},
    "quench, nu=6, half of the particles stay": {"softness": 6.0, "refresh": 0.5},
    "temper": {"softness": None, "last": 20},
}


def bins() -> np.ndarray:
    """Edges around the energies of WHERE, ascending; every other bin is the space between."""
    edges = []
    for beta in WHERE:
        middle, width = PROBLEM.canonical(beta).mean(), PROBLEM.canonical(beta).std() / 2
        edges += [middle - width / 2, middle + width / 2]
    return np.array(edges)


def zscores(ladder: qp.Ladder) -> dict[str, tuple[float, float]]:
    """{quantity: ((estimate - exact)/error, error)}, the error of energy, C and s1 relative."""
    pool = observables.Pool(ladder)
    heat = observables.thermodynamics(pool, BETA)
    canonical = PROBLEM.canonical(BETA)
    energy, capacity = canonical.mean(), BETA**2 * canonical.var()
    rows = {}
    for b, beta in enumerate(BETA):
        at = heat.isel(beta=b)
        rows[f"log Z({beta})"] = at.log_z, PROBLEM.log_z(beta), at.log_z_err, 1.0
        rows[f"<E>({beta})"] = at.energy, energy[b], at.energy_err, energy[b]
        rows[f"C({beta})"] = at.heat_capacity, capacity[b], at.heat_capacity_err, capacity[b]
    s1 = PROBLEM.d1 / (1 + 2 * MOVED)
    moved = observables.order_parameters(pool, a=MOVED)
    rows[f"<s1>(1.0), a={MOVED}"] = moved.s1, s1, moved.s1_err, s1
    edges = bins()
    states = observables.density_of_states(pool, edges)
    for i in range(0, len(edges), 2):
        inside = np.linspace(edges[i], edges[i + 1], 2001)
        at = states.isel(energy=i)
        exact = PROBLEM.density.logpdf(0.5 * (inside[1:] + inside[:-1])).mean()
        rows[f"log g({inside.mean():.1f})"] = at.log_g, exact, at.log_g_err, 1.0
    return {name: (float((v - exact) / error), float(error / scale)) for name, (v, exact, error, scale) in rows.items()}


def one(settings: dict, replicas: int, seed: int) -> dict[str, tuple[float, float]]:
    made = synthetic.ladder(PROBLEM, particles=PARTICLES, replicas=replicas, seed=seed, ess=0.8, **settings)
    return zscores(made)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("ladders", type=int, nargs="?", default=200)
    parser.add_argument("processes", type=int, nargs="?", default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    count = chosen.ladders
    # The matrices are small: threads of several processes would wait for each other.  New processes read this.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"{count} ladders each, {PARTICLES} particles; {'error':>21} {'mean z':>7} {'var z':>6} {'KS p':>6}")
    p_values = []
    with ProcessPoolExecutor(chosen.processes, multiprocessing.get_context("spawn")) as workers:
        for k, (kind, settings) in enumerate(KINDS.items()):
            for replicas in BLOCKS:
                seeds = range(100_000 * (k + 1) + 10_000 * replicas, 100_000 * (k + 1) + 10_000 * replicas + count)
                found = list(workers.map(partial(one, settings, replicas), seeds, chunksize=5))
                how = "single ladders, genealogy" if replicas == 1 else f"{replicas} replicas, jackknife and genealogy"
                print(f"{kind}; {how}")
                for name in found[0]:
                    z, error = np.array([row[name] for row in found]).T
                    p = stats.kstest(z, "norm").pvalue
                    p_values.append(p)
                    typical = np.sqrt((error**2).mean())
                    print(f"    {name:<34} {typical:12.3f} {z.mean():7.2f} {z.var():6.2f} {p:6.3f}", flush=True)
    smallest, k = min(p_values), len(p_values)
    below = sum(p < 0.05 for p in p_values)
    print(f"{k} p-values: {below} below 0.05 ({0.05 * k:.1f} expected); the smallest is {smallest:.4f}, "
          f"and 1 - (1 - p)^{k} = {1 - (1 - smallest) ** k:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
