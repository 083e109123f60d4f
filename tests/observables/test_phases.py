"""Two phases from the run itself: how they are told apart, what they are called, and what is refused."""

import json

import numpy as np
import pytest

import observables
from observables.phases import TwoPhases
from quenchphys.ladder import Ladder
from tests.support import synthetic

PHASES = {"crystal": ["energy", 30.0, None], "liquid": ["energy", None, 30.0]}  # as a file has them, in any order


@pytest.fixture(scope="module")
def ladder():
    """A first-order transition whose phases have names of their own."""
    made = synthetic.ladder(synthetic.TwoPhases(), particles=200, replicas=8, seed=4, ess=0.8, last=17.0)
    tree = made.tree.copy()
    tree.attrs = {**made.attrs, "phases": json.dumps(PHASES)}
    return observables.Pool(Ladder(tree))


def test_phases_of_a_run_are_ordered_by_the_observable(ladder):
    assert TwoPhases.of(ladder) == ("energy", 30.0, ("liquid", "crystal"))
    found = observables.phase_averages(ladder)
    assert found.phase.values.tolist() == ["liquid", "crystal"]
    np.testing.assert_allclose(found.energy, [20, 40], atol=1)
    assert (found.phase_by, found.phase_cut) == ("energy", 30.0)


def test_phases_given_are_those_of_the_run_or_others(ladder):
    own, given = observables.phase_weights(ladder), observables.phase_weights(ladder, by="energy", cut=30.0)
    assert own.identical(given)
    assert TwoPhases.of(ladder, cut=30.0) == TwoPhases.of(ladder, by="energy") == TwoPhases.of(ladder)
    assert observables.phase_averages(ladder, cut=31.0).phase.values.tolist() == ["disordered", "ordered"]


def test_phases_that_are_not_two_of_one_observable_are_refused(ladder):
    for phases in ({}, {"a": ("q", 0.0, 1.0)}, {"a": ("q", 0.0, 1.0), "b": ("m", 1.0, 2.0)}):
        assert TwoPhases.among(phases) is None
    with pytest.raises(ValueError, match=r"told apart by energy; for by='s1' a cut is needed as well"):
        observables.phase_weights(ladder, by="s1")
    with pytest.raises(ValueError, match=r"names no two phases .* such as by='m', cut=0.5"):
        observables.equal_weight(synthetic.ladder(synthetic.Chi2(), replicas=2))


def test_the_coupling_is_the_first_that_is_free(ladder):
    found = observables.equal_weight(ladder)
    assert "a" in found.data_vars
    assert "b" in observables.equal_weight(ladder, a=float(ladder.couplings["a"][0])).data_vars
