"""Faults of files: a full or read-only disk, output that exists, malformed ladders."""

from __future__ import annotations

import contextlib
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import quenchphys as qp
from benchmarks.robustness.fault_tools import Meter, Verdict, fault, quench, resumes, same, seen


def limited(bytes_: int) -> None:
    """No file may grow beyond this from now on."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@fault("disk full (limit on files) during a checkpoint", alone=True)
def _(place: Path) -> Verdict:
    quench()
    spoil = Meter(lambda level: limited(2000) if level == 32 else None)
    what, good = seen(lambda: quench(checkpoint=qp.Checkpoint(place / "run", levels=16), progress=spoil))
    limited(resource.RLIM_INFINITY)
    more, again = resumes(place / "run")
    return what + more, good and again


@fault("disk full (small tmpfs) during a checkpoint", tmpfs="1200k")
def _(place: Path) -> Verdict:
    quench()
    filler = place / "small" / "filler"

    def fill(level: int) -> None:
        if level == 32:
            with contextlib.suppress(OSError), open(filler, "wb") as file:
                while True:
                    file.write(bytes(512))
                    file.flush()

    folder = place / "small" / "run"
    what, good = seen(lambda: quench(checkpoint=qp.Checkpoint(folder, levels=16), progress=Meter(fill)))
    filler.unlink(missing_ok=True)
    more, again = resumes(folder)
    return what + more, good and again


def save_fails(folder: Path, spoil: Callable[[], Any], mend: Callable[[], Any]) -> Verdict:
    """An older file is there; a save over it fails; it must still be whole, and nothing else left behind."""
    ladder, out = quench(), folder / "ladder.nc"
    ladder.save(out)
    before = out.read_bytes()
    spoil()
    what, good = seen(lambda: ladder.save(out, overwrite=True))
    mend()
    left = [entry.name for entry in folder.iterdir() if entry.suffix == ".part"]
    kept = out.read_bytes() == before and same(qp.load(out), ladder) and not left
    again = ladder.save(out, overwrite=True).exists()
    return what + ("; the older file is whole" if kept else "; the older file is LOST"), good and kept and again


@fault("disk full (limit on files) during ladder.save", alone=True)
def _(place: Path) -> Verdict:
    return save_fails(place, lambda: limited(30_000), lambda: limited(resource.RLIM_INFINITY))


@fault("disk full (small tmpfs) during ladder.save", tmpfs="1200k")
def _(place: Path) -> Verdict:
    filler = place / "small" / "filler"

    def fill() -> None:
        with contextlib.suppress(OSError), open(filler, "wb") as file:
            while True:
                file.write(bytes(512))
                file.flush()

    return save_fails(place / "small", fill, filler.unlink)


@fault("output folder read-only", tmpfs="1200k")
def _(place: Path) -> Verdict:
    subprocess.run(["mount", "-o", "remount,ro", str(place / "small")], check=True)
    return seen(lambda: quench().save(place / "small" / "ladder.nc"))


@fault("checkpoint folder read-only", tmpfs="1200k")
def _(place: Path) -> Verdict:
    subprocess.run(["mount", "-o", "remount,ro", str(place / "small")], check=True)
    return seen(lambda: quench(checkpoint=place / "small" / "run"))


@fault("output exists already")
def _(place: Path) -> Verdict:
    (place / "ladder.nc").write_text("a year of work")
    what, good = seen(lambda: quench().save(place / "ladder.nc"))
    return what, good and (place / "ladder.nc").read_text() == "a year of work"


@fault("malformed ladder files (text, cut short, one bit flipped)")
def _(place: Path) -> Verdict:
    content = quench().save(place / "ladder.nc").read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    verdicts = []
    for name, data in (("text", b"not a ladder"), ("cut", content[: len(content) // 2]), ("flipped", bytes(flipped))):
        (place / name).write_bytes(data)
        verdicts.append(seen(lambda name=name: qp.load(place / name)))
    return " | ".join(what for what, _ in verdicts), all(good for _, good in verdicts)
