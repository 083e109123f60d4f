"""Damaged ladder files must never crash, hang or mislead: mutated files are loaded, each batch in a process of its own.

    python -m benchmarks.robustness.fuzz_files [2000]

Every file must be refused with one sentence (ValueError or OSError) or load with the content that was written: names,
dimensions, types, attributes and every byte of the data.  Anything else is listed.  Files that load
are counted by where they differ from the original: nowhere (a mutation may change nothing), only in the checksum at the end,
or in bytes that nobody reads.
"""

from __future__ import annotations

import collections
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import quenchphys as qp
from benchmarks import harness
from quenchphys.storage.checksum import LENGTH

BATCH, PATIENCE = 100, 120.0  # files of one process, and seconds it may take

READER = """
import sys, quenchphys as qp

def content(ladder):
    found = {"/": sorted((k, repr(v)) for k, v in ladder.tree.attrs.items())}
    for group, node in ladder.tree.children.items():
        for name, variable in node.variables.items():
            about = variable.dims, str(variable.dtype), sorted((k, repr(v)) for k, v in variable.attrs.items())
            found[group, name] = about, variable.values.tobytes()
    return found

whole = content(qp.load(sys.argv[1]))
for path in sys.argv[2:]:
    try:
        result = "loaded, content identical" if content(qp.load(path)) == whole else "loaded, content CHANGED"
    except (ValueError, OSError) as refused:
        result = "refused" if len(str(refused).splitlines()) == 1 else "more than one line: " + repr(refused)
    except BaseException as other:
        result = f"other: {type(other).__name__}: {other}"
    print(path, result, flush=True)
"""
IDENTICAL, CHANGED, REFUSED = "loaded, content identical", "loaded, content CHANGED", "refused"
GOOD = (IDENTICAL, REFUSED)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One of: a few bits flipped, a stretch overwritten, cut short, a stretch removed, doubled, or zeroed."""
    data = bytearray(content)
    kind, place = rng.randrange(6), rng.randrange(len(data))
    # Half of the damage falls on the beginning, where a netCDF file describes itself.
    if rng.random() < 0.5:
        place = rng.randrange(min(len(data), 20_000))
    length = rng.choice((1, 4, 64, 512, 4096))
    if kind == 0:
        for _ in range(rng.choice((1, 2, 8, 64))):
            data[rng.randrange(len(data)) if rng.random() < 0.3 else (place + rng.randrange(64)) % len(data)] ^= (
                1 << rng.randrange(8)
            )
    elif kind == 1:
        data[place : place + length] = rng.randbytes(len(data[place : place + length]))
    elif kind == 2:
        del data[place:]
    elif kind == 3:
        del data[place : place + length]
    elif kind == 4:
        data[place:place] = data[place : place + length]
    else:
        data[place : place + length] = bytes(len(data[place : place + length]))
    return bytes(data)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000, help="number of mutated files")
    count = parser.parse_args(arguments).count
    rng = random.Random(1)
    tally: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ladder = qp.quench(qp.targets.gaussian(4), particles=32, replicas=2, stop=qp.LevelLimit(16))
        content = ladder.save(folder / "whole.nc").read_bytes()
        for begin in range(0, count, BATCH):
            files = [folder / f"{begin + i}.nc" for i in range(min(BATCH, count - begin))]
            for file in files:
                file.write_bytes(mutated(content, rng))
            pending = list(files)
            while pending:
                found = _read(folder / "whole.nc", pending)
                for path, result in found.items():
                    tally[result if result in (*GOOD, CHANGED) else "BAD"] += 1
                    if result != REFUSED:
                        reasons[why(content, Path(path).read_bytes())] += 1
                    if result not in GOOD:
                        print(Path(path).name, result)
                pending = pending[len(found) :]
                if pending and len(found) < len(files):
                    bad = pending.pop(0)
                    tally["BAD"] += 1
                    print(f"crashed or hung: {bad.name} ({bad.stat().st_size} of {len(content)} bytes)")
            for file in files:
                file.unlink()
    print(f"{count} mutated files: " + ", ".join(f"{number} {result}" for result, number in sorted(tally.items())))
    for reason, number in reasons.most_common():
        print(f"  {number} of those that loaded: {reason}")
    return int(tally["BAD"] + tally[CHANGED] > 0)


def why(content: bytes, data: bytes) -> str:
    """Where a mutated file differs from the original."""
    if data == content:
        return "the mutation changed nothing (zeros over zeros, or a stretch overwritten by itself)"
    end = len(content) - LENGTH
    if data[:end] == content[:end]:
        return "only the checksum is damaged or gone: everything before it is as written"
    differ = [i for i, (old, new) in enumerate(zip(content, data, strict=False)) if old != new]
    return f"the file differs from byte {differ[0] if differ else len(data)} on ({len(data)} of {len(content)} bytes)"


def _read(whole: Path, files: list[Path]) -> dict[str, str]:
    """What the reader printed about each file before it ended."""
    command = [sys.executable, "-c", READER, str(whole), *map(str, files)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=harness.environment())
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode()
    return dict(line.split(" ", 1) for line in output.splitlines() if line)


if __name__ == "__main__":
    raise SystemExit(main())
