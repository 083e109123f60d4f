"""Chains near a critical point: their stages are those that were planned, and their figure can be read."""

from __future__ import annotations

import matplotlib
import pytest

import lattices
import workflows
from quenchphys.console.progress import Display
from workflows.budget import WalkSettings
from workflows.timing import stages_of_critical

SIZES, SMALL = [4, 6, 8], {"groups": 8, "chains": 4, "sweeps": 320}


@pytest.fixture(scope="module")
def shown():
    display = Display("scaling", wanted=False)
    result = workflows.finite_size_scaling(SIZES, (-1.35, -1.1), model="phi4", lam=0.25, progress=display, **SMALL)
    return display, result


def test_stages_are_those_that_were_planned(shown):
    models = [lattices.phi4(L=L, mu2=-1.2, lam=0.25) for L in SIZES]
    planned = [stage.name for stage in stages_of_critical(models, WalkSettings(**SMALL))]
    assert [stage.name for stage in shown[0].forecast.stages] == planned
    assert all(stage.begun is not None for stage in shown[0].forecast.stages)


def test_power_laws_have_more_than_one_tick(shown):
    matplotlib.use("Agg")
    figure = shown[1].quenchphys.plot()
    figure.canvas.draw()
    for ax in figure.axes[2:]:
        low, high = ax.get_ylim()
        assert sum(low <= tick <= high for tick in ax.get_yticks()) > 1
