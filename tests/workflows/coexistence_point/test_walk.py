"""When the weight of a walk is improved, and when it has crossed enough: with walks that are made up."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from observables.phases import TwoPhases
from quenchphys.console.progress import Display
from quenchphys.walk import Walk
from tests.support import synthetic
from workflows.budget import MOST_PARTS, PARTS, WalkSettings
from workflows.coexistence_point import walk as chains
from workflows.coexistence_point.describe import Ends, drift_of, equal_weight_of

SWEEPS = 16
GROUPS, CHAINS = WalkSettings.groups, WalkSettings.chains
ENDS, PHASES = Ends(-100.0, 0.0, (0.2, 0.8)), TwoPhases("q", 0.5)


class MadeUp:
    """One chain of a group keeps its phase until the part `first`, and then changes it `times` times a part.

    The others lie between the phases, and remember nothing.
    """

    def __init__(self, first: int, times: int):
        self.first, self.times, self.weights, self.starts = first, times, [], []

    def walk(self, problem, start, weight, part, meter):
        self.weights.append(np.array(weight[1]))
        self.starts.append(None if start is None else start.last)
        shape = (GROUPS, SWEEPS, CHAINS)
        q = np.random.default_rng(part).uniform(0.3, 0.7, shape)
        changes = part * self.times + np.arange(SWEEPS) * self.times // SWEEPS if part >= self.first else 0
        q[:, :, 0] = changes % 2
        energy = self.energies(part, shape)
        # A configuration is its energy, and the part in which it was seen.
        last = np.stack([energy[:, -1], np.full((GROUPS, CHAINS), part)], axis=-1)
        return synthetic.walk({"q": q, "energy": energy}, last=last, weight=weight)

    def energies(self, part, shape):
        return np.random.default_rng(part).uniform(-100, 0, shape)

    groups, chains, seed = GROUPS, CHAINS, 0
    sweeps_until = WalkSettings().sweeps_until


class Slow(MadeUp):
    """Chains that cross often, but whose energies follow a process with the autocorrelation time TAU."""

    TAU = 40.0  # sweeps, so that rho is e^-1 after half of it

    def energies(self, part, shape):
        rng = np.random.default_rng(part)
        now = rng.standard_normal((GROUPS, CHAINS)) if part == 0 else self.now
        rho, seen = np.exp(-2 / self.TAU), []
        for _ in range(SWEEPS):
            now = rho * now + np.sqrt(1 - rho**2) * rng.standard_normal(now.shape)
            seen.append(now)
        self.now = now
        return -50 + 10 * np.stack(seen, axis=1)


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
    # Not counted is what was before the last change of the weight, and what the chains remember since then: here most of
    # the 20 parts in which nothing moved.
    first, last = (int(re.search(r"\d+", name)[0]) for name in (names[0], names[-1]))
    assert PARTS + 10 <= first <= PARTS + 20
    assert names == [f"walk{part}_x" for part in range(first, last + 1)]
    # Eight crossings of each group, one in a part, and as many parts as were asked for.
    assert PARTS + 20 + 8 - 1 <= last <= PARTS + 20 + 10 - 1
    assert last - first + 1 >= PARTS - 1


def test_what_chains_remember_is_not_counted_but_made_up_for(walked):
    """Twice tau = 80 sweeps are 5 parts of 16; tau is known to a fifth from so short a walk."""
    names, changes = walked(Slow(first=0, times=3))
    first, last = (int(re.search(r"\d+", name)[0]) for name in (names[0], names[-1]))
    assert changes == [0]
    assert 1 + 4 <= first <= 1 + 6
    assert last - first + 1 >= PARTS - 1
    assert names == [f"walk{part}_x" for part in range(first, last + 1)]


def test_a_walk_that_moves_on_shows_a_drift():
    """Halves with 70% and with 50% of one phase, and twice the same."""
    halves = [[part_with(share, seed) for seed in seeds] for share, seeds in ((0.7, (0, 1)), (0.7, (2, 3)), (0.5, (4, 5)))]
    answer = equal_weight_of("c", TwoPhases("phase", 0.5))
    assert abs(drift_of(halves[0] + halves[1], answer)) < 3
    assert drift_of(halves[0] + halves[2], answer) < -8
    assert drift_of(halves[2] + halves[0], answer) > 8


def part_with(share, seed):
    """A part of a walk with U = c X, X = 1 in one phase and 0 in the other: log(share/(1 - share)) + 1 is the root."""
    phase = (np.random.default_rng(seed).random((GROUPS, 200, 1)) < share).astype(float)
    attrs = {"couplings": json.dumps({"c": (1.0, "x", 1.0)}), "phases": json.dumps({})}
    return synthetic.walk({"energy": phase, "x": phase, "phase": phase}, np.zeros((GROUPS, 200)), **attrs)


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
