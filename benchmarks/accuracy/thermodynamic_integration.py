"""Z(beta) from one ladder against thermodynamic integration with canonical HMC, an independent truth.

    python -m benchmarks.accuracy.thermodynamic_integration out/partition_function.nc

The file is what `quenchphys zbeta --L 16 --set mu2=2.2866 --beta 0 1.2 121 --out out/partition_function.nc` writes.
log Z(b) - log Z(a) = - integral of <U>_beta from a to b, by Gauss-Legendre quadrature over chains at fixed beta.  Panels
from beta = 0 to 0.9 start in the prior and stay in the disordered phase; the one from 1.05 to 1.2 starts, and stays, in the
ordered phase.  At beta the energy beta U is the same model with other couplings.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import lattices
import workflows
from benchmarks import harness
from tests.support.canonical import hmc

PANELS = [(0.0, 0.3), (0.3, 0.6), (0.6, 0.9), (1.05, 1.2)]
NODES, CHAINS, TRAJECTORIES, BURN_IN = 5, 96, 300, 80
ORDERED_FIELD = 1.35


def mean_energy(L: int, mu2: float, beta: float, ordered: bool, seed: int) -> tuple[float, float]:
    """<U>_beta and its error, from independent chains."""
    model = lattices.phi6(L=L, mu2=1 + beta * (mu2 - 1), lam=-beta, eta=0.2 * beta)
    key = jax.random.key(seed)
    x = jnp.full((CHAINS, L, L), ORDERED_FIELD) if ordered else model.sample_prior(key, CHAINS)
    _, recorded, _ = hmc(model, jax.random.fold_in(key, 1), x, trajectories=TRAJECTORIES)
    q = np.asarray(recorded["q"])[BURN_IN:]
    assert ((q > 1.25) == ordered).mean() > 0.999, "a chain left its phase"
    energy = np.asarray(recorded["energy"], float)[BURN_IN:].mean(axis=0) / beta
    return float(energy.mean()), float(energy.std(ddof=1) / np.sqrt(CHAINS))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("path", help="result of `quenchphys zbeta`")
    found: xr.Dataset = workflows.load_result(parser.parse_args(arguments).path)
    parameters = json.loads(found.attrs["request"])["parameters"]
    L, mu2 = parameters["shape"][0], parameters["mu2"]
    total, variance = 0.0, 0.0
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    for panel, (low, high) in enumerate(PANELS):
        ordered = low > 1
        betas = low + 0.5 * (high - low) * (nodes + 1)
        energies = [mean_energy(L, mu2, float(b), ordered, 100 * panel + i) for i, b in enumerate(betas)]
        part = -0.5 * (high - low) * sum(w * e for w, (e, _) in zip(weights, energies, strict=True))
        error = 0.5 * (high - low) * np.sqrt(sum((w * e) ** 2 for w, (_, e) in zip(weights, energies, strict=True)))
        if ordered:
            value, value_err, name = part, error, f"log Z({high}) - log Z({low})"
            ladder = float(found.log_z.sel(beta=high, method="nearest") - found.log_z.sel(beta=low, method="nearest"))
            # Both are measured by the same ladder: the error of the difference is not known from theirs, and is smaller.
            ladder_err = float(np.hypot(*found.log_z_err.sel(beta=[low, high], method="nearest").values))
        else:
            total, variance = total + part, variance + error**2
            value, value_err, name = total, np.sqrt(variance), f"log Z({high})"
            ladder = float(found.log_z.sel(beta=high, method="nearest"))
            ladder_err = float(found.log_z_err.sel(beta=high, method="nearest"))
        z = (ladder - value) / np.hypot(ladder_err, value_err)
        both = f"one ladder {ladder:9.4f} +- {ladder_err:.4f}   integration {value:9.4f} +- {value_err:.4f}"
        print(f"{name:<24} {both}   z {z:+.2f}", flush=True)


if __name__ == "__main__":
    main()
