"""Critical points by finite-size scaling, beside what is known of them.

    python -m benchmarks.accuracy.critical_points plane dense             L = 8 to 128, five and nine sizes
    python -m benchmarks.accuracy.critical_points small strong --seeds 20 L = 8 to 32 at lam = 1/4 and 1, many seeds
    python -m benchmarks.accuracy.critical_points cube                    three dimensions, L = 6 to 24
    python -m benchmarks.accuracy.critical_points continuum               lambda = 1 to 1/16, and lambda -> 0
    python -m benchmarks.accuracy.critical_points plane small --table     what is kept

Every run is `workflows.finite_size_scaling` with the model phi4, kept with its chains in out/critical_points.  The same
chains are analysed with all critical ratios fitted, and with universality="ising", by which they are known.  Known are
exponents and universal ratios (the exact ones in two dimensions; of the ratios Salas and Sokal 2000; in three dimensions
Kos et al. 2016 and Hasenbusch 2010), and critical couplings: in two dimensions -1.27251 for lam = 1/4 (Schaich and Loinaz
2009), in three the improved model of Hasenbusch (2010), lambda = 1.1 and beta = 0.3750966, which in our letters is
mu2 = 2 (1 - 2 lambda)/beta - 6 and lam = lambda/beta^2.

The continuum limit of phi^4 in the plane, with lambda = 4 lam: the renormalised mass is mu^2 = mu2_c + 3 lambda A(mu^2), A
the mean of 1/(khat^2 + mu^2) over all momenta of the infinite lattice, and f = lambda/mu^2 goes to 11.11 as lambda goes to
zero.  Lattice artifacts are of the order a^2 mu^2 = mu^2 and its powers, up to logarithms: f = f_0 + lambda (a + b log
lambda), with a term of the next order or none, with or without the largest lambda, averaged as in Jay and Neil 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import ellipk

import workflows
from benchmarks import harness
from workflows.scaling.fits import least_squares
from workflows.tricritical import laws

Array = np.ndarray

FOLDER = harness.OUT / "critical_points"
BETA, IMPROVED = 0.3750966, 1.1
PLANE = {
    "mu2_critical": (-1.27251, 1e-5),
    "binder_critical": (0.61069, 1e-5),
    "xi_over_L_critical": (0.905049, 1e-6),
    "nu": (1.0, 0.0),
    "gamma_over_nu": (1.75, 0.0),
}
UNIVERSAL = {name: PLANE[name] for name in PLANE if name != "mu2_critical"}  # whatever the coupling
CUBE = {
    "mu2_critical": (2 * (1 - 2 * IMPROVED) / BETA - 6, 1.4e-5),
    "binder_critical": (1 - 1.6036 / 3, 4e-5),
    "xi_over_L_critical": (0.6431, 1e-4),
    "nu": (0.62997, 1e-5),
    "gamma_over_nu": (2 - 0.03630, 5e-6),
}
CONTINUUM = 11.11


class Case(NamedTuple):
    """A study: what `finite_size_scaling` is called with, and what is known."""

    sizes: tuple[int, ...]
    bracket: tuple[float, float]
    couplings: dict[str, Any]
    known: dict[str, tuple[float, float]]
    sweeps: int = 1600


CASES = {
    "plane": Case((8, 16, 32, 64, 128), (-1.35, -1.20), {"lam": 0.25}, PLANE, 4800),
    "dense": Case((8, 12, 16, 24, 32, 48, 64, 96, 128), (-1.35, -1.20), {"lam": 0.25}, PLANE, 4800),
    "small": Case((8, 12, 16, 24, 32), (-1.35, -1.20), {"lam": 0.25}, PLANE, 400),
    "seven": Case((8, 12, 16, 20, 24, 28, 32), (-1.35, -1.20), {"lam": 0.25}, PLANE, 400),
    "strong": Case((8, 12, 16, 24, 32), (-3.85, -3.45), {"lam": 1.0}, UNIVERSAL, 400),
    "cube": Case((6, 8, 10, 12, 16, 24), (-12.7, -12.1), {"lam": IMPROVED / BETA**2, "dim": 3}, CUBE),
    # Towards the continuum: sizes grow as 1/sqrt(lam), so that every row has the same range of L/xi.
    "half": Case((12, 16, 24, 32, 48), (-0.77, -0.68), {"lam": 0.125}, {}),
    "quarter": Case((16, 24, 32, 48, 64), (-0.44, -0.375), {"lam": 0.0625}, {}),
    "eighth": Case((24, 32, 48, 64, 96), (-0.245, -0.205), {"lam": 0.03125}, {}),
    "sixteenth": Case((24, 32, 48, 64, 96), (-0.135, -0.112), {"lam": 0.015625}, {}),
}
ANALYSES = {"ratios fitted": None, "ratios known": "ising"}
STEPS = ("plane", "half", "quarter", "eighth", "sixteenth")  # towards the continuum


def measure(name: str, seed: int) -> dict[str, Any]:
    """One study by both analyses, from its file if it is there."""
    path = FOLDER / f"{name}_seed{seed}.json"
    case = CASES[name]

    def study(universality: str | None) -> xr.Dataset:
        return workflows.finite_size_scaling(
            case.sizes,
            case.bracket,
            model="phi4",
            sweeps=case.sweeps,
            seed=seed,
            out=path.with_suffix(".nc"),
            overwrite=True,  # the result, not the chains, which are used again
            progress=False,
            universality=universality,
            **case.couplings,
        )

    def both() -> dict[str, Any]:
        row: dict[str, Any] = {"case": name, "seed": seed}
        for analysis, universality in ANALYSES.items():
            found = study(universality)
            quantities = [*PLANE] if universality is None else ["mu2_critical"]  # exponents are the same
            values = {q + end: float(found[q + end]) for q in quantities for end in ("", "_err")}
            row[analysis] = {"trusted": int(found.trusted), "why": found.why} | values
        return row

    return harness.kept(path, both)


def z_of(row: dict[str, Any], analysis: str, quantity: str) -> float:
    """The distance from what is known, in errors; NaN where nothing is."""
    value, error = CASES[row["case"]].known.get(quantity, (np.nan, np.nan))
    return float((row[analysis][quantity] - value) / np.hypot(row[analysis][f"{quantity}_err"], error))


def show(row: dict[str, Any]) -> None:
    """Every number of a study beside what is known."""
    print(f"{row['case']}, seed {row['seed']}: {row['seconds']:.0f} s, {row['cpu_seconds']:.0f} s of processor")
    known = CASES[row["case"]].known
    for analysis in ANALYSES:
        found = row[analysis]
        print(f"  {analysis}, {'trusted' if found['trusted'] else 'not trusted: ' + found['why']}")
        for quantity in PLANE:
            if quantity not in found:
                continue
            line = f"    {quantity:20} {found[quantity]:10.6f} +- {found[quantity + '_err']:.6f}"
            if quantity in known:
                line += f"   known {known[quantity][0]:10.6f}   z {z_of(row, analysis, quantity):+.2f}"
            print(line, flush=True)


def summary(rows: list[dict[str, Any]]) -> None:
    """z over the seeds of every case with several of them; what is not known is compared with the mean by known ratios."""
    for name in dict.fromkeys(row["case"] for row in rows):
        some = [row for row in rows if row["case"] == name]
        if len(some) < 2:
            continue
        for analysis in ANALYSES:
            print(f"{name}, {analysis}, {len(some)} seeds, {sum(row[analysis]['trusted'] for row in some)} trusted")
            for quantity in PLANE:
                if quantity not in some[0][analysis]:
                    continue
                z = np.array([z_of(row, analysis, quantity) for row in some])
                if quantity not in CASES[name].known:
                    mean = np.mean([row["ratios known"][quantity] for row in some])
                    z = np.array([(row[analysis][quantity] - mean) / row[analysis][f"{quantity}_err"] for row in some])
                error = np.mean([row[analysis][f"{quantity}_err"] for row in some])
                print(
                    f"  {quantity:20} mean z {z.mean():+.2f}, sd {z.std(ddof=1):.2f}, largest {np.abs(z).max():.2f}, "
                    f"mean error {error:.5f}"
                )


# The continuum limit.


def tadpole(mass_sq: float) -> float:
    """A = mean of 1/(khat^2 + mu^2) over the infinite square lattice = 2 K(4/z)/(pi z), z = 4 + mu^2, K elliptic."""
    z = 4 + mass_sq
    return float(2 / (np.pi * z) * ellipk((4 / z) ** 2))


def renormalised(mu2: float, coupling: float) -> float:
    """mu^2 = mu2 + 3 lambda A(mu^2)."""
    return float(brentq(lambda mass_sq: mass_sq - mu2 - 3 * coupling * tadpole(mass_sq), 1e-6, 10.0))


# Artifacts of a lattice of spacing a = 1 are of the order mu^2 = lambda/f and its powers, with logarithms.
LEADING = (lambda x: np.ones_like(x), lambda x: x, lambda x: x * np.log(x))
NEXT = (None, lambda x: x**2, lambda x: x**2 * np.log(x), lambda x: x**2 * np.log(x) ** 2)


def limit(coupling: Array, f: Array, error: Array) -> tuple[float, float, list[str]]:
    """f for lambda -> 0: the average over laws with one term of the next order or none, and without the largest lambda."""
    fits, lines = [], []
    order = np.argsort(-coupling)
    for left_out in range(len(f) - len(LEADING)):
        used = order[left_out:]
        for term in NEXT:
            terms = [*LEADING, *([] if term is None else [term])]
            if len(used) <= len(terms):
                continue
            law = least_squares(np.column_stack([one(coupling[used]) for one in terms]), f[used], error[used])
            fits.append(laws.Fit(law.value[0], law.error[0], law.chi2, law.dof, left_out, len(terms)))
            lines.append(
                f"{len(terms)} terms, lambda <= {coupling[used].max():.4g}: {law.value[0]:.3f} +- {law.error[0]:.3f}, chi^2 "
                f"{law.chi2:.1f} for {law.dof}"
            )
    found = laws.averaged(fits)
    return found.value, found.error, lines


def continuum(rows: list[dict[str, Any]]) -> None:
    """f = lambda/mu^2 at every lambda, and for lambda -> 0."""
    coupling = np.array([4 * CASES[row["case"]].couplings["lam"] for row in rows])
    f, error = np.zeros((2, len(rows)))
    for i, row in enumerate(rows):
        found = row["ratios known"]
        mu2, err = found["mu2_critical"], found["mu2_critical_err"]
        f[i] = coupling[i] / renormalised(mu2, coupling[i])
        sides = [coupling[i] / renormalised(mu2 + side * err, coupling[i]) for side in (-1, 1)]
        error[i] = 0.5 * abs(sides[1] - sides[0])
        verdict = "" if found["trusted"] else ", not trusted"
        print(f"  lambda = {coupling[i]:.4g}: mu2_c = {mu2:.6f} +- {err:.6f}, f = {f[i]:.4f} +- {error[i]:.4f}{verdict}")
    value, err, lines = limit(coupling, f, error)
    print("\n".join(f"  {line}" for line in lines))
    z = (value - CONTINUUM) / err
    print(f"  lambda -> 0: f = {value:.3f} +- {err:.3f} ({err / value:.1%}); known {CONTINUUM}, z {z:+.2f}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("cases", nargs="+", choices=[*CASES, "continuum"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="run nothing; show what is kept")
    chosen = parser.parse_args(arguments)
    for name in chosen.cases:
        if name == "continuum":
            continuum([measure(step, chosen.first) for step in STEPS])
            continue
        rows = []
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            if chosen.table and not (FOLDER / f"{name}_seed{seed}.json").exists():
                continue
            rows.append(measure(name, seed))
            show(rows[-1])
        summary(rows)


if __name__ == "__main__":
    main()
