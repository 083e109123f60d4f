"""Faults of checkpoints: torn ones, those of another run, two runs on one folder, signals."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp

import quenchphys as qp
from benchmarks import harness
from benchmarks.robustness.fault_tools import SMALL, Gaussian, Verdict, fault, quench, resumes, same, seen, spoiled


def kept(place: Path) -> Path:
    """The folder of a finished run with checkpoints."""
    quench(checkpoint=qp.Checkpoint(place / "run", levels=16))
    return place / "run"


def tear(folder: Path, how_many: int) -> None:
    """Damage the newest generations: every file of the state cut in half."""
    steps = sorted((e for e in (folder / "generations").iterdir() if e.name.isdigit()), key=lambda e: -int(e.name))
    for step in steps[:how_many]:
        for file in [f for f in (step / "state").rglob("*") if f.is_file()]:
            os.truncate(file, file.stat().st_size // 2)


def with_output(call: Callable[[], Any]) -> tuple[Any, str]:
    """The result of a call, and what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        result = call()
    return result, " ".join(printed.getvalue().split())


@fault("newest checkpoint torn")
def _(place: Path) -> Verdict:
    folder = kept(place)
    tear(folder, 1)
    ladder, printed = with_output(lambda: quench(checkpoint=folder))
    good = same(ladder, quench())
    return printed + ("; same numbers" if good else "; OTHER NUMBERS"), good and "Skipping the checkpoint" in printed


@fault("both checkpoints torn")
def _(place: Path) -> Verdict:
    folder = kept(place)
    tear(folder, 2)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    (what, good), _ = with_output(lambda: seen(lambda: quench(checkpoint=folder)))
    untouched = size == sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return what, good and untouched


@fault("resumed with other settings")
def _(place: Path) -> Verdict:
    folder = kept(place)
    what, good = seen(lambda: quench(checkpoint=folder, particles=128))
    more, again = resumes(folder)
    return what + more, good and again


@fault("resumed with another model")
def _(place: Path) -> Verdict:
    qp.quench(Gaussian(), **SMALL, checkpoint=place / "run")
    return seen(lambda: qp.quench(spoiled(energy=lambda x: 2 * jnp.sum(x * x)), **SMALL, checkpoint=place / "run"))


@fault("resumed with another version of quenchphys")
def _(place: Path) -> Verdict:
    folder = kept(place)
    now = qp.__version__
    qp.__version__ = "99.0"
    try:
        return seen(lambda: quench(checkpoint=folder))
    finally:
        qp.__version__ = now


@fault("checkpoint folder is a file")
def _(place: Path) -> Verdict:
    (place / "run").write_text("a file")
    what, good = seen(lambda: quench(checkpoint=place / "run"))
    return what, good and (place / "run").read_text() == "a file"


@fault("checkpoint folder holds something else")
def _(place: Path) -> Verdict:
    (place / "thesis.tex").write_text("ten years of work")
    what, good = seen(lambda: quench(checkpoint=place))
    return what, good and [e.name for e in place.iterdir() if e.name != "lock"] == ["thesis.tex"]


SLOW = """
import sys, time
import quenchphys as qp
class Slow:
    def update(self, level, *rest):
        print("level", level, flush=True)
        time.sleep(0.5)
    def close(self):
        pass
qp.quench(qp.targets.gaussian(16), particles=64, replicas=2, seed=3, checkpoint=sys.argv[1], progress=Slow())
"""


def slow_run(folder: Path) -> subprocess.Popen[str]:
    """A run in another process, after its first block of levels."""
    command = [sys.executable, "-c", SLOW, str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=harness.environment()
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@fault("two runs on one checkpoint folder")
def _(place: Path) -> Verdict:
    other = slow_run(place / "run")
    what, good = seen(lambda: quench(checkpoint=place / "run"))
    other.communicate()
    more, again = resumes(place / "run")
    return what + more, good and again and other.returncode == 0


def signalled(place: Path, number: int) -> Verdict:
    process = slow_run(place / "run")
    process.send_signal(number)
    _, errors = process.communicate()
    what = errors.strip().splitlines()[-1] if errors.strip() else "nothing"
    more, again = resumes(place / "run")
    return what + more, process.returncode != 0 and "the same call goes on" in what and again


@fault("SIGTERM")
def _(place: Path) -> Verdict:
    return signalled(place, signal.SIGTERM)


@fault("Ctrl-C")
def _(place: Path) -> Verdict:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # else a child of a background job ignores it
    try:
        return signalled(place, signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

