"""What does a user see when something goes wrong?  Each fault is made to happen; a table says what came of it.

    python benchmarks/robustness/faults.py [name ...]

A fault is passed when the user sees one sentence (an exception of Python or quenchphys with one line, or a report), when
nothing that was written before is lost, and when no number is wrong.  Faults that need a process of their own (signals,
limits, small file systems) run in one; those that need a mount are skipped where mounting is not permitted.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import faults_of_checkpoints
import faults_of_files
import faults_of_models
import faults_of_processes
from fault_tools import CHILDREN, FAULTS

KINDS = (faults_of_models, faults_of_files, faults_of_checkpoints, faults_of_processes)  # each registers its own


def main(names: list[str]) -> int:
    # JAX warns of forking itself; what counts is whether the worker hangs.
    chosen = [words for words in FAULTS if not names or any(name in words for name in names)]
    bad = 0
    print("| fault | what the user sees | verdict |\n|---|---|---|", flush=True)
    for words in chosen:
        with tempfile.TemporaryDirectory() as place:
            try:
                what, good = FAULTS[words](Path(place))
            except BaseException as error:
                what, good = f"UNEXPECTED {type(error).__name__}: {str(error).strip().splitlines()[:1]}", False
            what = what.replace(place, "PLACE").replace("|", "/").replace("\n", " // ")
        bad += good is False
        print(f"| {words} | {what} | {'not tried' if good is None else 'good' if good else 'BAD'} |", flush=True)
    print(f"\n{len(chosen)} faults, {bad} bad")
    return int(bad > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(CHILDREN[sys.argv[2]](Path(sys.argv[3]))), flush=True)
        os._exit(0)
    raise SystemExit(main(sys.argv[1:]))
