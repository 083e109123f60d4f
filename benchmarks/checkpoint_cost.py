"""What does a checkpoint cost?  The same phi^6 run at L = 40 with and without, taken in turns in one process.

    python benchmarks/checkpoint_cost.py [pairs] [particles]

A run of 48 levels is shorter than the default interval of five minutes, so each run with a checkpoint is told to write one
generation: after 32 levels, in the background, while the next 16 are computed.  The extra seconds of such a run are the
price of a generation, with opening the folder, the prior draws, the record and the wait at the end; the price over five
minutes is its share of the wall time at the default interval.  "Waited" is how long the loop over levels stood still.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import lattices  # noqa: E402
import quenchphys as qp  # noqa: E402
from quenchphys import course, running  # noqa: E402

LEVELS, LIMIT = 48, 0.03
DEFAULT = 60 * qp.Checkpoint("").minutes

waited: list[float] = []


def timed(*arguments) -> None:
    begun = time.monotonic()
    course.save(*arguments)
    waited.append(time.monotonic() - begun)


def once(particles: int, checkpoint: qp.Checkpoint | None) -> float:
    begun = time.monotonic()
    model = lattices.phi6(L=40, mu2=2.2834)
    stop = qp.LevelLimit(LEVELS)
    qp.quench(model, particles=particles, replicas=2, stop=stop, configurations=512, checkpoint=checkpoint)
    return time.monotonic() - begun


def main(pairs: int, particles: int) -> int:
    running.save = timed
    once(particles, None)  # compiles
    extra, ratios = [], []
    print(f"phi^6, L = 40, 2 replicas of {particles} particles, {LEVELS} levels; one generation after 32 levels")
    print("pair   without (s)   with (s)   ratio   waited for save (s)   size (MB)")
    with tempfile.TemporaryDirectory() as place:
        once(particles, qp.Checkpoint(Path(place) / "first", levels=32))  # imports orbax
        waited.clear()
        for pair in range(pairs):
            folder = Path(place) / f"run{pair}"
            runs = [
                lambda: once(particles, None),
                lambda folder=folder: once(particles, qp.Checkpoint(folder, levels=32)),
            ]
            order = (0, 1) if pair % 2 == 0 else (1, 0)
            seconds = {which: runs[which]() for which in order}
            size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6
            extra.append(seconds[1] - seconds[0])
            ratios.append(seconds[1] / seconds[0])
            print(
                f"{pair:4d} {seconds[0]:13.2f} {seconds[1]:10.2f} {ratios[-1]:7.3f} {waited[-1]:21.3f} {size:11.1f}",
                flush=True,
            )
    price = statistics.median(extra)
    print(f"ratio with a generation in every run: median {statistics.median(ratios):.3f}")
    print(f"price of a generation: median {price:.2f} s (from {min(extra):.2f} to {max(extra):.2f})")
    share = max(price, statistics.median(waited)) / DEFAULT
    print(f"share of wall time at the default interval of {DEFAULT / 60:g} minutes: {share:.2%}")
    print(f"{'below' if share < LIMIT else 'NOT below'} {LIMIT:.0%}")
    return int(share >= LIMIT)


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(asked + [5, 200][len(asked) :])))
