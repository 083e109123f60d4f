"""How runs show themselves: cards, five lines, one report, figures; and the numbers that only displays need."""

from __future__ import annotations

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text

import observables
import quenchphys as qp
from observables import figure_style
from observables.headings import heading_of
from observables.histogram import edges_for
from observables.numbers import number
from tests.support import synthetic
from tests.support.pages import check_page
from workflows.report.contents import page_of


@pytest.fixture(scope="module")
def ladder():
    return synthetic.ladder(synthetic.Chi2(), replicas=4, seed=3)


@pytest.fixture(scope="module")
def walk():
    rng = np.random.default_rng(0)
    energy = rng.uniform(-5.0, 5.0, (8, 64, 4))
    nodes = np.linspace(-6.0, 6.0, 20)
    return synthetic.walk({"energy": energy, "q": energy**2}, last=energy[:, -1, :, None], weight=(nodes, np.zeros(20)))


def test_a_run_is_five_lines_and_not_sixty(ladder, walk):
    assert len(repr(ladder).splitlines()) == 5 and len(repr(walk).splitlines()) == 5
    assert "converged" in repr(ladder) and "replicas of" in repr(ladder)


def test_a_card_has_the_outcome_log_z_and_a_curve(ladder):
    card = ladder._repr_html_()
    found = observables.partition_function(ladder)
    log_z = number(float(found.log_z), float(found.log_z_err))
    assert f"{log_z} at beta = 1" in card and "converged" in card and "<polyline" in card
    check_page(f"<html>{card}</html>")
    frozen = ladder.tree.copy()
    frozen.attrs = {**ladder.attrs, "outcome": "frozen"}
    assert figure_style.DOUBT in qp.Ladder(frozen)._repr_html_(), "red"


def test_the_report_has_log_z_with_its_error(ladder):
    found = observables.partition_function(ladder, 0.5)
    line = next(line for line in ladder.report(0.5).splitlines() if line.startswith("log Z"))
    assert line == f"log Z = {number(float(found.log_z), float(found.log_z_err))} at beta = 0.5"


def test_observables_are_found_by_the_engine_alone():
    """In a process that imports the engine only."""
    code = "from quenchphys.console.presentation import presenter; assert type(presenter()).__name__ == 'Analyst'"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["ladder", "walk"])
def test_a_report_page(kind, ladder, walk):
    text = page_of({"ladder": ladder, "walk": walk}[kind])
    check_page(text)
    assert text.index("trusted") < text.index("log Z") < text.index("<svg") < text.index("Settings")


def test_figures_of_runs_name_what_they_are_of(ladder):
    tree = ladder.tree.copy()
    tree.attrs = {**ladder.attrs, "problem": "phi6", "parameters": '{"shape": [8, 8]}', "outcome": "frozen"}
    words = [text.get_text() for text in qp.Ladder(tree).plot().findobj(Text)]
    assert any(word.startswith(r"$\phi^6$, $L = 8$") for word in words)
    assert "(d)" in words and "not to be trusted" in words
    plt.close("all")


def test_headings():
    attrs = {
        "problem": "phi6", "parameters": '{"shape": [6, 10]}', "seed": 3, "wall_time": 12.34, "coupling": "mu2",
        "couplings": '{"mu2": [2.3, "phi2", 0.5], "lam": [-1.0, "phi4", 1.0]}',
    }  # fmt: skip
    assert heading_of(attrs) == "phi6, 6 x 10, lam = -1, seed 3, 12.3 s"
    assert heading_of(attrs | {"seeds": "[3, 5]"}) == "phi6, 6 x 10, lam = -1, seeds 3 5, 12.3 s"
    assert heading_of(attrs | {"seeds": str(list(range(20)))}) == "phi6, 6 x 10, lam = -1, 20 seeds, 12.3 s"
    cube = heading_of(attrs | {"parameters": '{"shape": [4, 4, 4]}'})
    assert cube == "phi6, 4 x 4 x 4, lam = -1, seed 3, 12.3 s"
    assert figure_style.title_of(attrs | {"coupling": ""}) == r"$\phi^6$, 6 x 10, $\mu^2 = 2.3$, $\lambda = -1$"


def test_styles_have_their_widths():
    for name, width, rows in (("one-column", 3.375, 3), ("two-column", 7.0, 1)):
        with figure_style.style(name):
            figure, axes = figure_style.panels(3)
            assert figure.get_size_inches()[0] == width
            assert len({round(ax.get_subplotspec().rowspan.start) for ax in axes}) == rows
            with figure_style.style():  # as every function that draws begins
                assert plt.rcParams["font.size"] == 8
    with pytest.raises(ValueError, match="There is no style 'mine'"):
        figure_style.check_style("mine")
    plt.close("all")


def test_narrow_peaks_have_many_bins():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(0.2, 0.005, 20_000), rng.uniform(0, 2, 20_000)])
    edges = edges_for(values, np.zeros(len(values)), "adaptive")
    assert np.all(np.diff(edges) > 0)
    assert np.sum(np.abs(edges - 0.2) < 0.015) > 20, "equal bins would have two"
    with pytest.raises(ValueError, match="'adaptive'"):
        edges_for(values, np.zeros(len(values)), "narrow")
