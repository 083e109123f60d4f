"""The quick commands of the tutorials, run as a reader would: tables on standard output, figures in docs/figures.

    python docs/scripts/tutorials.py fss             tutorial_fss.png
    python docs/scripts/tutorials.py zbeta           tutorial_zbeta.png

Results and ladders go to out/; a second call takes the ladders from there and only draws anew.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from workflows.command import main as quenchphys

COMMANDS = {
    "fss": "fss --sizes 8 12 16 --bracket 2.25 2.33 --quick",
    "zbeta": "zbeta --L 8 --set mu2=2.2957 --beta 0 1.2 121 --quick",
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("name", choices=COMMANDS)
    options.add_argument("--out", type=Path, default=Path("out"), help="folder for results and ladders")
    options.add_argument("--figures", type=Path, default=Path("docs/figures"))
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    print(f"$ quenchphys {COMMANDS[asked.name]}")
    files = ["--out", str(asked.out / f"{asked.name}.nc"), "--overwrite", "--silent"]
    picture = ["--plot", str(asked.figures / f"tutorial_{asked.name}.png")]
    return quenchphys([*shlex.split(COMMANDS[asked.name]), *files, *picture])


if __name__ == "__main__":
    raise SystemExit(main())
