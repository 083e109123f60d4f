"""The error bar of a coexistence point, tested: the same point from several seeds, against a reference.

    python -m benchmarks.accuracy.coexistence_seeds 8 --seeds 8
    python -m benchmarks.accuracy.coexistence_seeds 40 --seeds 4                     about ten minutes
    python -m benchmarks.accuracy.coexistence_seeds 40 --seeds 12 --sweeps 176       chains that hardly cross

References are multicanonical HMC in q with exact reweighting (`multicanonical.py`): 2.2948(2) at L = 8, 2.28658(6) at
L = 16, 2.2846(2) at L = 24 and 2.28393(4) at L = 40.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from benchmarks import harness
from benchmarks.speed.growth import measure

REFERENCE = {8: (2.2948, 2e-4), 16: (2.28658, 6e-5), 24: (2.2846, 2e-4), 40: (2.28393, 4e-5)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("L", type=int, choices=sorted(REFERENCE))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    for name in ("particles", "sweeps"):
        parser.add_argument(f"--{name}", type=int, help="other than the default")
    chosen = parser.parse_args(arguments)
    settings = {name: getattr(chosen, name) for name in ("particles", "sweeps") if getattr(chosen, name) is not None}
    exact, exact_err = REFERENCE[chosen.L]
    rows, z = [], []
    out = f"coexistence_seeds_{'_'.join(map(str, (chosen.L, *settings.values())))}"
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        row = measure(chosen.L, seed, **settings)
        rows.append(row)
        z.append((row["mu2"] - exact) / np.hypot(row["mu2_err"], exact_err))
        print(
            f"L = {chosen.L}, seed {seed:4d}: mu2 = {row['mu2']:.5f} +- {row['mu2_err']:.5f} (z {z[-1]:+.2f}), log Z of the "
            f"disordered phase {row['log_z'][0]:.3f} +- {row['log_z_err'][0]:.3f}, barrier {row['barrier']:.2f}, trusted "
            f"{row['trusted']}, {row['crossings']} crossings, {row['site_gradients']:.3g} site-gradients, "
            f"{row['seconds']:.0f} s, {row['cpu_seconds']:.0f} s of processor",
            flush=True,
        )
        harness.save(out, rows)
    values, errors = (np.array([row[name] for row in rows]) for name in ("mu2", "mu2_err"))
    spread, chi2 = np.std(values, ddof=1), float(np.sum(np.square(z)))
    print(
        f"mean {values.mean():.5f} +- {spread / np.sqrt(len(z)):.5f} (reference {exact} +- {exact_err}); "
        f"spread {spread:.5f}, mean stated error {errors.mean():.5f}; "
        f"sum of z^2 {chi2:.1f} for {len(z)} (p = {stats.chi2.sf(chi2, len(z)):.2f})"
    )


if __name__ == "__main__":
    main()
