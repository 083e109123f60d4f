"""Is the error bar of a coexistence point honest?  The same point from several seeds, against a reference.

    python benchmarks/coexistence_seeds.py 8 --seeds 8

References are multicanonical HMC in q with exact reweighting: 2.2948(2) at L = 8, 2.28658(6) at L = 16, 2.2846(2) at L = 24.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import stats

import workflows

REFERENCE = {8: (2.2948, 2e-4), 16: (2.28658, 6e-5), 24: (2.2846, 2e-4)}
BRACKET = {8: (2.25, 2.33), 16: (2.27, 2.30), 24: (2.27, 2.30)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("L", type=int, choices=sorted(REFERENCE))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    chosen = parser.parse_args()
    exact, exact_err = REFERENCE[chosen.L]
    z, values, errors = [], [], []
    # Seeds of a study are its own and the next few, for pilots: a stride keeps the studies apart.
    for seed in range(chosen.first, chosen.first + 100 * chosen.seeds, 100):
        begin = time.time()
        found = workflows.coexistence(L=chosen.L, bracket=BRACKET[chosen.L], seed=seed)
        value, error = float(found.mu2), float(found.mu2_err)
        values.append(value)
        errors.append(error)
        z.append((value - exact) / np.hypot(error, exact_err))
        print(
            f"L = {chosen.L}, seed {seed:4d}: mu2 = {value:.5f} +- {error:.5f} (z {z[-1]:+.2f}), equal height "
            f"{float(found.mu2_equal_height):.5f}, barrier {float(found.barrier):.2f} +- {float(found.barrier_err):.2f}, "
            f"trusted {found.trusted}, {time.time() - begin:.0f} s",
            flush=True,
        )
    mean, spread = np.mean(values), np.std(values, ddof=1)
    chi2 = float(np.sum(np.square(z)))
    print(
        f"mean {mean:.5f} +- {spread / np.sqrt(len(z)):.5f} (reference {exact} +- {exact_err}); spread {spread:.5f}, mean "
        f"stated error {np.mean(errors):.5f}; sum of z^2 {chi2:.1f} for {len(z)} (p = {stats.chi2.sf(chi2, len(z)):.2f})"
    )


if __name__ == "__main__":
    main()
