"""A run killed again and again must end with the same file: phi^6 at L = 16, SIGKILL at random moments.

    python -m benchmarks.robustness.kill_and_resume [kills] [seed]

One process runs the ladder undisturbed and saves it.  Then the same program runs with a checkpoint every 16 levels and is
killed at random moments: two while it starts, the others spread over the ladder; after each the same program is started
again.  The two files are compared dataset by dataset and attribute by attribute, as bytes.  When a file was made and how
long it took may differ, nothing else.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from benchmarks import harness

MAY_DIFFER = {"wall_time", "created"}
STARTING = 2  # kills while a process starts
AFTER = 2.0  # seconds after the chosen level, at most

PROGRAM = """
import sys, lattices, quenchphys as qp
class Meter:
    def update(self, level, *rest):
        print("level", level, flush=True)
    def close(self):
        pass
folder, out = sys.argv[1:]
checkpoint = qp.Checkpoint(folder, levels=16) if folder != "none" else None
print("starting", flush=True)
ladder = qp.quench(lattices.phi6(L=16, mu2=2.286), particles=400, replicas=4, target_ess=0.99, seed=5,
                   progress=Meter(), checkpoint=checkpoint)
ladder.save(out)
print("saved", flush=True)
"""


def start(folder: Path | str, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=harness.environment(),
    )


def follow(process: subprocess.Popen[str], until: int | None) -> tuple[int | None, int, str]:
    """(first level reported, last level reported, all output) up to a level, or to the end."""
    first, last, output = None, 0, []
    assert process.stdout is not None
    for line in process.stdout:
        output.append(line)
        if line.startswith("level "):
            last = int(line.split()[1])
            first = last if first is None else first
            if until is not None and last >= until:
                break
    return first, last, "".join(output)


def differences(one: Path, other: Path) -> list[str]:
    """Everything in which two files differ, by name."""
    with h5py.File(one) as a, h5py.File(other) as b:
        names: list[set[str]] = [set(), set()]
        for file, found in zip((a, b), names, strict=True):
            file.visit(found.add)
        unlike = [f"only one file has {name}" for name in sorted(names[0] ^ names[1])]
        for name in ["/", *sorted(names[0] & names[1])]:
            x, y = a[name], b[name]
            for key in sorted(set(x.attrs) | set(y.attrs)):
                if key in ("REFERENCE_LIST", "DIMENSION_LIST"):  # addresses inside the file
                    continue
                if not _same(x.attrs.get(key), y.attrs.get(key)):
                    unlike.append(f"attribute {key} of {name}")
            if isinstance(x, h5py.Dataset) and not _same(x[()], y[()]):
                unlike.append(f"data of {name}")
    return unlike


def _same(x: object, y: object) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return bool(np.array_equal(x, y)) if x.dtype == object else x.tobytes() == y.tobytes()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=10)
    parser.add_argument("seed", type=int, nargs="?", default=1, help="of the random moments")
    chosen = parser.parse_args(arguments)
    return compare(chosen.kills, random.Random(chosen.seed))


def compare(kills: int, rng: random.Random) -> int:
    """Run once undisturbed and once with kills; 1 if the two files differ."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        whole, killed = folder / "whole.nc", folder / "killed.nc"
        timer = harness.Timer()
        process = start("none", whole)
        _, levels, output = follow(process, None)
        if process.wait() or "saved" not in output:
            print(process.stderr.read() if process.stderr else "")
            return 1
        print(f"undisturbed: {levels} levels in {timer.wall:.0f} s, with start and compilation\n")
        print("kill   when                          started from level   killed after level")
        targets = sorted(rng.randrange(1, levels) for _ in range(kills - STARTING))
        moments: list[int | None] = [None, *targets[:3], None, *targets[3:]][:kills]
        for number, target in enumerate(moments, 1):
            process = start(folder / "run", killed)
            if target is None:
                wait = rng.uniform(0, 8)
                time.sleep(wait)
                process.kill()
                first, last, _ = follow(process, None)
                when = f"{wait:.2f} s after the start"
            else:
                first, last, _ = follow(process, target)
                wait = rng.uniform(0, AFTER)
                time.sleep(wait)
                process.kill()
                rest = follow(process, None)
                last = max(last, rest[1])
                when = f"{wait:.2f} s after level {target}"
            process.wait()
            # A block has 16 levels, and the first level reported is the last of a block.
            begin = "-" if first is None else str(first - 16)
            print(f"{number:4d}   {when:28s}  {begin:>18s}   {last or '-'!s:>18s}", flush=True)
            if killed.exists():
                print("       the run had ended already")
        process = start(folder / "run", killed)
        first, last, output = follow(process, None)
        errors = process.stderr.read() if process.stderr else ""
        if process.wait() or "saved" not in output:
            print(errors)
            return 1
        print(f" end   undisturbed                   {(first or 0) - 16:>18d}   {last:>18d}\n")
        unlike = differences(whole, killed)
        print(f"files of {whole.stat().st_size} and {killed.stat().st_size} bytes; they differ in")
        for line in unlike or ["nothing"]:
            print(f"  {line}")
        allowed = {f"attribute {name} of /" for name in MAY_DIFFER}
        bad = [line for line in unlike if line not in allowed]
        print("FAILED: more than the times differ" if bad else f"bit-identical but for {', '.join(sorted(MAY_DIFFER))}")
        with h5py.File(killed) as file:
            print("outcome of each replica:", ", ".join(json.loads(file.attrs["replica_outcomes"])))
        return int(bool(bad))


if __name__ == "__main__":
    raise SystemExit(main())
