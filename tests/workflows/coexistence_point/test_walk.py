"""When the weight of a walk is improved, and when it has crossed enough: with walks that are made up."""

from __future__ import annotations

import re

import numpy as np
import pytest

from observables.phases import TwoPhases
from quenchphys.console.progress import Display
from quenchphys.walk import Walk
from tests.support import synthetic
from workflows.budget import MOST_PARTS, PARTS, WalkSettings
from workflows.coexistence_point import walk as chains
from workflows.coexistence_point.describe import Ends

SWEEPS = 16
GROUPS, CHAINS = WalkSettings.groups, WalkSettings.chains
ENDS, PHASES = Ends(-100.0, 0.0, (0.2, 0.8)), TwoPhases("q", 0.5)


class MadeUp:
    """Chains that keep their phase until the part `first`, and then change it `times` times a part."""

    def __init__(self, first: int, times: int):
        self.first, self.times, self.weights, self.starts = first, times, [], []

    def walk(self, problem, start, weight, part, meter):
        self.weights.append(np.array(weight[1]))
        self.starts.append(None if start is None else start.last)
        shape = (GROUPS, SWEEPS, CHAINS)
        q = np.zeros(shape)
        if part >= self.first:
            q[:, :, 0] = (part * self.times + np.arange(SWEEPS) * self.times // SWEEPS) % 2
        energy = np.random.default_rng(part).uniform(-100, 0, shape)
        # A configuration is its energy, and the part in which it was seen.
        last = np.stack([energy[:, -1], np.full((GROUPS, CHAINS), part)], axis=-1)
        return synthetic.walk({"q": q, "energy": energy}, last=last, weight=weight)

    groups, chains, seed = GROUPS, CHAINS, 0
    sweeps_until = WalkSettings().sweeps_until


class Shelf:
    display = Display("walk", wanted=False)

    def __init__(self):
        self.said = []

    def message(self, text):
        self.said.append(text)

    def analyse(self):
        pass

    def walk(self, name, label, make, problem):
        return Walk(make().data.assign_attrs(name=name))


@pytest.fixture
def walked(monkeypatch):
    energy = np.linspace(-100.0, 0.0, 40)
    monkeypatch.setattr(chains, "spread_starts", lambda *_: None)
    monkeypatch.setattr(chains.observables, "flat_weight", lambda *_: (energy, np.zeros_like(energy)))

    class Replica:
        particle_energy, prior_energy = energy, np.full(3, -1.0)

    class Pool:
        ladders, replicas = (None,), (Replica(),)

    def run(made_up):
        shelf = Shelf()
        found = chains.run_chains(shelf, made_up, None, "x", Pool(), ENDS, PHASES)
        made_up.said = shelf.said
        changes = [i for i, (a, b) in enumerate(zip(made_up.weights, made_up.weights[1:], strict=False)) if (a != b).any()]
        return [walk.attrs["name"] for walk in found], changes

    return run


def test_chains_that_cross_run_as_long_as_they_were_told(walked):
    names, changes = walked(MadeUp(first=0, times=3))
    assert names == [f"walk{part}_x" for part in range(1, PARTS)]
    assert changes == [0]


def test_a_walk_says_one_line_and_not_one_for_each_part(walked):
    made_up = MadeUp(first=0, times=3)
    walked(made_up)
    (said,) = made_up.said
    assert re.fullmatch(rf"chains: {PARTS} parts, {GROUPS} x {CHAINS}, \d+ crossings from phase to phase", said)


def test_chains_that_hardly_cross_get_a_better_weight_and_run_on(walked):
    names, changes = walked(MadeUp(first=PARTS + 20, times=1))
    assert changes == [0, PARTS - 1]
    # Eight crossings of each group, one in a part; not counted is what was before the last change of the weight, and a fifth
    # of the 28 parts since then.
    assert names == [f"walk{part}_x" for part in range(PARTS + 5, PARTS + 20 + 8)]


def test_chains_begin_again_where_the_new_weight_will_have_them(walked):
    made_up = MadeUp(first=PARTS + 20, times=1)
    walked(made_up)
    starts = made_up.starts
    for part in range(1, PARTS + 20):
        energy, seen = np.moveaxis(starts[part], -1, 0)
        if part == PARTS:
            assert set(seen.ravel()) == set(range(1, PARTS))
            # As the pilot's energies are spread: evenly from -100 to 0 and every group over all of them, but for the tenth
            # that is wanted at the only energy of its prior, -1.
            assert np.allclose(np.quantile(energy, [0.1, 0.5, 0.85]), [-89.0, -45.0, -6.5], atol=1.5)
            assert (np.quantile(energy, 0.2, axis=1) < -60).all() and (np.quantile(energy, 0.8, axis=1) > -30).all()
        else:
            assert (seen == part - 1).all()


def test_chains_that_never_cross_are_stopped(walked):
    names, _ = walked(MadeUp(first=MOST_PARTS, times=1))
    assert names[-1] == f"walk{MOST_PARTS - 1}_x"


def test_a_tenth_of_the_way_leads_through_the_prior():
    """Whatever the number of draws that the pilot had."""

    class Replica:
        particle_energy, prior_energy = np.full(1000, -50.0), np.array([-1.0, -2.0])

    class Pool:
        replicas = (Replica(),) * 2

    wanted = chains.energies_wanted(Pool())
    assert (wanted == -50.0).sum() == 2000
    assert (wanted == -1.0).sum() == (wanted == -2.0).sum() == 100
