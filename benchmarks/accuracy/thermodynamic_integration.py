"""Z(beta) of the workflow against thermodynamic integration with canonical HMC, an independent truth.

    python -m benchmarks.accuracy.thermodynamic_integration out/partition_function.nc
    python -m benchmarks.accuracy.thermodynamic_integration out/zbeta_L40.nc --seed 1

The file is what `quenchphys zbeta --L 16 --set mu2=2.2866 --beta 0 1.2 121 --out out/partition_function.nc` writes, or
`quenchphys zbeta --L 40 --set mu2=2.2839 --beta 0 1.05 106 --out out/zbeta_L40.nc`.
log Z(b) - log Z(a) = - integral of <U>_beta from a to b, by Gauss-Legendre quadrature over chains at fixed beta.  Panels
from beta = 0 on start in the prior and stay in the disordered phase, those of the ordered phase start, and stay, in it.  At
beta the energy beta U is the same model with other couplings.

At L = 16 the phases mix too much for a link between them: the ordered phase is compared by a difference.  At L = 40 the
disordered phase is followed up to beta = 1, where the log odds of the phases are known from another method (multicanonical
HMC in q, `ladder_seeds.reference`), and the ordered one from there on, so that all four temperatures are absolute.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import lattices
import workflows
from benchmarks import harness
from benchmarks.accuracy.ladder_seeds import POINT, reference
from tests.support.canonical import hmc

CHAINS, TRAJECTORIES, BURN_IN = 96, 300, 80
NODES = 5
ORDERED_FIELD = 1.35
DISORDERED = {16: [0.0, 0.3, 0.6, 0.9], 40: [0.0, 0.3, 0.6, 0.8, 0.95, 1.0]}  # ends of the panels
ORDERED = {16: [1.05, 1.2], 40: [1.0, 1.05]}
COMPARED = {16: [0.3, 0.6, 0.9, 1.2], 40: [0.6, 0.95, 1.0, 1.05]}


class Value(NamedTuple):
    """log Z, or a difference of it, and its variance."""

    value: float
    variance: float

    def plus(self, other: Value) -> Value:
        return Value(self.value + other.value, self.variance + other.variance)


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


def integral(L: int, mu2: float, low: float, high: float, ordered: bool, seed: int) -> Value:
    """log Z(high) - log Z(low) within a phase."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    betas = low + 0.5 * (high - low) * (nodes + 1)
    found = np.array([mean_energy(L, mu2, float(b), ordered, seed + i) for i, b in enumerate(betas)])
    half = 0.5 * (high - low)
    return Value(-half * float(weights @ found[:, 0]), half**2 * float(np.sum((weights * found[:, 1]) ** 2)))


def followed(L: int, mu2: float, ends: Sequence[float], first: Value, ordered: bool, seed: int) -> dict[float, Value]:
    """log Z of a phase at the ends of successive panels, from the first of them on."""
    found = {ends[0]: first}
    for panel, (low, high) in enumerate(pairwise(ends)):
        found[high] = found[low].plus(integral(L, mu2, low, high, ordered, seed + 100 * panel))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("path", help="result of `quenchphys zbeta`")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    curve: xr.Dataset = workflows.load_result(chosen.path)
    parameters = json.loads(curve.attrs["parameters"])
    L, mu2 = parameters["shape"][0], parameters["mu2"]
    if L not in DISORDERED:
        parser.error(f"panels are known for L = {', '.join(map(str, DISORDERED))}, and the file is of L = {L}.")
    print(f"{curve.attrs.get('method')}, trusted {curve.attrs['trusted']} {curve.attrs['why']}")
    seed = 10_000 * chosen.seed
    truth = followed(L, mu2, DISORDERED[L], Value(0.0, 0.0), False, seed)
    start = ORDERED[L][0]
    absolute = start in truth
    first = Value(0.0, 0.0)
    if absolute:
        assert mu2 == POINT[L][0], f"the log odds are known at mu2 = {POINT[L][0]}"
        odds, odds_err = reference(L)["log_odds"] or (0.0, 0.0)
        disordered = truth[start]
        first = disordered.plus(Value(odds, odds_err**2))
        # Both phases together; the disordered one alone has the share 1/(1 + e^odds), and the odds have an error.
        share = 1 / (1 + np.exp(-odds))
        truth[start] = disordered.plus(Value(float(np.logaddexp(0.0, odds)), (share * odds_err) ** 2))
    ordered = followed(L, mu2, ORDERED[L], first, True, seed + 5000)
    for beta in COMPARED[L]:
        other = beta > start and not absolute  # a difference within the ordered phase
        value, variance = (ordered if beta > start else truth)[beta]
        here = curve.sel(beta=beta, method="nearest")
        found, error = float(here.log_z), float(here.log_z_err)
        name = f"log Z({beta})"
        if other:
            there = curve.sel(beta=start, method="nearest")
            # Both are measured by the same run: the error of the difference is not known from theirs, and is smaller.
            found, error = found - float(there.log_z), float(np.hypot(error, float(there.log_z_err)))
            name += f" - log Z({start})"
        z = (found - value) / np.hypot(error, np.sqrt(variance))
        both = f"workflow {found:10.4f} +- {error:.4f}   integration {value:10.4f} +- {np.sqrt(variance):.4f}"
        print(f"{name:<24} {both}   z {z:+.2f}", flush=True)


if __name__ == "__main__":
    main()
