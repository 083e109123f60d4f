"""Critical slowing down of phi^4 with and without sign clusters: autocorrelation times over L, and their exponent z.

    python -m benchmarks.speed.critical_slowing --sizes 16 32 64 128          ten minutes on two cores

Canonical chains at the critical coupling, 128 of them, the same trajectories on the sites with and without clusters, in one
process, both from chains that clusters have brought to equilibrium.  tau is integrated, by the Gamma method, in sweeps;
tau ~ L^z.  The last columns are the time of a sweep of one site, and the time in which a lattice gives one independent value
of m^2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

import lattices
import quenchphys as qp
from benchmarks import harness
from quenchphys.autocorrelation import gamma_method

MU2, LAM = -1.27251, 0.25
QUANTITIES = ("m2", "energy")


def measured(L: int, clusters: bool, sweeps: int) -> dict[str, float]:
    """tau of m^2 and U with errors, and the processor time of a sweep of one site (ns)."""
    model = lattices.phi4(L=L, mu2=MU2, lam=LAM)
    begun = qp.canonical(model, sweeps=16, warm_up=192, progress=False)
    start = time.process_time()
    walk = qp.canonical(model, begun, sweeps=sweeps, clusters=clusters, seed=1, progress=False)
    spent = (time.process_time() - start) / walk.energy.size / L**2 * 1e9
    found = {"ns": spent}
    for name in QUANTITIES:
        series = np.moveaxis(walk.data[name].values, 1, 0)
        found[name], found[f"{name}_err"] = gamma_method(series)
    return found


def exponent(sizes: Sequence[int], tau: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """z of tau ~ L^z with its error, by least squares in logarithms."""
    x, weight = np.log(np.asarray(sizes, float)), (tau / error) ** 2
    centred = x - np.average(x, weights=weight)
    variance = 1 / (weight * centred**2).sum()
    return float(variance * (weight * centred * np.log(tau)).sum()), float(np.sqrt(variance))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32, 64, 128])
    parser.add_argument("--sweeps", type=int, default=960, help="of every chain with clusters")
    parser.add_argument("--alone", type=int, default=8, help="how many times as many without clusters")
    chosen = parser.parse_args(arguments)
    print(f"phi^4, lam = {LAM}, mu2 = {MU2}: integrated autocorrelation times in sweeps")
    print(f"  {'moves':<22}{'L':>4}{'tau(m^2)':>18}{'tau(U)':>18}{'ns/site':>10}{'us per m^2':>14}")
    for clusters, label in ((True, "clusters, trajectories"), (False, "trajectories alone")):
        rows = []
        for L in chosen.sizes:
            row = measured(L, clusters, chosen.sweeps * (1 if clusters else chosen.alone))
            rows.append(row)
            times = "".join(f"{row[name]:>10.2f} +- {row[f'{name}_err']:<4.2f}" for name in QUANTITIES)
            each = row["ns"] * row["m2"] * L**2 / 1e3
            print(f"  {label:<22}{L:>4}{times}{row['ns']:>10.1f}{each:>14.0f}", flush=True)
        if len(rows) > 1:
            for name in QUANTITIES:
                tau, error = (np.array([row[key] for row in rows]) for key in (name, f"{name}_err"))
                z, z_err = exponent(chosen.sizes, tau, error)
                print(f"  {label}: z({name}) = {z:.2f} +- {z_err:.2f}")


if __name__ == "__main__":
    main()
