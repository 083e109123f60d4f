"""Two phases side by side: a known plateau, and walls whose tension is known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

import observables
from observables.interfaces import Walls
from tests.support import synthetic

COST = 1.2  # of every unit of length of a solid-on-solid wall, along it and across


def closed_walls(L: int) -> float:
    """Sum of exp(-COST (1 + |h|)) over all steps h of a solid-on-solid wall of length L that returns to its start."""
    k = 2 * np.pi * np.arange(4096) / 4096
    transfer = np.exp(-COST) * np.sinh(COST) / (np.cosh(COST) - np.cos(k))
    return float((transfer**L).mean())


def exact_tension() -> float:
    return COST - math.log(np.sinh(COST) / (np.cosh(COST) - 1))


def plateau_of_walls(L: int, M: int, directions: int) -> float:
    """Two such walls at all places of a lattice of length M, inside which two equal phases may be."""
    return -math.log(math.sqrt(2) * directions * M**2 * closed_walls(L) ** 2)


@pytest.mark.parametrize(("aspect", "directions"), [(4, 1), (1, 2)])
def test_the_plateau_of_solid_on_solid_walls_has_their_tension(aspect, directions):
    """The sum over their shapes is exact, and its logarithm is no straight line: the known terms make it one."""
    sizes = np.array([16, 24, 32, 48])
    walls = [Walls.across((L, aspect * L)) for L in sizes]
    plateau = np.array([plateau_of_walls(L, aspect * L, directions) for L in sizes])
    straight = plateau - [wall.known for wall in walls]
    area = np.array([wall.area for wall in walls])
    slopes = np.diff(straight) / np.diff(area)
    np.testing.assert_allclose(slopes, exact_tension(), rtol=4e-3)
    bare = np.diff(plateau) / np.diff(area)
    assert (np.abs(bare / exact_tension() - 1) > 0.02).all()
    for one, value in zip(walls, plateau, strict=True):
        found, error = one.tension(value, 0.01)
        assert abs(found - exact_tension()) < error < 0.6 / one.area / (1 - 1 / (found * one.area))


def test_walls_of_three_dimensions():
    walls = Walls.across((6, 6, 18), multiplicity=1)
    assert (walls.area, walls.known) == (72, pytest.approx(-2 * math.log(18)))
    assert walls.tension(72 * 0.5 + walls.known, 0.0)[0] == pytest.approx(0.5)
    assert Walls.across((6, 6, 6), 1).known == pytest.approx(-2 * math.log(6) - math.log(3))


def test_a_plateau_too_low_for_any_wall_has_no_tension():
    assert math.isnan(Walls.across((8, 8)).tension(-30.0, 0.1)[0])


@pytest.fixture(scope="module")
def walk():
    """Samples of q from two peaks and a plateau between them that is tilted by the odds of the phases, all known."""
    rng = np.random.default_rng(5)
    groups, sweeps, chains = 16, 100, 40
    shape = (groups, sweeps, chains)
    kind = rng.choice(3, shape, p=[0.27, 0.63, 0.1])
    tilt = math.log(0.63 / 0.27)
    f = np.log1p(rng.random(shape) * np.expm1(tilt)) / tilt  # density proportional to exp(tilt f)
    q = np.select([kind == 0, kind == 1], [rng.normal(0, 0.01, shape), rng.normal(1, 0.01, shape)], f)
    return synthetic.walk({"energy": np.zeros(shape), "q": q, "log_w": np.zeros(shape)}, np.zeros((groups, 10)))


def test_the_plateau_of_known_samples(walk):
    """-log of 0.1 exp(tilt f) tilt/(e^tilt - 1), averaged over the window, over the weights of both sides of the cut."""
    found = observables.mixed_states(walk, by="q", cut=0.5)
    tilt = math.log(0.63 / 0.27)

    def below(f):
        return np.expm1(tilt * f) / np.expm1(tilt)

    low, high = 0.27 + 0.1 * below(0.5), 0.63 + 0.1 * (1 - below(0.5))
    mean = [0.1 * (half_mean(tilt, *ends)) / weight for ends, weight in (((0.0, 0.5), low), ((0.5, 1.0), high))]
    edges = [(1 - s) * mean[0] + s * (mean[1] + 0.63 / high) for s in (0.375, 0.625)]
    density = 0.1 * (below(edges[1]) - below(edges[0])) / 0.25
    exact = 0.5 * math.log(low * high) - math.log(density)
    assert abs(float(found.plateau) - exact) < 4 * float(found.plateau_err) < 0.2
    assert abs(float(found.plateau_bend)) < 4 * float(found.plateau_bend_err) + 0.01


def half_mean(tilt: float, low: float, high: float) -> float:
    """Integral of f exp(tilt f) tilt/(e^tilt - 1) from low to high."""
    f = np.linspace(low, high, 20001)
    return float(np.trapezoid(f * np.exp(tilt * f) * tilt / np.expm1(tilt), f))
