"""The softness of levels, read from ladders."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import lattices
import quenchphys as qp
from quenchphys.problem import view
from quenchphys.samplers.quenched import read_softness
from quenchphys.samplers.softness import SMALLEST, choose, curvature, softest, too_soft
from quenchphys.stopping import suggested


@pytest.fixture(scope="module")
def phi6():
    """A lattice at coexistence, at the softness it recommends and far beyond."""
    model = lattices.phi6(L=8, mu2=2.2948)
    return {nu: qp.quench(model, particles=200, replicas=4, softness=nu) for nu in (8.0, 300.0)}


def test_curvature_of_a_gaussian():
    """U = 2 |x|^2 with S' = (D/2 - 1)/U - 1/4: S'' < 0, any softness is allowed."""
    nu, d = 20.0, 10
    ladder = qp.quench(qp.targets.gaussian(d), particles=400, replicas=4, softness=nu)
    found = curvature(ladder)
    for energy, ratio in zip(found.energy, found.ratio, strict=True):
        u = brentq(lambda u, e=energy: (d / 2 - 1) / u - 0.25 - nu / (e - u), 1e-6, min(energy, 4 * (d / 2 - 1)) - 1e-6)
        exact = -(d / 2 - 1) / u**2 * (energy - u) ** 2 / nu
        assert ratio == pytest.approx(exact, rel=0.25)  # up to corrections of order 1/nu
    assert softest(ladder) == nu, (
        "no more than it is: beyond the dimension levels are as wide as the canonical distribution"
    )
    assert too_soft(ladder) is None


def test_a_lattice_at_coexistence(phi6):
    """Right at nu = 30, lost at 300: the reading at 8 stays below, and that at 300 is suspicious."""
    assert 5 < softest(phi6[8.0]) < 20
    assert too_soft(phi6[8.0]) is None
    assert "softness 300 is too large, try 75" in too_soft(phi6[300.0])
    assert too_soft(phi6[300.0]) in phi6[300.0].report()


def test_choosing_goes_down_from_too_soft_a_ladder(phi6):
    asked = []

    def pilot(softness, number):
        asked.append(softness)
        return phi6[300.0 if softness > 100 else 8.0]

    assert 5 < choose(pilot, 480.0) < 20
    assert asked == [480.0, 120.0, 30.0]


def test_a_kink_keeps_the_smallest_softness():
    target = qp.targets.spike_slab(10)
    assert read_softness(view(target), 200, 0, None, suggested(target.stop))[0] == SMALLEST


def test_auto():
    ladder = qp.quench(qp.targets.gaussian(10), particles=400, replicas=4, softness="auto")
    assert ladder.softness == 10
    assert ladder.attrs["pilot_gradients"] > 0
    assert "softness 10, chosen by pilot ladders" in ladder.report()
    assert float(np.asarray(ladder.levels.level_count).max()) < 40


@pytest.mark.parametrize("wrong", [{"particles": 1}, {"particles": "many"}, {"seed": -1}])
def test_bad_input_is_found_before_a_pilot_runs(wrong):
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        qp.quench(qp.targets.gaussian(4), softness="auto", **wrong)
