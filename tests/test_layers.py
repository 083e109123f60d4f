"""Which module may import which: read from the source, lazy imports included, imports for types alone left out."""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("lattices", "quenchphys", "observables", "workflows")

# Modules of the engine that observables may use: runs, how they ended, how they are shown, their files, and helpers without
# parameters.
FOR_OBSERVABLES = (
    "quenchphys.console.presentation",
    "quenchphys.files",
    "quenchphys.ladder",
    "quenchphys.outcome",
    "quenchphys.run",
    "quenchphys.smc.tails",
    "quenchphys.walk",
)
ALLOWED = {
    "lattices": ("lattices",),
    "quenchphys": ("quenchphys",),
    "observables": ("observables", *FOR_OBSERVABLES),
    "workflows": PACKAGES,
}
EXCEPTIONS = {"quenchphys.__main__": ("workflows.command_line",)}  # `python -m quenchphys` starts the command line


@cache
def modules() -> dict[str, Path]:
    """Every module of the project by its dotted name."""
    found = {}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


class Imports(ast.NodeVisitor):
    """Modules of ours that one module imports, wherever the import stands."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for rest in node.orelse:
                self.visit(rest)
            return
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.found |= {alias.name for alias in node.names if alias.name in modules()}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert node.level == 0, "relative imports hide what is imported"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            self.found |= {inner} & modules().keys() or {str(node.module)} & modules().keys()

    def visit_Call(self, node: ast.Call) -> None:
        """`import_module("name")` is an import as well."""
        if ast.unparse(node.func).endswith("import_module") and node.args and isinstance(node.args[0], ast.Constant):
            self.found |= {str(node.args[0].value)} & modules().keys()
        self.generic_visit(node)


@cache
def imports() -> dict[str, frozenset[str]]:
    """{module: modules of ours that it imports}"""
    graph = {}
    for name, path in modules().items():
        visitor = Imports()
        visitor.visit(ast.parse(path.read_text()))
        graph[name] = frozenset(visitor.found - {name})
    return graph


def within(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def test_the_reader_of_imports_finds_what_there_is():
    """The tests below would pass on an empty graph."""
    assert "quenchphys.storage.netcdf" in imports()["quenchphys.ladder"]
    assert "quenchphys.targets" in imports()["quenchphys"], "import_module"
    assert "observables.draws" in imports()["observables.plot"], "inside a function"
    assert "quenchphys.ladder" not in imports()["quenchphys.console.report"], "for types alone"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_is_below_it(package):
    wrong = [
        f"{name} imports {other}"
        for name, others in imports().items()
        if within(name, (package,))
        for other in sorted(others)
        if not within(other, ALLOWED[package] + EXCEPTIONS.get(name, ()))
    ]
    assert wrong == []


def test_no_import_cycles():
    graph, done, path = imports(), set(), []

    def visit(name: str) -> None:
        assert name not in path, "a cycle: " + " -> ".join([*path[path.index(name) :], name])
        if name in done:
            return
        path.append(name)
        for other in sorted(graph[name]):
            visit(other)
        path.pop()
        done.add(name)

    for name in sorted(graph):
        visit(name)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_named_like_a_function_it_or_its_package_exports(package):
    """`import a.b` would replace the function a.b by the module; and a reader could not tell which is meant."""
    exporting = importlib.import_module(package)
    functions = {name for name in exporting.__all__ if inspect.isfunction(getattr(exporting, name))}
    shadowed = {f"{package}.{function}" for function in functions}
    own = [
        name
        for name in modules()
        if within(name, (package,))
        and not name.endswith("__main__")
        and inspect.isfunction(getattr(importlib.import_module(name), name.split(".")[-1], None))
    ]
    assert sorted(shadowed & modules().keys()) + own == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_that_it_is_typed(package):
    assert (ROOT / package / "py.typed").is_file()
