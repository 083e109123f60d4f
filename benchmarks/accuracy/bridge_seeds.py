"""Coexistence point of phi^6 from its two phases apart: several seeds against chains that cross, to test the error bars.

    python -m benchmarks.accuracy.bridge_seeds 40 --seeds 8

Each seed runs one bridge to either phase at the reference point; the answer is compared with the reference, which comes from
chains that cross between the phases.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from scipy import stats

import lattices
import observables
import quenchphys as qp
from benchmarks import harness

# Equal weight by chains that cross, and its error: docs/validation.md; beyond L = 64 the finite-size law through them.
REFERENCE = {16: (2.28656, 5e-5), 24: (2.28486, 5e-5), 40: (2.28396, 3e-5), 64: (2.28362, 4e-5)}
LAW = (2.28345, 4e-5, 1.709)  # mu2_inf, its error, and dq: mu2*(L) = mu2_inf + 2 ln 2 / (V dq)


def reference(size: int) -> tuple[float, float]:
    if size in REFERENCE:
        return REFERENCE[size]
    limit, error, jump = LAW
    return limit + 2 * np.log(2) / (size**2 * jump), error


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("size", type=int)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--sweeps", type=int, default=128, help="of the disordered phase; the ordered one has four times as many"
    )
    args = parser.parse_args(arguments)
    known, known_err = reference(args.size)
    phases = lattices.phase_fields(lattices.phi6(L=args.size, mu2=round(known, 5)))
    found = []
    print(f"{'seed':>4} {'mu2':>10} {'error':>8} {'z':>6}   log Z disordered  ordered (run)   processor   site-gradients")
    for seed in range(args.first, args.first + args.seeds):
        begun = time.process_time()
        ladders = [
            qp.bridge(phases[name], sweeps=sweeps, seed=seed)
            for name, sweeps in (("disordered", args.sweeps), ("ordered", 4 * args.sweeps))
        ]
        point = observables.separate_phases(*ladders)
        value, error = float(point.mu2), float(point.mu2_err)
        found.append((value, error))
        z = (value - known) / np.hypot(error, known_err)
        logs = [observables.partition_function(ladder) for ladder in ladders]
        text = "  ".join(
            f"{float(log.log_z) + ladder.parameters['log_scale']:.3f}({1e3 * float(log.log_z_err):.0f})"
            for log, ladder in zip(logs, ladders, strict=True)
        )
        cost = sum(ladder.attrs["gradients"] for ladder in ladders) * args.size**2
        trust = "" if all(ladder.outcome.trusted for ladder in ladders) else "  NOT TRUSTED"
        spent = time.process_time() - begun
        print(f"{seed:>4} {value:10.5f} {error:8.5f} {z:6.2f}   {text}   {spent:6.1f} s   {cost:.2e}{trust}", flush=True)
    values, errors = np.array(found).T
    mean, error = np.average(values, weights=errors**-2), np.sum(errors**-2.0) ** -0.5
    chi2 = float(np.sum(((values - mean) / errors) ** 2))
    print(f"mean {mean:.6f}({1e6 * error:.0f}e-6), reference {known:.5f}({1e5 * known_err:.0f}e-5)")
    if len(values) > 1:
        p = stats.chi2.sf(chi2, len(values) - 1)
        print(f"scatter of the seeds about their mean: chi^2 {chi2:.1f} for {len(values) - 1}, p = {p:.2g}")


if __name__ == "__main__":
    main()
