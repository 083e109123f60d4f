"""How much log Bayes factors of networks scatter over splits of the data.

    python -m benchmarks.accuracy.split_spread out/uci/winered.csv --splits 8

log BF = log Z(tanh) - log Z(ReLU) of the 2 x 16 classifier, each by a tempered ladder of 4 x 40 particles, on one split
after the other; then their mean, its error and their standard deviation.  Every split is kept in out/split_spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import observables
import quenchphys as qp
from benchmarks import harness
from observables.numbers import number

FOLDER = harness.OUT / "split_spread"


def log_bayes_factor(data: Path, split: int) -> dict[str, Any]:
    """log BF of one split and its error, from its file if it is there."""

    def study() -> dict[str, Any]:
        found = []
        for activation in ("tanh", "relu"):
            model = qp.targets.network(data, (16, 16), activation, split=split)
            ladder = qp.temper(model, particles=40, replicas=4, target_ess=0.9, seed=split, progress=False)
            z = observables.partition_function(ladder, beta=1.0)
            found.append((float(z.log_z), float(z.log_z_err)))
        (tanh, tanh_err), (relu, relu_err) = found
        return {"log_bf": tanh - relu, "log_bf_err": float(np.hypot(tanh_err, relu_err))}

    return harness.kept(FOLDER / f"{data.stem}_{split}.json", study)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, default=8)
    chosen = parser.parse_args(arguments)
    rows = []
    for split in range(chosen.splits):
        rows.append(log_bayes_factor(chosen.data, split))
        print(f"split {split}: log BF = {number(rows[-1]['log_bf'], rows[-1]['log_bf_err'])}", flush=True)
    values = np.array([row["log_bf"] for row in rows])
    scatter = float(values.std(ddof=1))
    print(f"mean {number(values.mean(), scatter / np.sqrt(len(values)))}, standard deviation {scatter:.2f}")


if __name__ == "__main__":
    main()
