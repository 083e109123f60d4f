"""Lattice models with their own settings against exact and reference values, in standard errors.

    python -m benchmarks.accuracy.lattice_validation free      free fields, mass 1 to mass m: exact log Z
    python -m benchmarks.accuracy.lattice_validation phi6      ordered share and <q>, L = 8 and 16
    python -m benchmarks.accuracy.lattice_validation phi4      <|m|> and Binder value, L = 32
    python -m benchmarks.accuracy.lattice_validation shapes    other couplings and dimensions of phi^6: outcomes

References for phi^6 and phi^4 come from canonical and multicanonical HMC and from the literature.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import lattices
import observables
import quenchphys as qp
from benchmarks import harness


def run(model, particles: int, replicas: int, seed: int = 0, **settings) -> qp.Ladder:
    timer = harness.Timer()
    ladder = qp.quench(model, particles=particles, replicas=replicas, seed=seed, **settings)
    levels = ladder.levels["level_count"].values
    print(
        f"{model.name} {'x'.join(map(str, model.shape))} mu2={model.mu2:g}: softness {ladder.softness:g}, "
        f"{levels.min()}-{levels.max()} levels, {ladder.outcome.value}, {timer.wall:.0f} s"
    )
    return ladder


def compare(name: str, value: float, error: float, reference: float, reference_error: float = 0.0) -> None:
    distance = (value - reference) / np.hypot(error, reference_error)
    print(
        f"    {name:14s} {value:10.4f} +- {error:.4f}  reference {reference:.4f}({reference_error:g})  {distance:+.1f} se"
    )


def free() -> None:
    for shape in ((8, 8), (16, 16), (32, 32), (8, 8, 8)):
        for mu2 in (0.5, 2.0):
            model = lattices.scalar_field(shape, mu2=mu2)
            found = observables.partition_function(run(model, 200, 8), beta=[1.0])
            exact = 0.5 * np.log((model.lattice.eigenvalues + 1.0) / (model.lattice.eigenvalues + mu2)).sum()
            compare("log Z", float(found.log_z[0]), float(found.log_z_err[0]), exact)


def phi6() -> None:
    for L, mu2, share, q in ((8, 2.2957, (0.4866, 0.001), (1.027, 0.002)), (16, 2.2866, (0.5, 0.0), None)):
        ladder = run(lattices.phi6(L=L, mu2=mu2), 500, 8)
        weights = observables.phase_weights(ladder, by="q", cut=1.25)
        compare("ordered share", float(weights.ordered_share), float(weights.ordered_share_err), *share)
        if q is not None:
            found = observables.order_parameters(ladder, beta=1.0)
            compare("<q>", float(found.q), float(found.q_err), *q)


def phi4() -> None:
    ladder = run(lattices.phi4(L=32, mu2=-0.7, lam=0.125), 400, 4)
    found = observables.order_parameters(ladder, beta=1.0)
    compare("<|m|>", float(found.abs_m), float(found.abs_m_err), 0.4346, 0.0064)
    compare("Binder", float(found.binder), float(found.binder_err), 0.524)


def shapes() -> None:
    """Each ladder must end past the ordered phase: what it holds below, by weight at beta = 1, must be small."""
    trials = [
        *(lattices.phi6(L=4, mu2=mu2) for mu2 in (0.0, 2.0, 2.33, 3.0)),
        *(lattices.phi6(L=8, mu2=mu2) for mu2 in (1.5, 2.25, 2.6)),
        lattices.phi6(L=8, mu2=1.9, stiffness=1.0),
        lattices.phi6(L=8, mu2=4.3, lam=-2.0, eta=0.4),
        lattices.phi6(L=8, mu2=0.4, lam=-0.5),
        lattices.phi6(L=4, mu2=2.4, dim=3),
        lattices.phi6(L=32, mu2=2.0, dim=1),
    ]
    for model in trials:
        ladder = run(model, 400, 4)
        found = observables.order_parameters(ladder, beta=1.0)
        log_z = observables.partition_function(ladder, beta=[1.0])
        energy = observables.thermodynamics(ladder, beta=[1.0])
        u, spread = float(energy.energy[0]), float(np.sqrt(energy.heat_capacity[0]))
        lowest = float(ladder.particles["energy"].min())
        print(
            f"    stop {model.stop}  log Z {float(log_z.log_z[0]):.3f}({float(log_z.log_z_err[0]):.3f})  "
            f"q {float(found.q):.3f}({float(found.q_err):.3f})  U {u:.1f} spread {spread:.1f}, lowest {lowest:.1f}"
        )


TABLES = {"free": free, "phi6": phi6, "phi4": phi4, "shapes": shapes}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("tables", nargs="*", help=f"any of {', '.join(TABLES)}; default: all")
    for table in parser.parse_args(arguments).tables or TABLES:
        TABLES[table]()


if __name__ == "__main__":
    main()
