"""Forty mistakes on the command line and in Python: what is printed, and the exit code.

    python -m benchmarks.robustness.mistakes            # a table; the last line counts the answers that are not one sentence
    python -m benchmarks.robustness.mistakes --ctrl-c   # also Ctrl-C at several moments, in processes of their own

Every answer must be one sentence, without a traceback, the numbers of the operating system, or the insides of a library.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import lattices
import observables
import quenchphys as qp
import workflows
from benchmarks import harness
from workflows.command_line import main as quenchphys_command

RAW = re.compile(r"Traceback|\[Errno|0x[0-9a-f]|=None|Unable to allocate|<class|object at|Error:")
MODEL = ["--L", "4", "--set", "mu2=2.3"]

COMMANDS = [
    [],
    ["coexistnce", "--L", "8"],
    ["coexistence", "--l", "8"],
    ["coexistence", "--L", "8", "--brackets", "2.2", "2.4"],
    ["coexistence", "--L", "8", "--pilot_particles", "100"],
    ["coexistence", "--L", "eight"],
    ["coexistence", "--L", "8.5"],
    ["coexistence"],
    ["coexistence", "--L", "-4"],
    ["coexistence", "--L", "1"],
    ["coexistence", "--L", "8", "--shape", "8", "8"],
    ["coexistence", "--L", "8", "--bracket", "2.4"],
    ["coexistence", "--L", "8", "--bracket", "2.4", "2.2"],
    ["coexistence", "--L", "8", "--bracket", "5", "6"],
    ["coexistence", "--L", "8", "--model", "phi5"],
    ["coexistence", "--L", "8", "--model", "phi4"],
    ["coexistence", "--L", "8", "--coupling", "mu"],
    ["coexistence", "--L", "8", "--set", "mu2=2.3"],
    ["coexistence", "--L", "8", "--groups", "4"],
    ["coexistence", "--L", "8", "--out", "no/such/folder/run.nc"],
    ["coexistence", "--L", "8", "--plot", "run.bmp"],
    ["coexistence", "--L", "100000"],
    ["fss", "--bracket", "2.2", "2.4"],
    ["fss", "--sizes", "8", "12", "--bracket", "2.2", "2.4"],
    ["fss", "--sizes", "8", "12", "16", "--bracket", "2.2", "2.4", "--order", "third"],
    ["fss", "--sizes", "8", "12", "16", "--bracket", "2.2", "2.4", "--dask", "nonsense"],
    ["zbeta", "--L", "8"],
    ["zbeta", *MODEL, "--beta", "1", "0", "5"],
    ["zbeta", *MODEL, "--set", "mu2=2.4"],
    ["quench", "--L", "8", "--set", "mu2=2.3"],
    ["quench", *MODEL, "--particles", "1", "--out", "ladder.nc"],
    ["show", "nothing.nc"],
    ["show", "text.nc"],
    ["show", "."],
    ["plot", "text.nc", "--out", "a.png"],
    ["pool", "text.nc", "--out", "all.nc"],
    ["calibrate", "--target", "gauss"],
]

CALLS: list[tuple[str, Callable[[], Any]]] = [
    ("lattices.phi6(mu2=2.3)", lambda: lattices.phi6(mu2=2.3)),
    ("lattices.phi6(L=8, mu2='a')", lambda: lattices.phi6(L=8, mu2="a")),  # type: ignore[arg-type]
    ("qp.quench(3)", lambda: qp.quench(3)),  # type: ignore[arg-type]
    ("qp.quench(phi6, particles=1)", lambda: qp.quench(lattices.phi6(L=4, mu2=2.3), particles=1)),
    ("qp.quench(phi6, seed=-1)", lambda: qp.quench(lattices.phi6(L=4, mu2=2.3), seed=-1)),
    ("qp.load('nothing.nc')", lambda: qp.load("nothing.nc")),
    ("qp.load('text.nc')", lambda: qp.load("text.nc")),
    ("observables.partition_function('run.nc')", lambda: observables.partition_function("run.nc")),  # type: ignore[arg-type]
    ("observables.Pool([])", lambda: observables.Pool([])),
    ("workflows.coexistence(L=8, brackt=(2, 3))", lambda: workflows.coexistence(L=8, brackt=(2, 3))),  # type: ignore[arg-type]
    ("workflows.coexistence(L=8, bracket=2.3)", lambda: workflows.coexistence(L=8, bracket=2.3)),  # type: ignore[arg-type]
    ("workflows.pool(['nothing.nc', 'no.nc'])", lambda: workflows.pool(["nothing.nc", "no.nc"])),
    ("workflows.load_result('text.nc')", lambda: workflows.load_result("text.nc")),
    (
        "workflows.partition_function(phi6, beta=-1)",
        lambda: workflows.partition_function(lattices.phi6(L=4, mu2=2.3), beta=-1.0),
    ),
    (
        "workflows.partition_function(phi6, beta=nan)",
        lambda: workflows.partition_function(lattices.phi6(L=4, mu2=2.3), beta=np.nan),
    ),
]


def one_sentence(text: str) -> bool:
    """One line that ends as a sentence does, with nothing raw in it."""
    lines = text.strip().splitlines()
    return len(lines) == 1 and RAW.search(text) is None and lines[0].rstrip().endswith((".", ")", "?"))


def typed(words: list[str]) -> tuple[int, str]:
    """Exit code and standard error of a command."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        samples = words and words[0] in ("coexistence", "fss", "zbeta", "quench")
        code = quenchphys_command([*words, *(["--silent"] if samples else [])])
    return int(code), said.getvalue().strip()


