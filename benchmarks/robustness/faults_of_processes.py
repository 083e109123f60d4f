"""Faults of the machine: clocks that jump, forked workers, memory that runs out."""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import quenchphys as qp
from benchmarks.robustness.fault_tools import TARGET, Meter, Verdict, fault, quench, reported, same, seen


def with_clock(jump: float) -> Verdict:
    """The wall clock jumps after every block of levels; rules of time must not notice."""
    real, offset = time.time, [0.0]

    def leap(level: int) -> None:
        offset[0] += jump

    whole = quench()
    time.time = lambda: real() + offset[0]
    try:
        with tempfile.TemporaryDirectory() as place:
            rule = qp.RemainingEvidence(-3) | qp.WallTime(3000)
            folder = Path(place) / "run"
            ladder = quench(stop=rule, progress=Meter(leap), checkpoint=qp.Checkpoint(folder, minutes=30))
            written = len(list((folder / "generations").iterdir())) if (folder / "generations").exists() else 0
    finally:
        time.time = real
    good = same(whole, ladder) and ladder.outcome.trusted and not written and 0 <= ladder.attrs["wall_time"] < 3000
    return f"{reported(ladder)}; same numbers, wall time {ladder.attrs['wall_time']:.1f} s", good


@fault("clock jumps back by a day in every block")
def _(place: Path) -> Verdict:
    return with_clock(-86400)


@fault("clock jumps forwards by a day in every block")
def _(place: Path) -> Verdict:
    return with_clock(86400)


def work(out: Any) -> None:
    try:
        out.put(float(quench().levels.log_volume[0, 20]))
    except BaseException as error:
        out.put(f"{type(error).__name__}: {error}")


def worker(method: str) -> Any:
    context: Any = multiprocessing.get_context(method)
    out = context.Queue()
    process = context.Process(target=work, args=(out,))
    process.start()
    try:
        return out.get(timeout=120)
    except Exception:
        return "nothing for 120 s"
    finally:
        process.kill()
        process.join()


@fault("worker by spawn")
def _(place: Path) -> Verdict:
    expected, found = float(quench().levels.log_volume[0, 20]), worker("spawn")
    return f"log G {found} in the worker, {expected} here", found == expected


@fault("worker by fork after a run", alone=True)
def _(place: Path) -> Verdict:
    quench()
    found = worker("fork")
    return str(found), isinstance(found, str) and "spawn" in found


@fault("memory: more than the machine has")
def _(place: Path) -> Verdict:
    what, good = seen(lambda: qp.quench(TARGET, particles=50_000_000, replicas=4))
    return what, good and "lower particles" in what


@fault("memory: runs out in the middle (limit on the process)", alone=True)
def _(place: Path) -> Verdict:
    quench()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + (1 << 30), resource.RLIM_INFINITY))
    # 0.8 GB of draws by the estimate, and 1 GB is left: the run may just fit, or say that it does not.
    try:
        ladder = qp.quench(TARGET, particles=200_000, replicas=2, stop=qp.LevelLimit(16))
    except Exception as error:
        return f"{type(error).__name__}: {error}", isinstance(error, MemoryError) and "lower particles" in str(error)
    return f"it fitted: {ladder.outcome.value} after {int(ladder.levels.level_count.max())} levels", True
