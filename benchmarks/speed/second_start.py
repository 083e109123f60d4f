"""How soon does a second process sample?  The compiled programs of the first are taken from the cache on disk.

    python -m benchmarks.speed.second_start

All processes begin with nothing in memory, the first with an empty cache as well.  Each makes the same call twice, with
other seeds.  Told are the import; the time from the call to the first level in the second call, which is all sampling
(draws from the prior, warm-up, a first block of levels); and what the first call takes longer: tracing, and compiling or
loading.  That is the time a process takes before it samples.  It hardly depends on the number of particles; there are few,
since sampling takes a little more or less each time, and of five processes after the first the one in the middle counts.
At the end: what loading blackjax for dual averaging and resampling would add.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUN = """
import sys, time
begin = time.perf_counter()
import lattices, quenchphys as qp
imported = time.perf_counter() - begin
class Clock:
    def update(self, *numbers): self.told = time.perf_counter()
    def close(self): pass
def first_levels(seed):
    clock, begin = Clock(), time.perf_counter()
    qp.quench(model, particles=particles, replicas=8, stop=qp.LevelLimit(16), progress=clock, seed=seed)
    return clock.told - begin
L, particles = int(sys.argv[1]), int(sys.argv[2])
model = lattices.phi6(L=L, mu2=2.2838)
print(imported, first_levels(0), first_levels(1))
"""
LOAD = """
import time, lattices, quenchphys
begin = time.perf_counter()
import blackjax
print(time.perf_counter() - begin)
"""
SHAPES = [(8, 100), (16, 100), (40, 20)]
AGAIN = 5  # processes that find the cache filled


def run(L: int, particles: int, cache: str) -> tuple[float, float, float]:
    """Seconds of a new process: import, before it samples, sampling."""
    imports, once, again = _told(RUN, str(L), str(particles), XDG_CACHE_HOME=cache)
    return imports, once - again, again


def _told(code: str, *arguments: str, **env: str) -> list[float]:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | env)
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def main() -> None:
    found = []
    print("  L   particles   process   import s   before it samples s   sampling to the 16th level s")
    for L, particles in SHAPES:
        with tempfile.TemporaryDirectory() as cache:
            first = run(L, particles, cache)
            later = [run(L, particles, cache) for _ in range(AGAIN)]
        for process, numbers in (("first", first), ("second", tuple(map(statistics.median, zip(*later, strict=True))))):
            imports, before, sampling = numbers
            print(f"{L:3d} {8 * particles:11d}   {process:7s} {imports:10.2f} {before:21.2f} {sampling:30.2f}", flush=True)
            found.append({"L": L, "process": process, "import": imports, "before": before, "sampling": sampling})
        print(f"{'':17s}each   {' '.join(f'{before:.2f}' for _, before, _ in later)}", flush=True)
    blackjax = statistics.median(_told(LOAD)[0] for _ in range(AGAIN))
    print(f"loading blackjax would take {blackjax:.2f} s")
    found.append({"blackjax": blackjax})
    harness.save("second_start", found)


if __name__ == "__main__":
    main()
