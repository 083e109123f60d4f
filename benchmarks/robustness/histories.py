"""Random histories of a small study: each must end in the right numbers to the last bit, or in one sentence.

    python -m benchmarks.robustness.histories [--histories N] [--seed S]

A history is a few events that befall one output: the command is started, killed (SIGKILL), stopped (SIGTERM, Ctrl-C), put
to sleep (SIGSTOP) and woken, run on another number of devices, or with files that may not grow (a full disk); a second one
is started beside it, for the same or for another request, with and without --overwrite; kept files are damaged or removed.
Then the command runs undisturbed, and again with --overwrite if it was refused.

After every process: exit 0 means the table and the file of that request as they are when it runs alone; any other exit
comes with one sentence, or with the signal that was sent; never a traceback; and a finished result that nobody asked to
replace, and nobody damaged, is still there.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import xarray as xr

from benchmarks import harness

COMMAND = ["coexistence", "--L", "4", "--bracket", "2.2", "2.5", "--sweeps", "176", "--groups", "8", "--chains", "2"]
REQUESTS = {"A": ["--seed", "0"], "B": ["--seed", "1"]}
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "Ctrl-C": signal.SIGINT}
PATIENCE = 300.0  # seconds after which a process counts as hung
LONGEST = 5  # events in a history


@dataclass
class Process:
    """A command that was started, and what was done to it."""

    request: str
    overwrite: bool
    popen: subprocess.Popen[str]
    sent: set[int] = field(default_factory=set)

    @staticmethod
    def start(out: Path, request: str, overwrite: bool = False, devices: int = 0, largest_file: int = 0) -> Process:
        def limit() -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
            if largest_file:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))

        flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"} if devices else {}
        more = ["--overwrite"] if overwrite else []
        popen = subprocess.Popen(
            [sys.executable, "-m", "quenchphys", *COMMAND, *REQUESTS[request], *more, "--silent", "--out", str(out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=harness.environment(**flags),
            preexec_fn=limit,
        )
        return Process(request, overwrite, popen)

    def send(self, number: int) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(number)
            self.sent.add(number)


def contents(out: Path) -> str:
    """Digest of everything in a result that is not a time."""
    try:
        with xr.open_dataset(out, engine="h5netcdf") as data:
            seal = hashlib.sha256()
            for name in sorted(map(str, data.variables)):
                seal.update(name.encode() + data[name].values.tobytes())
            return seal.hexdigest()
    except Exception as cause:
        return f"unreadable: {type(cause).__name__}"


class History:
    """One output, what befalls it, and every fault that was seen."""

    def __init__(self, folder: Path, alone: dict[str, tuple[str, str]], seconds: float, rng: random.Random):
        self.out, self.alone, self.seconds, self.rng = folder / "run.nc", alone, seconds, rng
        self.events: list[str] = []
        self.faults: list[str] = []
        self.ends: Counter[str] = Counter()
        self.precious: str | None = None  # digest of a finished result that must stay

    def run(self) -> None:
        for _ in range(self.rng.randint(1, LONGEST)):
            self.rng.choice([self.interrupt, self.interrupt, self.beside, self.sleep, self.damage, self.full_disk])()
        self.finish()

    def start(self, **more: int) -> Process:
        request, overwrite = self.rng.choice("AAB"), self.rng.random() < 0.25
        self.events.append(f"{request}{'!' if overwrite else ''}")
        return Process.start(self.out, request, overwrite, devices=self.rng.choice([0, 0, 1, 2, 3]), **more)

    def wait(self) -> None:
        time.sleep(self.rng.uniform(0, 1.1 * self.seconds))

    def interrupt(self) -> None:
        process = self.start()
        self.wait()
        name = self.rng.choice([*SIGNALS, "nothing"])
        self.events.append(name)
        if name != "nothing":
            process.send(SIGNALS[name])
            if name == "Ctrl-C" and self.rng.random() < 0.3:
                time.sleep(self.rng.uniform(0, 1))
                process.send(signal.SIGINT)
                self.events.append(name)
        self.judge(process)

    def beside(self) -> None:
        first = self.start()
        self.wait()
        self.events.append("beside")
        second = self.start()
        self.judge(first, second)

    def sleep(self) -> None:
        first = self.start()
        self.wait()
        self.events.append("SIGSTOP")
        first.send(signal.SIGSTOP)
        second = self.start()
        self.judge(second, others=(first,))
        first.send(signal.SIGCONT)
        self.judge(first)

    def full_disk(self) -> None:
        size = int(10 ** self.rng.uniform(3, 6))
        self.events.append(f"files up to {size} bytes")
        self.judge(self.start(largest_file=size))

    def damage(self) -> None:
        kept = [file for file in self.out.parent.rglob("*") if file.is_file()]
        if not kept:
            return
        file = self.rng.choice(kept)
        how = self.rng.choice(["flip", "cut", "zeros", "remove"])
        self.events.append(f"{how} {file.name}")
        if file == self.out:
            self.precious = None
        content = bytearray(file.read_bytes())
        if how == "remove":
            file.unlink()
            return
        if not content:
            return
        at = self.rng.randrange(len(content))
        if how == "flip":
            content[at] ^= 1 << self.rng.randrange(8)
        elif how == "cut":
            del content[at:]
        else:
            content[at:] = bytes(len(content) - at)
        file.write_bytes(content)

    def judge(self, *processes: Process, others: tuple[Process, ...] = ()) -> None:
        """Wait for processes, and compare what each says and leaves with what it may."""
        done = []
        for process in processes:
            try:
                said, errors = process.popen.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.popen.kill()
                process.popen.communicate()
                self.faults.append(f"{process.request} hung")
                continue
            code = process.popen.returncode
            if code == 0:
                done.append(process)
                if said != self.alone[process.request][0]:
                    self.faults.append(f"{process.request} printed another table")
            self.ends[self.end_of(process, code, errors)] += 1
        if done:
            found = contents(self.out)
            if found not in [self.alone[process.request][1] for process in done]:
                self.faults.append(f"the file is not that of {' or '.join(p.request for p in done)}: {found[:40]}")
            self.precious = found
        elif self.precious is not None and not any(p.overwrite for p in (*processes, *others)):
            if contents(self.out) != self.precious:
                self.faults.append("a finished result is lost")
        elif any(p.overwrite for p in (*processes, *others)):
            self.precious = None if not self.out.exists() else contents(self.out)

    def end_of(self, process: Process, code: int, errors: str) -> str:
        """How a process ended, in one word; a fault if it may not end so."""
        lines = [line for line in errors.splitlines() if line.strip()]
        if "Traceback" in errors:
            self.faults.append(f"traceback: {lines[-1][:120]}")
            return "traceback"
        if code == 0:
            return "right"
        if code < 0:
            if -code not in process.sent:
                self.faults.append(f"died by signal {-code}")
            return "signal"
        if code == 130 and not process.sent:
            self.faults.append("interrupted by nobody")
        sentences = [line for line in lines if not line.startswith(("Saving state", "Stopping"))]
        if len(sentences) != 1:
            self.faults.append(f"exit {code} with {len(sentences)} lines: {' / '.join(sentences)[:200]}")
        return {2: "refused", 130: "interrupted"}.get(code, f"exit {code}")

    def finish(self) -> None:
        """To the end: undisturbed; then with --overwrite; then with the folder moved away."""
        self.events.append("end")
        for overwrite in (False, True):
            process = Process.start(self.out, "A", overwrite)
            self.judge(process)
            if process.popen.returncode == 0:
                return
        self.events.append("moved away")
        shutil.rmtree(self.out.with_suffix(".ladders"), ignore_errors=True)
        process = Process.start(self.out, "A", True)
        self.judge(process)
        if process.popen.returncode:
            self.faults.append("no way to the right numbers")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--histories", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the random events")
    chosen = parser.parse_args(arguments)
    return histories(chosen.histories, chosen.seed)


def histories(count: int, seed: int) -> int:
    """Run so many histories; 1 if one of them had a fault."""
    alone: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as place:
        for request in REQUESTS:
            out = Path(place) / f"{request}.nc"
            begun = time.monotonic()
            said, errors = (process := Process.start(out, request)).popen.communicate()
            seconds = time.monotonic() - begun
            if process.popen.returncode:
                print(errors)
                return 1
            alone[request] = said, contents(out)
    print(f"alone, each request takes {seconds:.0f} s\n", flush=True)
    table = harness.Table({"history": "5d", "verdict": "6s", "processes": "40s", "events": "s"})
    bad, ends = 0, Counter[str]()
    for number in range(count):
        with tempfile.TemporaryDirectory() as place:
            history = History(Path(place), alone, seconds, random.Random(f"{seed} {number}"))
            history.run()
        bad += bool(history.faults)
        ends += history.ends
        words = ", ".join(f"{many} {end}" for end, many in sorted(history.ends.items()))
        table.add(number, "BAD" if history.faults else "good", words, ", ".join(history.events))
        for fault in history.faults:
            print(f"        {fault}", flush=True)
    total = ", ".join(f"{many} {end}" for end, many in sorted(ends.items()))
    print(f"\n{count} histories, {bad} bad; processes that ended: {total}")
    return int(bad > 0)


if __name__ == "__main__":
    os.environ.pop("XLA_FLAGS", None)
    raise SystemExit(main())
