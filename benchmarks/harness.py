"""What all benchmarks share: arguments, clocks, tables, results as JSON, and child processes.

Every script is run from the root of the repository as `python -m benchmarks.<folder>.<script>`; its `main(arguments)` takes
the command line, and `--help` prints the docstring of the script.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
OUT = Path("out")

Name = TypeVar("Name")


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser of arguments whose help is the docstring of the script."""
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)


class Timer:
    """Seconds of wall time and of processor time since the timer was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def processor(self) -> float:
        return time.process_time() - self._processor

    def costs(self) -> dict[str, float]:
        """Both times, under the names they have in the JSON files."""
        return {"seconds": self.wall, "cpu_seconds": self.processor}


def fastest(
    runs: Mapping[Name, Callable[[], Any]], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[Name, float]:
    """Shortest time of each run in seconds.

    The runs take turns, so that noise of the machine hits all of them; one round before, which compiles, is not counted.
    """
    best = dict.fromkeys(runs, float("inf"))
    for number in range(rounds + 1):
        for name, run in runs.items():
            begin = clock()
            run()
            if number:
                best[name] = min(best[name], clock() - begin)
    return best


class Table:
    """A table that prints each row as soon as it is measured, and keeps the rows for `save`.

    Columns are {heading: format}, such as {"method": "16s", "error": ".3f"}; words stand left and numbers right.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.rows: list[dict[str, Any]] = []
        self._columns = columns
        print(self._line(list(columns)), flush=True)

    def add(self, *values: Any, note: str = "") -> None:
        """One row, a value for each column, and a remark behind it."""
        self.rows.append(dict(zip(self._columns, values, strict=True)))
        cells = [format(value, how) for value, how in zip(values, self._columns.values(), strict=True)]
        print(f"{self._line(cells)}   {note}".rstrip(), flush=True)

    def _line(self, cells: list[str]) -> str:
        aligned = []
        for cell, (heading, how) in zip(cells, self._columns.items(), strict=True):
            words = how.endswith("s")
            width = max(len(heading), len(format("" if words else 0, how)))
            aligned.append(cell.ljust(width) if words else cell.rjust(width))
        return "   ".join(aligned)


def save(name: str, content: Any) -> Path:
    """Write a result to out/<name>.json."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(content, indent=1))
    return path


def kept(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A row of a table from its file if it is there, else made, with what that cost, and written to the file."""
    if path.exists():
        return json.loads(path.read_text())
    path.parent.mkdir(parents=True, exist_ok=True)
    timer = Timer()
    row = make()
    row |= timer.costs()
    path.write_text(json.dumps(row, indent=1))
    return row


def environment(**more: str) -> dict[str, str]:
    """Environment of a child process that imports this tree, wherever it runs."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))} | more


def use_one_core() -> None:
    """Let JAX compute on one core; to be called before anything is computed, because JAX reads this when it starts."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
