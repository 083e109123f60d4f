"""What users see when something goes wrong: each fault is made to happen, and a table shows the message and a verdict.

    python -m benchmarks.robustness.faults [name ...]

A fault is passed when the user sees one sentence (an exception of Python or quenchphys with one line, or a report), when
nothing that was written before is lost, and when no number is wrong.  Faults that need a process of their own (signals,
limits, small file systems) run in one; those that need a mount are skipped where mounting is not permitted.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import harness
from benchmarks.robustness import faults_of_checkpoints, faults_of_files, faults_of_models, faults_of_processes
from benchmarks.robustness.fault_tools import CHILDREN, FAULTS

KINDS = (faults_of_models, faults_of_files, faults_of_checkpoints, faults_of_processes)  # each registers its own


def main(arguments: Sequence[str] | None = None) -> int:
    parser = harness.parser(__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of faults; default: all of them")
    parser.add_argument("--child", nargs=2, metavar=("NAME", "PLACE"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        name, place = given.child
        print(json.dumps(CHILDREN[name](Path(place))), flush=True)
        os._exit(0)  # without the usual clean-up, which a fault may have made impossible
    return table([name for name in FAULTS if not given.names or any(part in name for part in given.names)])


def table(chosen: list[str]) -> int:
    """Make the chosen faults happen; 1 if a verdict is bad."""
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
    raise SystemExit(main())
