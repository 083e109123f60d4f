"""Every benchmark can be imported, explains itself, and is listed in the index; every command shown anywhere exists."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "benchmarks").glob("*/*.py"))
INDEX = ROOT / "benchmarks" / "README.md"
TEXT = ("*.py", "*.md")


def name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def rows() -> list[list[str]]:
    """[script, question, how long it takes, pages that show its numbers] of every row of the index."""
    cells = ([cell.strip() for cell in line.split("|")[1:-1]] for line in INDEX.read_text().splitlines())
    return [[row[0].strip("`"), *row[1:]] for row in cells if row and row[0].endswith(".py`")]


def module(file: Path):
    return importlib.import_module(f"benchmarks.{file.parent.name}.{file.stem}")


@pytest.mark.parametrize("file", FILES, ids=name)
def test_benchmark_starts_and_explains_itself(file, capsys):
    """Nothing is run: the module is imported, and a script prints its docstring as help."""
    benchmark = module(file)
    first = (benchmark.__doc__ or "").splitlines()[0]
    assert first.endswith(".") and "?" not in first
    if not hasattr(benchmark, "main"):
        return
    assert f"python -m {benchmark.__name__}" in benchmark.__doc__
    with pytest.raises(SystemExit) as ended:
        benchmark.main(["--help"])
    assert ended.value.code == 0
    assert first.split()[0] in capsys.readouterr().out


def test_index_lists_every_benchmark_once():
    assert sorted(script for script, *_ in rows()) == sorted(map(name, FILES))
    assert all(question.endswith(("?", ".")) for _, question, _, _ in rows())


def test_pages_of_the_index_show_their_benchmark():
    for script, _, _, pages in rows():
        dotted = "benchmarks." + script.removesuffix(".py").replace("/", ".")
        for link in re.findall(r"\]\(([^)]+)\)", pages):
            text = (INDEX.parent / link).read_text()
            assert dotted in text or f"benchmarks/{script}" in text, f"{link} does not mention {script}"


def test_commands_and_paths_exist():
    """Scripts are run as modules, from the root, so that they import the tree they belong to."""
    for pattern in TEXT:
        for file in ROOT.rglob(pattern):
            inside = file.relative_to(ROOT)
            if inside.parts[0].startswith(".") or file == Path(__file__):
                continue
            text = file.read_text()
            assert not re.search(r"python benchmarks/", text), f"{inside}: write python -m benchmarks.folder.script"
            for dotted in re.findall(r"python -m (benchmarks(?:\.\w+)+)", text):
                assert (ROOT / (dotted.replace(".", "/") + ".py")).is_file(), f"{inside} names {dotted}"
            for path in re.findall(r"\b(benchmarks/\w+/\w+\.py)", text):
                assert (ROOT / path).is_file(), f"{inside} names {path}, which does not exist"
