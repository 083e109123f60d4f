"""The analytic targets at the paper's settings: log Z, moments and every level's volume against exact values.

    python -m benchmarks.accuracy.analytic gaussian 1000 --replicas 8
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import observables
import quenchphys as qp
from benchmarks import harness

# Scatter of log Z over seeds in the paper's Table 1.
PAPER = {
    ("gaussian", 10): 0.04,
    ("gaussian", 100): 0.08,
    ("gaussian", 1000): 0.36,
    ("spike_slab", 10): 0.03,
    ("spike_slab", 50): 0.21,
    ("spike_slab", 200): 0.32,
}


def volumes(pool: observables.Pool, target, kind: str, most: int = 200) -> tuple[float, float, int]:
    """Largest deviation of the mean of log G from the exact value at the same energies, in standard errors.

    Replicas have levels of their own, so each measured log G is compared with the exact one at its own energy; levels
    with the same number are averaged over replicas.  Where replicas scatter by s, the logarithm of volumes that are
    unbiased, as `telescoped` ones are, is low by s^2/2.
    """
    count = min(len(replica.level) for replica in pool.replicas)
    picked = np.unique(np.linspace(0, count - 1, most).astype(int))
    energy, measured = (np.array([getattr(r, name)[picked] for r in pool.replicas]) for name in ("level", kind))
    exact = np.vectorize(lambda e: target.log_volume(float(e), pool.replicas[0].softness))(energy)
    deviation = measured - exact
    error = deviation.std(axis=0, ddof=1) / np.sqrt(len(deviation))
    worst = np.argmax(np.abs(deviation.mean(axis=0) / error))
    return float(deviation.mean(axis=0)[worst] / error[worst]), float(error[worst]), len(picked)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("target", choices=("gaussian", "spike_slab", "bimodal"))
    parser.add_argument("dim", type=int)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", choices=("quench", "temper"), default="quench")
    parser.add_argument("--softness", choices=("paper", "auto"), default="paper", help="auto: with the default kernel")
    parser.add_argument("--particles", type=int, default=1000)
    parser.add_argument("--checkpoint", help="folder of the checkpoint, from which an interrupted run goes on")
    parser.add_argument("--volumes", action="store_true", help="also compare log G at every level")
    chosen = parser.parse_args(arguments)
    target = getattr(qp.targets, chosen.target)(chosen.dim)
    timer = harness.Timer()
    common = {"replicas": chosen.replicas, "seed": chosen.seed, "particles": chosen.particles}
    common |= {"checkpoint": chosen.checkpoint}
    if chosen.method == "quench" and chosen.softness == "auto":
        ladder = qp.quench(target, softness="auto", **common)
    elif chosen.method == "quench":
        ladder = qp.quench(target, **qp.presets.PAPER | common)
    else:
        ladder = qp.temper(target, kernel=qp.MALA(), **common)
    print(ladder.report())
    single = [
        float(observables.partition_function(_replica(ladder, r)).log_z.squeeze()) for r in range(chosen.replicas)
    ]
    error = np.array(single) - target.log_z
    scatter, standard = error.std(ddof=1), error.std(ddof=1) / np.sqrt(len(error))
    print(
        f"{chosen.method} {chosen.target}({chosen.dim}): {chosen.replicas} replicas, {timer.wall:.0f} s, "
        f"{ladder.attrs['gradients'] + ladder.attrs.get('pilot_gradients', 0.0):.3g} gradients"
    )
    print(
        f"log Z - exact: mean {error.mean():+.4f} +- {standard:.4f} ({error.mean() / standard:+.2f} standard errors), "
        f"scatter of one ladder {scatter:.3f} (paper {PAPER.get((chosen.target, chosen.dim), float('nan')):.2f})"
    )
    pool = observables.Pool(ladder)
    pooled = observables.partition_function(pool)
    print(
        f"of all replicas together: {float(pooled.log_z.squeeze()) - target.log_z:+.4f} +- "
        f"{float(pooled.log_z_err.squeeze()):.4f}"
    )
    moments = observables.order_parameters(pool)
    for name, exact in target.moments().items():
        value, err = float(moments[name].squeeze()), float(moments[f"{name}_err"].squeeze())
        print(f"<{name}> = {value:.4f} +- {err:.4f}, exact {exact:.4f} ({(value - exact) / err:+.2f} standard errors)")
        each = [float(observables.order_parameters(_replica(ladder, r))[name].squeeze()) for r in range(chosen.replicas)]
        print(f"    of each replica: {' '.join(f'{one:.3f}' for one in each)}")
    if chosen.volumes:
        for kind, words in (("telescoped", "as measured"), ("log_volume", "self-consistent")):
            worst, err, picked = volumes(pool, target, kind)
            print(f"log G at {picked} levels, {words}: largest deviation {worst:+.2f} standard errors (of {err:.4f})")


def _replica(ladder: qp.Ladder, r: int) -> qp.Ladder:
    return qp.Ladder(ladder.tree.isel(replica=[r]))


if __name__ == "__main__":
    main()