def called(call: Callable[[], Any]) -> tuple[str, str]:
    """Kind and text of what a call raised."""
    try:
        call()
    except Exception as wrong:
        return type(wrong).__name__, str(wrong)
    return "nothing", ""


def interrupted(after: float, words: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and standard error of a command that gets Ctrl-C after some seconds."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from workflows.command_line import main; sys.exit(main(sys.argv[1:]))", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=600)[1]
    return process.returncode, " | ".join(line for line in said.strip().splitlines() if line)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("--ctrl-c", action="store_true")
    chosen = parser.parse_args(arguments)
    home, bad, number = Path.cwd(), 0, 0
    print("| # | what was typed or called | answer | what was printed |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        os.chdir(folder)
        Path("text.nc").write_text("not a file of ours\n")
        for words in COMMANDS:
            number += 1
            code, said = typed(words)
            good = one_sentence(said) and code == 2
            bad += not good
            print(f"| {number} | `quenchphys {' '.join(words)}` | {code} | {said}{'' if good else ' **BAD**'} |", flush=True)
        for text, call in CALLS:
            number += 1
            kind, said = called(call)
            good = one_sentence(said if said.endswith((".", ")", "?")) else said + ".") and kind != "nothing"
            bad += not good
            print(f"| {number} | `{text}` | {kind} | {said}{'' if good else ' **BAD**'} |", flush=True)
        left = sorted(path.name for path in folder.iterdir() if path.name != "text.nc")
        os.chdir(home)
        if chosen.ctrl_c:
            for after in (0.3, 1.5, 4.0, 8.0, 14.0, 20.0):
                for more in ([], ["--out", "run.nc", "--overwrite"]):
                    number += 1
                    words = ["coexistence", "--L", "8", "--silent", "--sweeps", "20000", *more]
                    code, said = interrupted(after, words, folder)
                    bad += code != 130 or RAW.search(said) is not None
                    what = f"Ctrl-C after {after:g} s{' with --out' if more else ''}"
                    print(f"| {number} | {what} | {code} | {said} |", flush=True)
    print(f"\n{number} mistakes, {bad} answers that are not one sentence; files left behind: {left or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
