"""Evidence of two Bayesian networks: tanh against ReLU on the heart data, with P(E) and predictions.

    python docs/scripts/bayesian_network.py --data FOLDER --out out

FOLDER has heart.csv: the processed Cleveland file of the UCI repository with a header row, the last column called label.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import observables
import quenchphys as qp

PRESENT = {0: "absent", 1: "present", 2: "present", 3: "present", 4: "present"}
SETTINGS = {"particles": 64, "replicas": 4, "target_ess": 0.9, "softness": 16}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)

    models, ladders = {}, {}
    for name in ("tanh", "relu"):
        model = qp.targets.network(chosen.data / "heart.csv", activation=name, classes=PRESENT, missing="drop")
        begun = time.process_time()
        ladder = qp.quench(model, seed=chosen.seed, **SETTINGS)
        models[name], ladders[name] = model, ladder
        found = observables.partition_function(ladder)
        predicted = observables.predictive_nll(ladder, model.test_log_likelihood)
        print(
            f"{name:5s} D = {model.dim}   log Z = {float(found.log_z):.2f} +- {float(found.log_z_err):.2f}   "
            f"test NLL = {float(predicted.nll):.4f} +- {float(predicted.nll_err):.4f}   "
            f"{ladder.attrs['gradients']:.2g} gradients, {time.process_time() - begun:.0f} s of processor   "
            f"{ladder.outcome.value}"
        )
    factor = observables.bayes_factor(ladders["tanh"], ladders["relu"])
    print(f"\nlog BF (tanh over ReLU) = {float(factor.log_bf):+.2f} +- {float(factor.log_bf_err):.2f}")

    with observables.plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), width_ratios=(1.6, 1))
        for number, (name, ladder) in enumerate(ladders.items()):
            found = observables.energy_distribution(ladder)
            left.plot(found.energy, found.log_p, color=f"C{number}", label=name)
            band = (found.log_p - found.log_p_err, found.log_p + found.log_p_err)
            left.fill_between(found.energy, *band, color=f"C{number}", alpha=0.3, linewidth=0)
            each = observables.diagnostics(ladder).log_z
            right.plot([number] * each.size, each, "o", color=f"C{number}", markersize=4, alpha=0.5)
            log_z, error = float(factor.log_z[number]), float(factor.log_z_err[number])
            right.errorbar([number + 0.15], [log_z], [error], fmt="s", color=f"C{number}", markersize=5)
        left.set(xlabel="energy $U$ (nats)", ylabel=r"$\log P(U)$")
        left.legend()
        right.set_xticks([0, 1], list(ladders))
        right.set(xlim=(-0.5, 1.6), ylabel=r"$\log Z$")
        figure.savefig(chosen.out / "bayesian_network.png", dpi=160)
    return 0 if all(ladder.outcome.trusted for ladder in ladders.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
