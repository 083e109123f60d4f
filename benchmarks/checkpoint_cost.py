"""What does a checkpoint cost?  The same phi^6 run at L = 40 with and without, taken in turns in one process.

    python benchmarks/checkpoint_cost.py [pairs] [particles]

A run of 48 levels is shorter than the default interval of five minutes, so each run with a checkpoint is told to write one
generation: after 32 levels, in the background, while the next 16 are computed.  The extra seconds of such a run are the
price of a generation, with opening the folder, the prior draws, the record and the wait at the end; the price over five
minutes is its share of the wall time at the default interval.  "Waited" is how long the loop over levels stood still.  On a
machine that does other work as well, seconds of the processor say more than those of the clock; both are shown.
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


def once(particles: int, checkpoint: qp.Checkpoint | None) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    begun, busy = time.monotonic(), time.process_time()
    model = lattices.phi6(L=40, mu2=2.2834)
    stop = qp.LevelLimit(LEVELS)
    qp.quench(model, particles=particles, replicas=2, stop=stop, configurations=512, checkpoint=checkpoint)
    return time.monotonic() - begun, time.process_time() - busy


def main(pairs: int, particles: int) -> int:
    running.save = timed
    once(particles, None)  # compiles
    pairs_of: list[tuple[tuple[float, float], tuple[float, float]]] = []
    print(f"phi^6, L = 40, 2 replicas of {particles} particles, {LEVELS} levels; one generation after 32 levels")
    print("       clock (s)                processor (s)            waited for   size")
    print("pair   without   with   ratio   without   with   ratio   save (s)     (MB)")
    with tempfile.TemporaryDirectory() as place:
        once(particles, qp.Checkpoint(Path(place) / "first", levels=32))  # imports orbax
        waited.clear()
        for pair in range(pairs):
            folder = Path(place) / f"run{pair}"
            asked = (None, qp.Checkpoint(folder, levels=32))
            order = (0, 1) if pair % 2 == 0 else (1, 0)
            seconds = {which: once(particles, asked[which]) for which in order}
            pairs_of.append((seconds[0], seconds[1]))
            size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6
            columns = [
                f"{without:7.2f} {with_it:6.2f} {with_it / without:7.3f}"
                for without, with_it in zip(*pairs_of[-1], strict=True)
            ]
            print(f"{pair:4d}   {'   '.join(columns)} {waited[-1]:10.3f} {size:8.1f}", flush=True)
    shares = []
    for number, name in enumerate(("clock", "processor")):
        extra = [with_it[number] - without[number] for without, with_it in pairs_of]
        ratio = statistics.median(with_it[number] / without[number] for without, with_it in pairs_of)
        shares.append(max(statistics.median(extra), statistics.median(waited)) / DEFAULT)
        print(
            f"{name}: ratio with a generation in every run {ratio:.3f}; price of one {statistics.median(extra):.2f} s "
            f"(from {min(extra):.2f} to {max(extra):.2f}); share at {DEFAULT / 60:g} minutes {shares[-1]:.2%}"
        )
    share = max(shares)
    print(f"{'below' if share < LIMIT else 'NOT below'} {LIMIT:.0%}")
    return int(share >= LIMIT)


if __name__ == "__main__":
    asked = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(asked + [5, 200][len(asked) :])))
