"""Tests of the documentation: its code runs, files and names it mentions exist, and the site builds without a warning."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import quenchphys as qp

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
IMAGE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)\s]+)")
EXCERPT = 'title="excerpt"'  # marks a block, for the reader too, that is not a complete program
PACKAGES = ("lattices", "quenchphys", "observables", "workflows")
MAP = ROOT / "CONTRIBUTING.md"
NUMBERS = sorted((ROOT / "docs" / "numbers").glob("*.txt"))


def _script(path: str):
    """A script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "docs" / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FIGURES = _script("scripts/figures.py")


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line, code) of the Python blocks of a page that are complete programs."""
    text = page.read_text()
    found = []
    for fence in FENCE.finditer(text):
        info = fence["info"].split(maxsplit=1)
        if info and info[0] == "python" and EXCERPT not in fence["info"]:
            found.append((text.count("\n", 0, fence.start()) + 2, fence["code"]))
    return found


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=name)
def test_code_of_a_page_runs(page, small):
    namespace: dict = {"__name__": "__main__"}
    for line, code in blocks(page):
        # With blank lines in front, an error shows the line number of the page.
        compiled = compile("\n" * (line - 1) + code, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compiled, namespace)


def test_every_page_is_read():
    """The pattern misses no block: every opening Python fence belongs to a block that was found."""
    for page in PAGES:
        opened = re.findall(r"^```python.*$", page.read_text(), re.MULTILINE)
        assert len(opened) == len(blocks(page)) + sum(EXCERPT in line for line in opened), name(page)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pictures_of_a_page_exist(page):
    for path in IMAGE.findall(page.read_text()):
        assert (page.parent / path).is_file(), f"{name(page)} shows {path}, which does not exist"


def test_every_picture_has_a_script_and_a_reader():
    scripts = "\n".join(script.read_text() for script in (ROOT / "docs" / "scripts").glob("*.py"))
    scripts += "\n".join(entry.name for entry in FIGURES.ENTRIES)
    pages = "\n".join(page.read_text() for page in PAGES)
    for figure in [*(ROOT / "docs" / "figures").iterdir(), *(ROOT / "docs" / "gallery").glob("*.png")]:
        assert figure.stem in scripts, f"no script in docs/scripts names {figure.stem}"
        assert figure.name in pages, f"no page shows {figure.name}"


def test_commands_of_the_pages_exist():
    """Scripts and benchmarks that a page tells the reader to run."""
    for page in [*PAGES, MAP]:
        text = page.read_text()
        paths = re.findall(r"\b((?:docs/scripts|benchmarks|tests)/[\w/]+\.py)", text)
        paths += [f"{dotted.replace('.', '/')}.py" for dotted in re.findall(r"python -m (benchmarks[\w.]+\w)", text)]
        for path in paths:
            assert (ROOT / path).is_file(), f"{name(page)} names {path}, which does not exist"


def test_the_map_of_the_house_is_true():
    """Every file and folder of ours that CONTRIBUTING.md names exists, and every folder of the packages is named."""
    text = MAP.read_text()
    for path in re.findall(r"`((?:lattices|quenchphys|observables|workflows|tests|benchmarks|docs)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), f"CONTRIBUTING.md names {path}, which does not exist"
    for package in PACKAGES:
        for folder in (path.parent for path in (ROOT / package).rglob("__init__.py")):
            assert f"`{folder.relative_to(ROOT)}/`" in text, f"CONTRIBUTING.md does not name the folder {folder.name}"


def test_the_map_names_every_place_once():
    rows = [line.split("|")[1] for line in MAP.read_text().splitlines() if line.startswith("| `")]
    places = [place for row in rows for place in re.findall("`([^`]+)`", row)]
    assert len(places) > 50 and sorted(places) == sorted(set(places))


def test_commands_of_the_tutorials_are_those_of_their_figures():
    """The commands on the pages are those that drew the figures, except for the names of files."""
    drawn = {entry.command for entry in FIGURES.ENTRIES if entry.group == "workflows"}
    studies = r"(?:coexistence|fss|zbeta) [^`\n]*--(?:bracket|beta)[^`\n]*|phase-diagram --out[^`\n]*"
    command = re.compile(rf"\b(quenchphys (?:{studies}))")
    shown = set()
    for page in PAGES:
        for line in command.findall(page.read_text()):
            if "--coordinator" not in line and "--coupling" not in line:  # these draw nothing
                shown.add(re.sub(r" --(?:out|plot|dask) \S+", "", line))
    assert shown == drawn


def test_names_of_the_pages_exist():
    """Every dotted name of our packages in backquotes is a module, or an attribute of one."""
    for page in PAGES:
        for dotted in re.findall(r"`((?:quenchphys|lattices|observables|workflows)(?:\.\w+)+)", page.read_text()):
            found, *rest = dotted.split(".")
            thing = importlib.import_module(found)
            for part in rest:
                with contextlib.suppress(ModuleNotFoundError):
                    importlib.import_module(f"{found}.{part}")
                assert hasattr(thing, part), f"{name(page)} names {dotted}, which does not exist"
                thing, found = getattr(thing, part), f"{found}.{part}"


def test_outcomes_are_all_explained():
    text = (ROOT / "docs" / "how-to" / "report.md").read_text()
    rows = re.findall(r"^\| \*(.+?)\* \| (yes|no) \|", text, re.MULTILINE)
    assert dict(rows) == {outcome.value: "yes" if outcome.trusted else "no" for outcome in qp.Outcome}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The documentation, built as strictly as for publication."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package, site):
    page = ROOT / "docs" / "reference" / f"{package}.md"
    documented = re.findall(r"^::: ([\w.]+)", page.read_text(), re.MULTILINE)
    documented += re.findall(r'\bid="([\w.]+)"', (site / "reference" / f"{package}.html").read_text())
    shown = {dotted.rpartition(".")[2] for dotted in documented if dotted.startswith(f"{package}.")}
    missing = {public for public in importlib.import_module(package).__all__ if not public.startswith("_")} - shown
    assert not missing, f"not in docs/reference/{package}.md: {', '.join(sorted(missing))}"


def _entries(page: Path) -> Iterator[tuple[str, object]]:
    """Functions and classes of a page of the reference, by their names."""
    for entry in re.findall(r"^::: .+(?:\n {4}.*)*", page.read_text(), re.MULTILINE):
        dotted = entry.split()[1]
        *path, last = dotted.split(".")
        thing = getattr(importlib.import_module(".".join(path)), last) if path else importlib.import_module(last)
        if not inspect.ismodule(thing):
            yield dotted, thing
            continue
        members = re.search(r"members: \[(.+)\]", entry)
        names = members[1].split(", ") if members else getattr(thing, "__all__", _defined_in(thing))
        yield from ((f"{dotted}.{name}", getattr(thing, name)) for name in names)


def _defined_in(module) -> list[str]:
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return [key for key in own if not key.startswith("_")]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_entry_of_the_reference_has_an_example(package):
    for dotted, thing in _entries(ROOT / "docs" / "reference" / f"{package}.md"):
        if inspect.isfunction(thing) or inspect.isclass(thing):
            assert ">>>" in (inspect.getdoc(thing) or ""), f"{dotted} has no example"


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in navigation, f"mkdocs.yml does not list {name(page)}"


def test_formulas_of_the_site_are_recognised(site):
    for page in set(site.rglob("*.html")) - set((site / "notebooks").iterdir()):  # in notebooks no formula is marked
        article = page.read_text().partition("<article")[2].partition("</article")[0]
        prose = re.sub(r'<(span|div) class="arithmatex">.*?</\1>|<(code|pre)\b.*?</\2>', "", article, flags=re.DOTALL)
        left = re.search(r"\$|\\(frac|sum|nu|beta|phi|langle|mathbb)\b", prose)
        assert left is None, f"{page.relative_to(site)}: a formula was not recognised near {prose[left.start() :][:60]!r}"


def test_the_site_needs_no_network(site):
    """Scripts, styles and pictures lie beside the pages, and so do the fonts of the formulas."""
    for page in site.rglob("*.html"):
        text = page.read_text()
        asked = re.findall(r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\s\">]+)", text)
        asked += re.findall(r"<link(?![^>]*canonical)[^>]* href=\"?(https?:[^\s\">]+)", text)
        assert not asked, f"{page.relative_to(site)} loads {asked}"
        if 'class="arithmatex"' in text:
            assert "katex.min.js" in text and "katex.min.css" in text, page
    styles = (site / "assets" / "katex" / "katex.min.css").read_text()
    fonts = set(re.findall(r"url\((fonts/[\w-]+\.woff2)\)", styles))
    assert fonts and all((site / "assets" / "katex" / font).is_file() for font in fonts)


def test_every_page_shows_the_version(site):
    for page in site.rglob("*.html"):
        assert f"quenchphys {qp.__version__}, MIT" in page.read_text(), page


# What the pages show is what the commands printed.


def kept(path: Path) -> str:
    """What a command printed, without the lines that say which command and commit it was."""
    return path.read_text().partition("\n\n")[2].strip()


@pytest.mark.parametrize("path", NUMBERS, ids=lambda path: path.stem)
def test_kept_numbers_are_shown_and_belong_to_a_command(path):
    commands = {entry.name: entry.command for entry in FIGURES.ENTRIES}
    assert path.read_text().splitlines()[0] == f"$ {commands[path.stem]}"
    pages = " ".join("\n".join(page.read_text() for page in PAGES).split())
    named = commands[path.stem].removeprefix("python ").removeprefix("-m ").partition(" --out")[0]
    assert path.name in pages or named in pages, f"no page shows docs/numbers/{path.name}, or names its command"


def test_the_readme_shows_what_the_command_printed():
    _, *lines = kept(ROOT / "docs/numbers/coexistence_L8.txt").splitlines()  # the title names the time it took
    assert "\n".join(f"    {line}".rstrip() for line in lines) in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "value", "error"),
    [
        ("  mu2, equal weight   2.29466(30)", 2.29466, 0.0003),
        ("  U   -57.290(55)", -57.29, 0.055),
        ("  energy -108.1(40)", -108.1, 4.0),
        ("  gradients 14326(42)", 14326, 42),
        ("  log Z 20.783 +- 0.017", 20.783, 0.017),
    ],
)
def test_numbers_are_read_with_their_errors(text, value, error):
    ((found, found_error),) = FIGURES.numbers(text).values()
    assert found == pytest.approx(value) and found_error == pytest.approx(error)


def test_changes_beyond_errors_are_reported():
    before = "table\n  8   2.2947(3)   4.92(1)\n 12   2.2893(2)   7.17(2)\n  mean   1.0 +- 0.1"
    assert FIGURES.compared(before, before) == []
    within = before.replace("2.2947(3)", "2.2950(3)")
    assert FIGURES.compared(before, within) == []
    (beyond,) = FIGURES.compared(before, before.replace("7.17(2)", "7.37(2)"))
    assert beyond.startswith("12, number 2:") and "7.1 errors" in beyond
    assert FIGURES.compared(before, before.replace("mean", "average")) == ["mean: no longer printed", "average: new"]
    assert FIGURES.other_changes(before, within) == 0
    assert FIGURES.other_changes(before, before.replace("table", "another table")) == 1


# Gallery and notebooks.


def test_every_example_is_in_the_gallery():
    page = (ROOT / "docs" / "gallery" / "index.md").read_text()
    for path in (ROOT / "docs" / "gallery").glob("*.py"):
        assert f'--8<-- "{path.name}"' in page and f"({path.stem}.png)" in page, path.name


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_kept_as_executed(path):
    """All cells in one go, in order, without an error, and with a picture."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
