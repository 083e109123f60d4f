"""z-scores of nested ladders of many seeds: a test of errors from order statistics and shells.

    python -m benchmarks.accuracy.nested_zscores [--seeds 32] [--dim 10] [--particles 200] [--replicas 1 4]

Every line is one quantity of ladders with one or several replicas: its typical error, mean and variance of
z = (estimate - exact)/error, the largest |z| and the p-value of a Kolmogorov-Smirnov test.  Of n z the mean has a standard
error of 1/sqrt(n) and the variance one of sqrt(2/n).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

import observables
import quenchphys as qp
from benchmarks import harness

BETAS = (0.3, 1.0)


def zscores(target: qp.Problem, ladder: qp.Ladder) -> dict[str, tuple[float, float]]:
    """{quantity: ((estimate - exact)/error, error)}."""
    pool = observables.Pool(ladder)
    found = observables.partition_function(pool, beta=BETAS)
    rows = {}
    for b, beta in enumerate(BETAS):
        at = found.isel(beta=b)
        rows[f"log Z({beta:g})"] = at.log_z, target.log_z_at(beta), at.log_z_err
    means = observables.order_parameters(pool)
    for name, exact in target.moments().items():
        rows[f"<{name}>"] = means[name], exact, means[f"{name}_err"]
    return {name: (float((value - exact) / error), float(error)) for name, (value, exact, error) in rows.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--particles", type=int, default=200)
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--target", choices=("gaussian", "spike_slab", "bimodal"), default="gaussian")
    chosen = parser.parse_args(arguments)
    target = getattr(qp.targets, chosen.target)(chosen.dim)
    print(f"{chosen.target}({chosen.dim}), {chosen.particles} live points, {chosen.seeds} seeds")
    print(f"    {'':<26}{'error':>10} {'mean z':>8} {'var z':>7} {'max |z|':>8} {'KS p':>6}")
    for replicas in chosen.replicas:
        found, evaluations = [], []
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            ladder = qp.nested(target, particles=chosen.particles, replicas=replicas, seed=seed)
            found.append(zscores(target, ladder))
            evaluations.append(ladder.attrs["evaluations"])
        print(f"{replicas} replicas, {np.mean(evaluations):.3g} energies")
        for name in found[0]:
            z, error = np.array([row[name] for row in found]).T
            p = stats.kstest(z, "norm").pvalue
            size = np.sqrt((error**2).mean())
            print(f"    {name:<26}{size:10.4f} {z.mean():8.2f} {z.var():7.2f} {np.abs(z).max():8.2f} {p:6.3f}", flush=True)


if __name__ == "__main__":
    main()
