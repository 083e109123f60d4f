"""When do walkers improve their weight, and when have they walked enough?  With walks that are made up."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from workflows import walkers
from workflows.effort import GROUPS, MOST_PARTS, PARTS, WALKERS
from workflows.narration import Narrator
from workflows.phases import Ends, Phases

SWEEPS = 16
ENDS, PHASES = Ends(-100.0, 0.0, (0.2, 0.8)), Phases("q", 0.5)


class MadeUp:
    """Walkers that keep their phase until the part `first`, and then change it `times` times a part.

    Until the part `agree` the odds of the phases in half of their groups are e^4 times those in the others.
    """

    def __init__(self, first: int, times: int, agree: int = 0):
        self.first, self.times, self.agree, self.weights = first, times, agree, []

    def walk(self, problem, start, weight, part):
        self.weights.append(np.array(weight[1]))
        shape = (GROUPS, SWEEPS, WALKERS)
        q = np.zeros(shape)
        if part >= self.first:
            q[:, :, 0] = (part * self.times + np.arange(SWEEPS) * self.times // SWEEPS) % 2
        energy = np.random.default_rng(part).uniform(-100, 0, shape)
        dims = ("replica", "sweep", "walker")
        apart = 4.0 * (np.arange(GROUPS) % 2 * (part < self.agree))[:, None, None]
        # Ordered ones weigh as much as the seven others, and in the groups that differ e^4 times as much.
        log_w = -energy - (q > 0.5) * (np.log(WALKERS - 1) + apart)
        return xr.Dataset({"q": (dims, q), "energy": (dims, energy), "log_w": (dims, log_w)})

    seed = 0


class Shelf:
    narrator = Narrator(False)

    def dataset(self, name, words, make):
        return make().assign_attrs(name=name)


@pytest.fixture
def walked(monkeypatch):
    energy = np.linspace(-100.0, 0.0, 40)
    monkeypatch.setattr(walkers, "spread_starts", lambda *_: None)
    monkeypatch.setattr(walkers.observables, "flat_weight", lambda *_: (energy, np.zeros_like(energy)))

    class Pool:
        replicas = (xr.Dataset({"particle_energy": ("sample", energy), "prior_energy": ("draw", np.full(3, -1.0))}),)

    def run(made_up):
        found = walkers.walk(Shelf(), made_up, None, "x", None, Pool(), ENDS, PHASES)
        changes = [i for i, (a, b) in enumerate(zip(made_up.weights, made_up.weights[1:], strict=False)) if (a != b).any()]
        return [walk.attrs["name"] for walk in found], changes

    return run


def test_walkers_that_cross_walk_as_long_as_they_were_asked_to(walked):
    names, changes = walked(MadeUp(first=0, times=3))
    assert names == [f"walk{part}_x" for part in range(1, PARTS)]
    assert changes == [0]


def test_walkers_that_hardly_cross_improve_their_weight_again_and_walk_on(walked):
    names, changes = walked(MadeUp(first=PARTS + 20, times=1))
    assert changes == [0, PARTS - 1]
    # Six crossings of each group, one in a part; not counted is what was before the last change of the weight, and a fifth
    # of the 26 parts since then.
    assert names == [f"walk{part}_x" for part in range(PARTS + 5, PARTS + 20 + 6)]


def test_walkers_whose_groups_disagree_walk_on_with_the_weight_they_have(walked):
    """By a scatter of two nats in the first half of a walk: in all of it, it falls below 1.5 some parts later."""
    names, changes = walked(MadeUp(first=0, times=3, agree=PARTS))
    assert changes == [0]
    assert names[0] == "walk1_x"
    assert PARTS < len(names) + 1 < MOST_PARTS
    together, _ = walked(MadeUp(first=0, times=3, agree=0))
    assert len(together) == PARTS - 1 < len(names)


def test_scatter_is_that_of_log_odds():
    one = MadeUp(first=0, times=2, agree=1).walk(None, None, (None, np.zeros(1)), 0)
    assert walkers.scatter([one], PHASES) == pytest.approx(2.0 * np.sqrt(GROUPS / (GROUPS - 1)), abs=1e-6)
    alike = MadeUp(first=0, times=2).walk(None, None, (None, np.zeros(1)), 0)
    assert walkers.scatter([alike, alike], PHASES) == pytest.approx(0.0, abs=1e-6)


def test_walkers_that_never_cross_are_stopped(walked):
    names, _ = walked(MadeUp(first=MOST_PARTS, times=1))
    assert names[-1] == f"walk{MOST_PARTS - 1}_x"


def test_a_tenth_of_the_way_leads_through_the_prior():
    """Whatever the number of draws that the pilot had."""
    levels, few = np.full(1000, -50.0), np.array([-1.0, -2.0])

    class Pool:
        replicas = (xr.Dataset({"particle_energy": ("sample", levels), "prior_energy": ("draw", few)}),) * 2

    wanted = walkers.energies_wanted(Pool())
    assert (wanted == -50.0).sum() == 2000
    assert (wanted == -1.0).sum() == (wanted == -2.0).sum() == 100
