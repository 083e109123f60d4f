"""Random histories of a small study: each must end in the right numbers to the last bit, or in one sentence.

    python -m benchmarks.robustness.histories [--histories N] [--from N] [--walks SHARE] [--seed S] [--keep FILE]

A history is a few events that befall one output: the command is started, killed (SIGKILL), stopped (SIGTERM, Ctrl-C), put
to sleep (SIGSTOP) and woken, run on another number of devices or on a disk that is full; a second one is started beside it,
for the same or for another request, with and without --overwrite; kept files are damaged or removed, between runs or
during one.  Then the command runs undisturbed, and again with --overwrite if it was refused.

After every event: exit 0 means the table and the file of that request as they are when it runs alone; any other exit comes
with one sentence, or with the signal that was sent, and never with a traceback; every kept ladder and walk that was not
damaged holds what it holds when its request runs alone; and a finished result, ladder or walk is still there, though
--overwrite may have set it aside.

Each history follows from its number and the seed alone, but for the moments at which signals arrive.  With --keep, histories
that a file already lists are not run again.  Disks are full for real where the script may mount a small one (as root);
elsewhere files may not grow beyond a size.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks import harness
from benchmarks.robustness.history_tools import Alone, Disk, Process, contents, intact

LADDER = ["zbeta", "--L", "2", "--particles", "32", "--replicas", "2", "--beta", "0", "1", "3", "--set"]
POINT = ["coexistence", "--L", "4", "--bracket", "2.2", "2.5", "--sweeps", "176", "--groups", "8", "--chains", "2"]
POINT += ["--pilot-particles", "32", "--pilot-replicas", "2"]
STUDIES = {  # the requests of one history; walks take five times as long
    "ladder": {"A": [*LADDER, "mu2=2.3"], "B": [*LADDER, "mu2=2.3", "--seed", "1"], "C": [*LADDER, "mu2=2.4"]},
    "walk": {"A": POINT, "B": [*POINT, "--seed", "1"]},
}
OFTEN = "AAAAABBC"
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "Ctrl-C": signal.SIGINT}
LONGEST = 3  # events in a history
NEW_INTERPRETER = 0.02  # share of commands that begin with a new interpreter


class History:
    """One output, what befalls it, and every fault that was seen."""

    def __init__(self, disk: Disk, study: str, rng: random.Random):
        self.disk, self.study, self.rng = disk, study, rng
        self.alone = run_alone(study)
        self.out = disk.folder / "run.nc"
        self.events: list[str] = []
        self.faults: list[str] = []
        self.ends: Counter[str] = Counter()
        self.damaged: set[Path] = set()
        self.finished: dict[str, str] = {}  # digests of what must not be lost, by the names that files had

    @property
    def ladders(self) -> Path:
        return self.out.with_suffix(".ladders")

    def run(self) -> None:
        kinds = [self.interrupt, self.interrupt, self.beside, self.sleep, self.damage, self.damage_beside, self.full_disk]
        for _ in range(self.rng.randint(1, LONGEST)):
            self.rng.choice(kinds)()
        self.finish()

    def start(self, request: str = "", overwrite: bool | None = None) -> Process:
        """Start a request, at random unless one is given."""
        name = request or self.rng.choice([name for name in OFTEN if name in self.alone])
        overwrite = self.rng.random() < 0.3 if overwrite is None else overwrite
        devices, new = self.rng.choice([1] * 8 + [2, 3]), self.rng.random() < NEW_INTERPRETER
        marks = "!" * overwrite + f" on {devices}" * (devices > 1) + " (new interpreter)" * new
        self.events.append(name + marks)
        command = [*STUDIES[self.study][name], *["--overwrite"] * overwrite, "--silent", "--out", str(self.out)]
        return Process(name, overwrite, command, devices, new, self.disk.largest_file)

    def wait(self, process: Process) -> None:
        time.sleep(process.imports + self.rng.uniform(0, 1.1) * self.alone[process.request].seconds)

    def interrupt(self) -> None:
        process = self.start()
        self.wait(process)
        name = self.rng.choice(["SIGKILL", "SIGTERM", "SIGTERM", "Ctrl-C", "Ctrl-C", "nothing"])
        self.events.append(name)
        if name != "nothing":
            process.send(SIGNALS[name])
        if name == "Ctrl-C" and self.rng.random() < 0.3:
            time.sleep(self.rng.uniform(0, 1))
            process.send(signal.SIGINT)
            self.events.append("Ctrl-C again")
        self.judge(process)

    def beside(self) -> None:
        first = self.start()
        self.wait(first)
        self.events.append("beside it")
        second = self.start()
        self.judge(first, second)

    def sleep(self) -> None:
        first = self.start()
        self.wait(first)
        self.events.append("SIGSTOP")
        first.send(signal.SIGSTOP)
        second = self.start()
        second.wait()
        name = self.rng.choice(["SIGCONT", "SIGCONT", "SIGKILL"])
        self.events.append(name)
        first.send(signal.SIGCONT if name == "SIGCONT" else signal.SIGKILL)
        self.judge(first, second)

    def full_disk(self) -> None:
        room = int(10 ** self.rng.uniform(2, 6))
        self.events.append(f"disk with {room} bytes")
        with self.disk.full(room):
            self.judge(self.start())

    def damage_beside(self) -> None:
        process = self.start()
        self.wait(process)
        self.events.append("meanwhile")
        self.damage()
        self.judge(process)

    def damage(self) -> None:
        """Change one kept file, or remove it, or all of them."""
        kept = sorted(file for file in self.disk.folder.rglob("*") if file.is_file())
        if not kept:
            return
        file = self.rng.choice(kept)
        how = self.rng.choice(["flip", "flip", "cut", "zeros", "remove", "remove", "remove all of"])
        self.events.append(f"{how} {file.relative_to(self.disk.folder)}")
        lost = {contents(path) for path in kept if path == file or how == "remove all of"}
        with suppress(FileNotFoundError):  # a running process may have renamed it
            self.damaged |= damaged(file, how, self.rng)
        self.finished = {name: digest for name, digest in self.finished.items() if digest not in lost}
        gone = {str(path.relative_to(self.disk.folder)) for path in self.damaged}
        self.finished = {name: digest for name, digest in self.finished.items() if name not in gone}

    def judge(self, *processes: Process) -> None:
        """Wait for processes, and compare what each says and leaves with what it may."""
        done = []
        for process in processes:
            code = process.wait()
            self.ends[self.end_of(process, code)] += 1
            if code == 0:
                done.append(process)
                if process.said != self.alone[process.request].table:
                    self.faults.append(f"{process.request} printed another table")
        if done and self.out not in self.damaged:
            found = contents(self.out)
            if found not in [self.alone[process.request].result for process in processes]:
                self.faults.append(f"the file is not that of {' or '.join(p.request for p in done)}: {found[:40]}")
        self.look(processes)

    def look(self, processes: Sequence[Process]) -> None:
        """Every file must be of one of the requests, and none that was finished may be lost."""
        right = {digest for alone in self.alone.values() for digest in alone.files.values()}
        found = {}
        for file in sorted(self.disk.folder.rglob("*.nc")):
            name = str(file.relative_to(self.disk.folder))
            if file in self.damaged or not intact(file):
                if file not in self.damaged and name.split(".replaced")[0] == name and self.disk.largest_file == 0:
                    self.faults.append(f"{name} is torn")
                continue
            found[name] = contents(file)
            if found[name] not in right:
                self.faults.append(f"{name} is of no request")
            elif (owner := self.owner(file.parent)) and self.alone[owner].files.get(file.name) != found[name]:
                self.faults.append(f"{name} is not that of {owner}")
        replaced = {self.alone[process.request].result for process in processes if process.overwrite}
        for name, digest in self.finished.items():
            if name == self.out.name and found.get(name) in replaced:
                continue  # what --overwrite is for
            if digest not in found.values():
                self.faults.append(f"{name}, which was finished, is lost")
        self.finished = found

    def owner(self, folder: Path) -> str:
        """The request that the files of a folder belong to, where that can be told."""
        file = folder / "request.json"
        if file in self.damaged or not file.exists():
            return ""
        with suppress(OSError, ValueError):
            text = json.loads(file.read_text())
            return next((name for name, alone in self.alone.items() if alone.request == text), "")
        return ""

    def end_of(self, process: Process, code: int | None) -> str:
        """How a process ended, in one word; a fault if it may not end so."""
        if code is None:
            self.faults.append(f"{process.request} hung")
            return "hung"
        lines = [line for line in process.errors.splitlines() if line.strip()]
        if "Traceback" in process.errors:
            self.faults.append(f"traceback: {' / '.join(lines[-12:])[-900:]}")
            return "traceback"
        if code == 0:
            return "right"
        if code < 0:
            if -code not in process.sent:
                self.faults.append(f"died by signal {-code}")
            return "killed"
        if code == 130 and not process.sent:
            self.faults.append("interrupted by nobody")
        sentences = [line for line in lines if not line.startswith(("Saving state", "Stopping"))]
        if len(sentences) != 1:
            self.faults.append(f"exit {code} with {len(sentences)} lines: {' / '.join(sentences)[:300]}")
        elif re.search(r"Errno|Error:|\b0x[0-9a-f]{8}|object at", sentences[0]):
            self.faults.append(f"no sentence: {sentences[0][:300]}")
        self.said(sentences)
        return {2: "refused", 130: "interrupted"}.get(code, f"exit {code}")

    def said(self, sentences: list[str]) -> None:
        if os.environ.get("HISTORIES_SAY"):
            print(f"        {' / '.join(sentences)}", flush=True)

    def finish(self) -> None:
        """To the end: undisturbed, and then with --overwrite; one of them must give the right numbers."""
        for overwrite in (False, True):
            process = self.start("A", overwrite)
            self.judge(process)
            if process.code == 0:
                return
        self.faults.append("no way to the right numbers")


def damaged(file: Path, how: str, rng: random.Random) -> set[Path]:
    """Damage a file, or remove it or its whole folder; the files that are no longer what they were."""
    if how == "remove all of":
        everything = {path for path in file.parent.rglob("*") if path.is_file()}
        for path in everything:
            path.unlink(missing_ok=True)
        return everything
    content = bytearray(file.read_bytes())
    if how == "remove":
        file.unlink()
        return {file}
    if content:
        at = rng.randrange(len(content))
        if how == "flip":
            content[at] ^= 1 << rng.randrange(8)
        elif how == "cut":
            del content[at:]
        else:
            content[at:] = bytes(len(content) - at)
        file.write_bytes(content)
    return {file}


@cache
def run_alone(study: str) -> dict[str, Alone]:
    """Every request of a study by itself, twice: the first time compiles."""
    alone = {}
    for name, command in STUDIES[study].items():
        for _ in range(2):
            with tempfile.TemporaryDirectory() as place:
                out = Path(place) / "run.nc"
                process = Process(name, False, [*command, "--silent", "--out", str(out)])
                if process.wait() != 0:
                    raise SystemExit(f"{name} alone: {process.errors or process.said}")
                files = {file.name: contents(file) for file in Path(place).rglob("*.nc")}
                request = json.loads((Path(place) / "run.ladders/request.json").read_text())
                alone[name] = Alone(process.said, contents(out), files, request, process.seconds)
        print(f"{study} {name} alone: {alone[name].seconds:.1f} s, {len(alone[name].files)} files", flush=True)
    return alone


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--histories", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="number of the first one (default: 0)")
    parser.add_argument("--walks", type=float, default=0.1, help="share of histories of a study with walks (default: 0.1)")
    parser.add_argument("--seed", type=int, default=1, help="of the random events")
    parser.add_argument("--keep", type=Path, help="file of histories: new ones are added, those in it not run again")
    chosen = parser.parse_args(arguments)
    kept = [] if chosen.keep is None or not chosen.keep.exists() else chosen.keep.read_text().splitlines()
    known = {row["history"]: row for row in map(json.loads, kept)}
    run_alone("ladder")
    table = harness.Table({"history": "5d", "verdict": "6s", "events": "s"})
    for number in range(chosen.first, chosen.first + chosen.histories):
        if number in known:
            continue
        with Disk() as disk:
            rng = random.Random(f"{chosen.seed} {number}")
            history = History(disk, "walk" if rng.random() < chosen.walks else "ladder", rng)
            history.run()
        table.add(number, "BAD" if history.faults else "good", ", ".join(history.events))
        for fault in history.faults:
            print(f"        {fault}", flush=True)
        known[number] = {
            "history": number,
            "events": history.events,
            "faults": history.faults,
            "ends": dict(history.ends),
        }
        if chosen.keep is not None:
            with open(chosen.keep, "a") as file:
                file.write(json.dumps(known[number]) + "\n")
    ends = sum((Counter(row["ends"]) for row in known.values()), Counter[str]())
    bad = sum(bool(row["faults"]) for row in known.values())
    print(f"\n{len(known)} histories, {bad} bad; processes: " + ", ".join(f"{n} {end}" for end, n in ends.most_common()))
    return int(bad > 0)


if __name__ == "__main__":
    os.environ.pop("XLA_FLAGS", None)
    multiprocessing.set_start_method("fork")
    np.seterr(all="ignore")
    sys.exit(main())
