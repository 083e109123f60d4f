"""The errors we state, calibrated: many seeds of small problems, z of every number against its exact value.

    python -m benchmarks.accuracy.calibrations gaussian spike_slab --seeds 200
    python -m benchmarks.accuracy.calibrations coexistence --seeds 200
    python -m benchmarks.accuracy.calibrations phases bridge --seeds 60
    python -m benchmarks.accuracy.calibrations draws_gaussian_2 draws_gaussian_10 draws_spike_slab draws_phi6 --seeds 200
    python -m benchmarks.accuracy.calibrations draws_gaussian_100 --seeds 50

Ladders: log Z, <U>, C, r^2, the share of the spike and log g at several energies.  Coexistence at L = 4: the point by equal
weight and by equal height, the barrier, log Z of both phases (against the mean of all seeds); the same at L = 16 from both
phases apart, and a bridge between two free fields, whose log Z and averages are exact.  Draws of `posterior`: means
of observables with the scatter of the eight chains as their error, which has seven degrees of freedom, and the ranks of
single draws in the exact distribution, which must be uniform.  Every seed is kept in out/calibrations/<name>.jsonl, and a
run that was stopped goes on from there.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

import lattices
import observables
import quenchphys as qp
import workflows
from benchmarks import harness
from lattices.phase_field import PhaseField
from workflows.calibration import exact_values

Array = np.ndarray
Row = dict[str, Any]  # numbers with their errors, name and name_err, and ranks

FOLDER = harness.OUT / "calibrations"
PARTICLES, REPLICAS = 200, 8
DRAWS = 100  # of each chain
RADII = [0.06, 0.2, 0.6, 2.0, 6.0]  # |x|^2 at which log g is compared
NARROW = 1.03  # ratio of the edges of such a bin to its middle: log g hardly bends within it


# Ladders of targets with exact answers.


def edges() -> Array:
    """|x|^2 at the edges of bins: narrow ones, and what lies between them."""
    return np.outer(RADII, [1 / NARROW, NARROW]).ravel()


def energies(target: Any) -> Array:
    return np.array([float(target.radial_energy(s, np)) for s in edges()])


def exact_log_g(target: Any) -> dict[str, float]:
    """log of the prior probability of a narrow bin, over its width in energy."""
    probability = np.diff(stats.chi2.cdf(edges(), target.dim))[::2]
    return {f"log_g_{i}": float(v) for i, v in enumerate(np.log(probability / np.diff(energies(target))[::2]))}


def ladder_of(target: Any) -> Callable[[int], Row]:
    def run(seed: int) -> Row:
        pool = observables.Pool(qp.quench(target, particles=PARTICLES, replicas=REPLICAS, seed=seed, progress=False))
        found = observables.thermodynamics(pool)[["log_z", "log_z_err", "heat_capacity", "heat_capacity_err"]]
        found = found.assign(observables.order_parameters(pool).data_vars)
        row = {str(name): float(found[name]) for name in found.data_vars if found[name].ndim == 0 and name != "ess"}
        found = observables.density_of_states(pool, bins=energies(target))
        for i, (value, error) in enumerate(zip(found.log_g.values[::2], found.log_g_err.values[::2], strict=True)):
            row |= {f"log_g_{i}": float(value), f"log_g_{i}_err": float(error)}
        return row

    return run


# Coexistence.


def coexistence(seed: int) -> Row:
    found = workflows.coexistence(L=4, bracket=(2.2, 2.5), sweeps=400, seed=seed, progress=False)
    names = ["mu2", "mu2_equal_height", "barrier", "latent_heat"]
    row = {name + end: float(found[name + end]) for name in names if name in found for end in ("", "_err")}
    for phase in found["phase"].values:
        row |= {f"log_z_{phase}{end}": float(found[f"log_z{end}"].sel(phase=phase)) for end in ("", "_err")}
    return row


def phases(seed: int) -> Row:
    found = workflows.coexistence(L=16, method="phases", error=4e-4, seed=seed, progress=False)
    row = {name + end: float(found[name + end]) for name in ("mu2", "latent_heat") for end in ("", "_err")}
    for phase in found["phase"].values:
        for name in ("log_z", "q"):
            row |= {f"{name}_{phase}{end}": float(found[f"{name}{end}"].sel(phase=phase)) for end in ("", "_err")}
    return row


_FIELD = lattices.scalar_field((6, 6), mu2=2.0, couplings={}, m0_sq=1.0, stiffness=1.0)
FREE = PhaseField(_FIELD, mean=0.5, mass_sq=0.8, shift=0.1, low=0.0, high=math.inf, signed=False, name="free")


def bridge(seed: int) -> Row:
    ladder = qp.bridge(FREE, sweeps=64, seed=seed, progress=False)
    found = observables.partition_function(ladder).assign(observables.order_parameters(ladder, mu2=2.2).data_vars)
    return {name + end: float(found[name + end]) for name in ("log_z", "q", "link") for end in ("", "_err")}


def exact_bridge() -> dict[str, float]:
    k = FREE.field.lattice.eigenvalues
    log_z = 0.5 * float(np.log((k + 1.0) / (k + 2.0)).sum()) - FREE.log_scale
    return {"log_z": log_z, "q": float(np.mean(1 / (k + 2.2))), "link": float(np.sum(k / (k + 2.2)))}


# Draws.

Distribution = Callable[[str, Array], Array]  # (observable, values) -> their ranks, between 0 and 1


def draws_of(problem: Any, names: Sequence[str], ranks: Distribution, particles: int = PARTICLES) -> Callable[[int], Row]:
    def run(seed: int) -> Row:
        ladder = qp.quench(problem, particles=particles, replicas=REPLICAS, seed=seed, progress=False)
        drawn = observables.posterior(ladder, draws=DRAWS, seed=seed)
        row: Row = {"ranks": {}}
        for name in names:
            mean, weight = drawn[name].values.astype(float).mean(axis=1), drawn["weight"].values
            without = (weight @ mean - weight * mean) / (1 - weight)  # of one chain
            error = math.sqrt(len(mean) - 1) * without.std()
            row |= {name: float(weight @ mean), f"{name}_err": float(error), f"{name}_dof": len(mean) - 1}
            row["ranks"][name] = ranks(name, drawn[name].values[:, 0].astype(float)).tolist()
        return row

    return run


def exact_ranks(target: Any) -> Distribution:
    """|x|^2 of the target is a mixture of chi^2 of its components, and U grows with it."""

    def ranks(name: str, values: Array) -> Array:
        s = values if name == "r2" else np.array([target._radius_squared(float(v)) for v in values])
        if target.name == "gaussian":
            return stats.chi2.cdf(s * (1 + target.sigma**-2), target.dim)
        spike, slab = (stats.chi2.cdf(s * (1 + width**-2), target.dim) for width in (target.spike, target.slab))
        return target.spike_share * spike + (1 - target.spike_share) * slab

    return ranks


@cache
def _reference(L: int, mu2: float) -> dict[str, tuple[Array, Array]]:
    """Values and cumulated weights of observables at coexistence, from long multicanonical chains."""
    model = lattices.phi6(L=L, mu2=mu2)
    ladder = qp.quench(model, particles=200, replicas=4, seed=77, progress=False)
    walk = workflows.polish(model, ladder, sweeps=6400, seed=77, progress=False)
    pool = observables.Pool(walk)
    table = {}
    for name in ("energy", "q"):
        value = np.concatenate([group.observable(name) for group, _ in pool.weighted])
        weight = np.concatenate([np.exp(base - group.energy) for group, base in pool.weighted])
        order = np.argsort(value)
        table[name] = value[order], np.cumsum(weight[order]) / weight.sum()
    return table


def phi6_ranks(name: str, values: Array) -> Array:
    value, rank = _reference(8, MU2)[name]
    return np.interp(values, value, rank)


def phi6_means() -> dict[str, float]:
    found = {}
    for name, (value, rank) in _reference(8, MU2).items():
        found[name] = float(np.sum(value * np.diff(rank, prepend=0.0)))
    return found


MU2 = 2.2957
GAUSSIAN = {dim: qp.targets.gaussian(dim) for dim in (2, 10, 100)}
SPIKE_SLAB = qp.targets.spike_slab(10)

# name: (run of a seed, exact values)
ROWS: dict[str, tuple[Callable[[int], Row], Callable[[], dict[str, float]]]] = {
    "gaussian": (ladder_of(GAUSSIAN[10]), lambda: exact_values(GAUSSIAN[10], 1.0) | exact_log_g(GAUSSIAN[10])),
    "spike_slab": (ladder_of(SPIKE_SLAB), lambda: exact_values(SPIKE_SLAB, 1.0) | exact_log_g(SPIKE_SLAB)),
    "coexistence": (coexistence, dict),
    "phases": (phases, dict),
    "bridge": (bridge, exact_bridge),
    **{
        f"draws_gaussian_{dim}": (
            draws_of(target, ["energy"], exact_ranks(target)),
            lambda target=target: {"energy": exact_values(target, 1.0)["energy"]},  # type: ignore[misc]
        )
        for dim, target in GAUSSIAN.items()
    },
    "draws_spike_slab": (
        draws_of(SPIKE_SLAB, ["r2", "spike"], lambda name, v: exact_ranks(SPIKE_SLAB)("r2", v) if name == "r2" else v),
        lambda: exact_values(SPIKE_SLAB, 1.0),
    ),
    "draws_phi6": (draws_of(lattices.phi6(L=8, mu2=MU2), ["energy", "q"], phi6_ranks, particles=100), phi6_means),
}


def kept(name: str) -> tuple[Callable[[int], xr.Dataset], dict[int, Row]]:
    """A run that reads its file where it can, and writes to it; and all rows so far."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.jsonl"
    rows: dict[int, Row] = {}
    if path.exists():
        rows = {row.pop("seed"): row for row in map(json.loads, path.read_text().splitlines())}

    def run(seed: int) -> xr.Dataset:
        if seed not in rows:
            rows[seed] = ROWS[name][0](seed)
            with path.open("a") as file:
                file.write(json.dumps({"seed": seed} | rows[seed]) + "\n")
        return xr.Dataset({key: value for key, value in rows[seed].items() if key != "ranks"})

    run.__name__ = name
    return run, rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("name", nargs="+", choices=ROWS)
    parser.add_argument("--seeds", type=int, default=200)
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for name in chosen.name:
        run, rows = kept(name)
        found = workflows.calibrate(run, exact=ROWS[name][1](), seeds=chosen.seeds, progress=False)
        print(f"{name}, {chosen.seeds} seeds")
        print(f"  {'quantity':24} {'reference':>11} {'mean - ref':>11} {'error':>9} {'mean z':>12} {'sd of z':>12}")
        for quantity in found["quantity"].values:
            row = found.sel(quantity=quantity)
            mean = f"{float(row.z_mean):+.2f}({row.z_mean_err * 100:.0f})" if row.exactly_known else "-"
            off = float(row.value.mean() - row.reference)
            print(
                f"  {quantity:24} {float(row.reference):11.5g} {off:+11.2g} {float(row.error.mean()):9.2g} {mean:>12} "
                f"{f'{float(row.z_sd):.3f}({row.z_sd_err * 1000:.0f})':>12}",
                flush=True,
            )
        for observable in next(iter(rows.values())).get("ranks", {}):
            ranks = np.concatenate([row["ranks"][observable] for row in rows.values()])
            if observable != "spike":
                p_value = stats.kstest(ranks, "uniform").pvalue
                print(f"  ranks of {observable}: {len(ranks)} draws, uniform with p = {p_value:.3f}")
        print(f"  {found.why or 'no error was found wrong'}", flush=True)


if __name__ == "__main__":
    main()
