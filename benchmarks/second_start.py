"""How soon does a second process sample?  The compiled programs of the first are taken from the cache on disk.

    python benchmarks/second_start.py

Both processes begin with nothing in memory, the first with an empty cache as well.  Told are the import, and the time from
the call to the first level: that of the first block of levels, with drawing from the prior and the warm-up, less the time
a block takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUN = """
import sys, time
begin = time.perf_counter()
import lattices, quenchphys as qp
imported = time.perf_counter()
class Clock:
    times = []
    def update(self, *numbers): self.times.append(time.perf_counter())
    def close(self): pass
L, particles = int(sys.argv[1]), int(sys.argv[2])
qp.quench(lattices.phi6(L=L, mu2=2.2838), particles=particles, replicas=8, stop=qp.LevelLimit(48), progress=Clock())
first, second, third = Clock.times
block = min(second - first, third - second)
print(imported - begin, first - imported - block, block)
"""
SHAPES = [(8, 1000), (16, 976), (40, 400)]


def main() -> None:
    found = []
    print("  L   particles   process   import s   call to first level s   a block of 16 levels s")
    for L, particles in SHAPES:
        with tempfile.TemporaryDirectory() as cache:
            for process in ("first", "second"):
                env = os.environ | {"XDG_CACHE_HOME": cache}
                command = [sys.executable, "-c", RUN, str(L), str(particles)]
                done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
                imports, start, block = map(float, done.stdout.split()[-3:])
                print(
                    f"{L:3d} {8 * particles:11d}   {process:7s} {imports:10.2f} {start:23.2f} {block:24.2f}", flush=True
                )
                found.append({"L": L, "process": process, "import": imports, "start": start, "block": block})
    Path("out").mkdir(exist_ok=True)
    Path("out/second_start.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
