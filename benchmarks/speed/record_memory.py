"""How much memory does a very long ladder take?  20,000 levels of 8000 particles, recorded, assembled and saved.

    python -m benchmarks.speed.record_memory [levels] [particles] [replicas]

Nothing is sampled: rows as a phi^6 run makes them (ten observables) are fed to the record of a checkpoint folder in
blocks of 16 levels, with a flush every 160; then the ladder is assembled and written to a file.  The peak is that of a fresh
process (ru_maxrss, which counts mapped files too).  With several replicas each ends earlier than the one before.  The file
is then compared, block by block, with what was fed.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
LIMIT = 2.0  # GB
BLOCK = 16
OBSERVABLES = ("q", "m", "abs_m", "m2", "m4", "phi2", "phi4", "phi6", "link", "s_min")
SMALL = ("parameter", "log_volume", "acceptance", "step_size", "displacement", "ess", "undefined")


def rows(begin: int, count: int, replicas: int, particles: int) -> dict[str, np.ndarray]:
    """A block of levels, the same whenever it is asked for."""
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
    return np.array([levels - r * levels // (4 * replicas) for r in range(replicas)])


def make(place: Path, levels: int, particles: int, replicas: int) -> None:
    """In a process of its own: record, assemble, save; prints the peak after each."""
    from lattices import phi6
    from quenchphys.outcome import Outcome
    from quenchphys.settings import Settings
    from quenchphys.smc.evidence import Account
    from quenchphys.smc.levels import SoftLevels
    from quenchphys.smc.loop import plan_for
    from quenchphys.stopping import LevelLimit
    from quenchphys.storage.album import Album
    from quenchphys.storage.build_ladder import assemble
    from quenchphys.storage.record import Record, blanked

    begun = time.monotonic()

    def say(what: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps([what, round(peak, 3), round(time.monotonic() - begun, 1)]), flush=True)

    say("imports")
    model = phi6(L=40, mu2=2.2834)
    settings = Settings(particles=particles, replicas=replicas)
    prior = {name: np.zeros((replicas, 10 * particles), np.float32) for name in ("energy", *OBSERVABLES)}
    account = Account(
        SoftLevels(np.float32(64)), np.zeros(replicas), prior["energy"], LevelLimit(levels), adaptive=True
    )
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
    account.levels, account.level_count = levels, count
    account.outcomes = [Outcome.REACHED_ENERGY] * replicas
    say("recorded")
    ladder = assemble(
        model,
        "quench",
        SoftLevels(np.float32(64)),
        settings,
        *plan_for(settings, 1600),
        account,
        record,
        album,
        prior,
        np.zeros((replicas, 10 * particles), bool),
        begun,
    )
    say("assembled")
    ladder.save(place / "ladder.nc")
    say("saved")


def unlike(path: Path, levels: int, particles: int, replicas: int) -> list[str]:
    """Variables of the file that are not what was fed, in every twentieth block."""
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


def main(levels: int, particles: int, replicas: int) -> int:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, __file__, "--make", place, str(levels), str(particles), str(replicas)]
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        print(
            f"{levels} levels of {particles} particles, {replicas} replica(s), {3 + len(OBSERVABLES)} variables a particle"
        )
        print("after          peak memory (GB)   seconds")
        told = [json.loads(line) for line in made.stdout.splitlines() if line.startswith("[")]
        for what, peak, seconds in told:
            print(f"{what:14s} {peak:16.2f} {seconds:9.1f}")
        file = Path(place) / "ladder.nc"
        kept = sum(part.stat().st_size for part in (Path(place) / "record").iterdir())
        print(f"record {kept / 2**30:.2f} GB, file {file.stat().st_size / 2**30:.2f} GB")
        bad = unlike(file, levels, particles, replicas)
        print("file and record agree" if not bad else f"DIFFERENT in the file: {', '.join(bad)}")
        peak = told[-1][1]
        print(f"peak {peak:.2f} GB, {'below' if peak < LIMIT else 'NOT below'} {LIMIT:g} GB")
        return int(bool(bad) or peak >= LIMIT)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(Path(sys.argv[2]), *map(int, sys.argv[3:]))
        raise SystemExit(0)
    asked = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(asked + [20_000, 8000, 1][len(asked) :])))
