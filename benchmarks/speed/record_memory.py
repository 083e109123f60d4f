"""Memory of a very long ladder: 20,000 levels of 8000 particles, recorded, assembled and saved.

    python -m benchmarks.speed.record_memory [levels] [particles] [replicas]            minutes, and 20 GB of disk

Nothing is sampled: rows as a phi^6 run makes them (ten observables) are fed to the record of a checkpoint folder in
blocks of 16 levels, with a flush every 160; then the ladder is assembled and written to a file.  The peak is that of a fresh
process (ru_maxrss, which counts mapped files too).  With several replicas each ends earlier than the one before.  The file
is then compared, block by block, with what was fed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from benchmarks import harness

LIMIT = 2.0  # GB
BLOCK = 16
OBSERVABLES = ("q", "m", "abs_m", "m2", "m4", "phi2", "phi4", "phi6", "link", "s_min")
SMALL = ("parameter", "log_volume", "acceptance", "step_size", "displacement", "ess", "undefined")


def rows(begin: int, count: int, replicas: int, particles: int) -> dict[str, np.ndarray]:
    """A block of levels, the same in every call."""
    rng = np.random.default_rng(begin)
    size = (count, replicas, particles)
    large = {name: rng.random(size, np.float32) for name in ("energy", *(f"observable {name}" for name in OBSERVABLES))}
    large["log_weight"] = np.full(size, -np.log(particles), np.float32)
    large["parent"] = rng.integers(0, particles, size, dtype=np.int32)
    small = {name: rng.random(size[:2], np.float32) * 1e-4 for name in SMALL}
    small |= {name: np.ones(size[:2], np.int32) for name in ("lineages", "transitions")}
    small |= {"resampled": np.zeros(size[:2], bool)}
    small["correlation"] = rng.random((*size[:2], 1 + len(OBSERVABLES)), np.float32)
    return large | small


def ends(levels: int, replicas: int) -> np.ndarray:
    """Number of levels of each replica."""
    return np.array([levels - r * levels // (4 * replicas) for r in range(replicas)])


def make(place: Path, levels: int, particles: int, replicas: int) -> None:
    """In a process of its own: record, assemble, save; prints the peak after each."""
    from lattices import phi6
    from quenchphys.outcome import Outcome
    from quenchphys.problem import view
    from quenchphys.settings import Settings
    from quenchphys.smc.assignment import Assignment, Machine, plan_for
    from quenchphys.smc.evidence import Evidence
    from quenchphys.smc.levels import SoftLevels
    from quenchphys.smc.run_state import RunState
    from quenchphys.stopping import LevelLimit
    from quenchphys.storage.album import Album
    from quenchphys.storage.build_ladder import assemble
    from quenchphys.storage.record import Record, blanked
    from quenchphys.tuning.mutation_count import MutationCount

    begun = time.monotonic()

    def report(what: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps([what, round(peak, 3), round(time.monotonic() - begun, 1)]), flush=True)

    report("imports")
    settings, family = Settings(particles=particles, replicas=replicas), SoftLevels(np.float32(64))
    work = Assignment(view(phi6(L=40, mu2=2.2834)), "quench", family, settings, LevelLimit(levels))
    prior = {name: np.zeros((replicas, 10 * particles), np.float32) for name in ("energy", *OBSERVABLES)}
    evidence = Evidence(family, np.zeros(replicas), prior["energy"], work.rule, work.adaptive)
    count = ends(levels, replicas)
    (place / "record").mkdir()
    record, album = Record(folder=place / "record"), Album(4096)
    pictures = np.zeros((replicas, 32, 40, 40), np.float32), np.zeros((replicas, 32), np.int32)
    for begin in range(0, levels, BLOCK):
        block = rows(begin, min(BLOCK, levels - begin), replicas, particles)
        record.extend(**blanked(block, begin, count))
        for level in range(begin, begin + BLOCK):
            album.offer(level, pictures[1], pictures[0])
        if begin % (10 * BLOCK) == 0:
            record.flush()
    evidence.levels, evidence.level_count = levels, count
    evidence.outcomes = [Outcome.REACHED_ENERGY] * replicas
    report("recorded")
    course = RunState(
        state=None,
        evidence=evidence,
        pace=MutationCount(settings.kernel, work.dimension),
        record=record,
        album=album,
        prior=prior,
        undefined=np.zeros((replicas, 10 * particles), bool),
        parent=np.zeros((replicas, particles), np.int32),
        drawn=np.zeros((replicas, work.kept_draws, 40, 40), np.float32),
    )
    machine = Machine.of(work, *plan_for(settings, work.dimension))
    ladder = assemble(work, machine, course, time.monotonic() - begun)
    report("assembled")
    ladder.save(place / "ladder.nc")
    report("saved")


def unlike(path: Path, levels: int, particles: int, replicas: int) -> list[str]:
    """Variables of the file that differ from what was recorded, in every twentieth block."""
    from quenchphys.storage.record import blanked

    bad = set()
    with h5py.File(path) as file:
        for begin in range(0, levels, 20 * BLOCK):
            count = min(BLOCK, levels - begin)
            fed = blanked(rows(begin, count, replicas, particles), begin, ends(levels, replicas))
            for name in ("energy", "log_weight", "parent", *(f"observable {name}" for name in OBSERVABLES)):
                found = file[f"particles/{name.removeprefix('observable ')}"][:, begin : begin + count]
                if found.tobytes() != np.ascontiguousarray(fed[name].swapaxes(0, 1)).tobytes():
                    bad.add(name)
    return sorted(bad)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("levels", type=int, nargs="?", default=20_000)
    parser.add_argument("particles", type=int, nargs="?", default=8000)
    parser.add_argument("replicas", type=int, nargs="?", default=1)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    size = chosen.levels, chosen.particles, chosen.replicas
    if chosen.make is None:
        return measure(*size)
    make(chosen.make, *size)
    return 0


def measure(levels: int, particles: int, replicas: int) -> int:
    """Make the file in a fresh process and compare it; 1 if it is wrong or took too much memory."""
    with tempfile.TemporaryDirectory() as place:
        size = map(str, (levels, particles, replicas))
        command = [sys.executable, "-m", "benchmarks.speed.record_memory", *size, "--make", place]
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=harness.environment())
        print(
            f"{levels} levels of {particles} particles, {replicas} replica(s), {3 + len(OBSERVABLES)} variables a particle"
        )
        table = harness.Table({"after": "12s", "peak memory (GB)": ".2f", "seconds": ".1f"})
        for line in made.stdout.splitlines():
            if line.startswith("["):
                table.add(*json.loads(line))
        file = Path(place) / "ladder.nc"
        kept = sum(part.stat().st_size for part in (Path(place) / "record").iterdir())
        print(f"record {kept / 2**30:.2f} GB, file {file.stat().st_size / 2**30:.2f} GB")
        bad = unlike(file, levels, particles, replicas)
        print("file and record agree" if not bad else f"DIFFERENT in the file: {', '.join(bad)}")
        peak = table.rows[-1]["peak memory (GB)"]
        print(f"peak {peak:.2f} GB, {'below' if peak < LIMIT else 'NOT below'} {LIMIT:g} GB")
        return int(bool(bad) or peak >= LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
