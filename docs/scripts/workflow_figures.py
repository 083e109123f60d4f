"""The runs behind the tutorials: each prints its table and draws docs/figures/<name>.png.

    python docs/scripts/workflow_figures.py coexistence_L8 coexistence_L16 scaling_phi6 scaling_phi4 partition_function

Results and ladders go to out/; what is there already is analysed again without sampling.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import numpy as np
import xarray as xr

import lattices
import workflows
from workflows.figures import save_figure
from workflows.words import summary

FIGURES = Path("docs/figures")

RUNS: dict[str, Callable[..., xr.Dataset]] = {
    "coexistence_L8": lambda **kept: workflows.coexistence(L=8, bracket=(2.25, 2.33), **kept),
    "coexistence_L16": lambda **kept: workflows.coexistence(L=16, bracket=(2.27, 2.30), **kept),
    "scaling_phi6": lambda **kept: workflows.finite_size_scaling(sizes=[8, 12, 16, 24], bracket=(2.25, 2.33), **kept),
    "scaling_phi4": lambda **kept: workflows.finite_size_scaling(
        sizes=[8, 12, 16, 24, 32], bracket=(-1.35, -1.20), model="phi4", lam=0.25, **kept
    ),
    "partition_function": lambda **kept: workflows.partition_function(
        lattices.phi6(L=16, mu2=2.2866), beta=np.linspace(0, 1.2, 121), **kept
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(RUNS), help=f"any of {', '.join(RUNS)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out"))
    chosen = parser.parse_args()
    chosen.out.mkdir(exist_ok=True)
    for name in chosen.names:
        begin = time.time()
        kept: dict[str, Any] = {"out": chosen.out / f"{name}.nc", "overwrite": True}
        result = RUNS[name](**kept)
        print(f"{summary(result)}\n{time.time() - begin:.0f} s\n", flush=True)
        save_figure(result, FIGURES / f"{name}.png")


if __name__ == "__main__":
    main()
