"""Start-up time of a second process, which takes the programs that the first one compiled from the cache on disk.

    python -m benchmarks.speed.second_start [--again 5]

All processes begin with nothing in memory, the first with an empty cache as well.  Each makes the same call twice, with
different seeds.  The table has the import; the time from the call to the first level in the second call, which is all
sampling (draws from the prior, burn-in, a first block of levels); and by how much the first call takes longer: tracing, and
compiling or loading.  That is the time a process takes before it samples.  It hardly depends on the number of particles;
there are few, because the time of sampling fluctuates.  The second row is the median of five warm starts.  The last line has
what loading blackjax for dual averaging and resampling would add.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks import harness

RUN = """
import sys, time
begin = time.perf_counter()
import lattices, quenchphys as qp
imported = time.perf_counter() - begin
class Clock:
    def update(self, *numbers): self.now = time.perf_counter()
    def close(self): pass
def first_levels(seed):
    clock, begin = Clock(), time.perf_counter()
    qp.quench(model, particles=particles, replicas=8, stop=qp.LevelLimit(16), progress=clock, seed=seed)
    return clock.now - begin
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
AGAIN = 5  # warm starts


def run(L: int, particles: int, cache: str) -> tuple[float, float, float]:
    """Seconds of a new process: import, before it samples, sampling."""
    imports, once, again = _numbers(RUN, str(L), str(particles), XDG_CACHE_HOME=cache)
    return imports, once - again, again


def _numbers(code: str, *arguments: str, **env: str) -> list[float]:
    """The last line that a new process prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=harness.environment(**env))
    return [float(word) for word in done.stdout.splitlines()[-1].split()]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--again", type=int, default=AGAIN, help="warm starts of each size")
    parser.add_argument("--sizes", type=int, nargs="+", default=[L for L, _ in SHAPES], metavar="L")
    chosen = parser.parse_args(arguments)
    columns = {"L": "3d", "particles": "d", "process": "s", "import s": ".2f", "before it samples s": ".2f"}
    table = harness.Table(columns | {"sampling to the 16th level s": ".2f"})
    for L, particles in (shape for shape in SHAPES if shape[0] in chosen.sizes):
        with tempfile.TemporaryDirectory() as cache:
            first = run(L, particles, cache)
            later = [run(L, particles, cache) for _ in range(chosen.again)]
        table.add(L, 8 * particles, "first", *first)
        each = " ".join(f"{before:.2f}" for _, before, _ in later)
        table.add(L, 8 * particles, "second", *map(statistics.median, zip(*later, strict=True)), note=f"each {each}")
    blackjax = statistics.median(_numbers(LOAD)[0] for _ in range(chosen.again))
    print(f"loading blackjax would take {blackjax:.2f} s")
    harness.save("second_start", [*table.rows, {"blackjax": blackjax}])


if __name__ == "__main__":
    main()
