"""Cost of checkpoints in a long run: two ladders of phi^6 at L = 40 side by side, one of which writes checkpoints.

    python -m benchmarks.speed.checkpoint_cost [rounds] [levels]            half an hour on two cores

Each has a processor core and a seed of its own, and the default interval of five minutes; a full ladder takes a quarter of
an hour.  In the next round the other core writes the checkpoints.  What is compared is gradients per second from the first
draw to the finished ladder, so that noise of the machine hits both, and a slower core cancels.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness

LIMIT = 0.03

RUN = """
import json, os, sys
core, seed, levels, folder = sys.argv[1:]
os.sched_setaffinity(0, {int(core)})
import lattices, observables, quenchphys as qp
model = lattices.phi6(L=40, mu2=2.2839)
same = dict(particles=400, replicas=8, progress=False)
qp.quench(model, **same, stop=qp.LevelLimit(1))  # compiles
stop = qp.stopping.suggested(model.stop) | qp.LevelLimit(int(levels))
ladder = qp.quench(model, **same, seed=int(seed), stop=stop, checkpoint=folder or None)
result = {"seconds": ladder.attrs["wall_time"], "gradients": ladder.attrs["gradients"], "outcome": ladder.outcome.value}
if ladder.outcome.trusted:
    found = observables.equal_weight(ladder, "mu2", by="q", cut=1.25)
    result |= {"mu2": found.mu2.item(), "mu2_err": found.mu2_err.item()}
if folder:
    result["generations"] = len(list(os.scandir(folder + "/generations")))
    result["megabytes"] = sum(os.stat(os.path.join(d, f)).st_size for d, _, fs in os.walk(folder) for f in fs) / 1e6
print(json.dumps(result))
"""


def side_by_side(number: int, levels: int, place: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Results without and with checkpoints."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    folders = ["", str(Path(place) / f"round{number}")]
    runs = []
    for which in (0, 1):
        core, seed = cores[(which + number) % 2], 2 * number + which
        arguments = [sys.executable, "-c", RUN, str(core), str(seed), str(levels), folders[which]]
        runs.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=harness.environment()))
    without, with_it = (json.loads(run.communicate()[0].splitlines()[-1]) for run in runs)
    return without, with_it


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=2)
    parser.add_argument("levels", type=int, nargs="?", default=100_000, help="at most; default: a whole ladder")
    chosen = parser.parse_args(arguments)
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("Two processor cores are needed: one for each of the runs that are compared.")
    ratios = []
    with tempfile.TemporaryDirectory() as place:
        for number in range(chosen.rounds):
            results = side_by_side(number, chosen.levels, place)
            for name, result in zip(("without", "with"), results, strict=True):
                print(f"{name:8s} {json.dumps(result)}", flush=True)
            rate = [result["gradients"] / result["seconds"] for result in results]
            ratios.append(rate[0] / rate[1])
            print(f"round {number}: seconds a gradient, with over without: {ratios[-1]:.4f}", flush=True)
    cost = math.exp(sum(map(math.log, ratios)) / len(ratios)) - 1
    print(f"checkpoints cost {cost:+.2%} of the wall time: {'below' if cost < LIMIT else 'NOT below'} {LIMIT:.0%}")
    return int(cost >= LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
