"""Are the error bars right?  z-scores of many exact synthetic ladders against the standard normal distribution.

    python benchmarks/zscores.py [ladders]

Every line is one quantity, from single ladders (errors from the genealogy) or from eight replicas (jackknife): mean and
variance of z = (estimate - exact)/error, and the p-value of a Kolmogorov-Smirnov test.  With eight blocks the
jackknifed z follows Student's t with seven degrees of freedom; it is mapped to the normal by its distribution function.
"""

import sys
from pathlib import Path

import numpy as np
from scipy import stats

sys.path[:0] = [
    str(Path(__file__).resolve().parents[1]),
    str(Path(__file__).resolve().parents[1] / "tests/observables"),
]

import synthetic  # noqa: E402

import observables  # noqa: E402

PROBLEM = synthetic.Chi2()
BETA = np.array([0.1, 1.0])
BINS = np.array([3.75, 4.0, 4.25, 4.5, 10.5, 11.0, 11.5, 12.0, 27.0, 28.0, 29.0, 30.0])
KINDS = {
    "quench, nu=2": {"softness": 2.0},
    "quench, nu=6, half of the particles stay": {"softness": 6.0, "refresh": 0.5},
    "temper": {"softness": None, "last": 20},
}


def zscores(ladder) -> dict[str, float]:
    """(estimate - exact)/error of everything with an exact value."""
    pool = observables.Pool(ladder)
    heat = observables.thermodynamics(pool, BETA)
    canonical = PROBLEM.canonical(BETA)
    z = {}
    for b, beta in enumerate(BETA):
        z[f"log Z({beta})"] = (heat.log_z[b] - PROBLEM.log_z(beta)) / heat.log_z_err[b]
        z[f"<E>({beta})"] = (heat.energy[b] - canonical.mean()[b]) / heat.energy_err[b]
        z[f"C({beta})"] = (heat.heat_capacity[b] - beta**2 * canonical.var()[b]) / heat.heat_capacity_err[b]
    moved = observables.order_parameters(pool, a=1.9)
    z["<s1>(1.0), a=1.9"] = (moved.s1 - PROBLEM.d1 / (1 + 2 * 1.9)) / moved.s1_err
    states = observables.density_of_states(pool, BINS)
    for i in (1, 5, 9):
        exact = PROBLEM.density.logpdf(states.energy[i])
        z[f"log g({states.energy.values[i]:g})"] = (states.log_g[i] - exact) / states.log_g_err[i]
    return {name: float(value) for name, value in z.items()}


def main(count: int) -> None:
    print(f"{count} ladders each; {'quantity':<18} {'mean z':>7} {'var z':>6} {'KS p':>6}")
    for kind, settings in KINDS.items():
        for replicas in (1, 8):
            scores: dict[str, list[float]] = {}
            for seed in range(count):
                made = synthetic.ladder(
                    PROBLEM, particles=300 if replicas == 1 else 150, replicas=replicas, seed=seed, **settings
                )
                for name, z in zscores(made).items():
                    scores.setdefault(name, []).append(z)
            print(
                f"{kind}; {'single ladders, genealogy' if replicas == 1 else f'{replicas} replicas, jackknife'}",
                flush=True,
            )
            for name, values in scores.items():
                z = np.array(values)
                if replicas > 1:
                    z = stats.norm.isf(stats.t.sf(z, replicas - 1))
                print(
                    f"    {name:<34} {z.mean():7.2f} {z.var():6.2f} {stats.kstest(z, 'norm').pvalue:6.3f}", flush=True
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
