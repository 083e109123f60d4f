"""Figures of the tutorials, by the commands shown there: each prints its table and draws docs/figures/<name>.png.

    python docs/scripts/workflow_figures.py coexistence_L8 coexistence_L16 scaling_phi6 scaling_phi4 partition_function
    python docs/scripts/workflow_figures.py coexistence_L64         a quarter of an hour on two cores

Results and ladders go to out/; ladders that are there already are analysed again without sampling.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from workflows.command_line import main as quenchphys

FIGURES = Path("docs/figures")

COMMANDS = {
    "coexistence_L8": "coexistence --L 8 --bracket 2.25 2.33",
    "coexistence_L16": "coexistence --L 16 --bracket 2.27 2.30",
    "coexistence_L64": "coexistence --L 64 --bracket 2.27 2.30",
    "scaling_phi6": "fss --sizes 8 12 16 24 --bracket 2.25 2.33",
    "scaling_phi4": "fss --model phi4 --set lam=0.25 --sizes 8 12 16 24 32 --bracket -1.35 -1.20",
    "partition_function": "zbeta --L 16 --set mu2=2.2866 --beta 0 1.2 121",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(COMMANDS), help=f"any of {', '.join(COMMANDS)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out"))
    chosen = parser.parse_args()
    chosen.out.mkdir(exist_ok=True)
    worst = 0
    for name in chosen.names:
        print(f"quenchphys {COMMANDS[name]}", flush=True)
        kept = ["--out", str(chosen.out / f"{name}.nc"), "--overwrite", "--plot", str(FIGURES / f"{name}.png"), "--silent"]
        begin = time.time()
        code = quenchphys([*COMMANDS[name].split(), *kept])
        print(f"exit code {code}, {time.time() - begin:.0f} s\n", flush=True)
        worst = max(worst, code)
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
