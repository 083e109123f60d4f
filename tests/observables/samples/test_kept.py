"""Volumes are computed once for each ladder, and again if it was changed."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import observables
from observables.samples import kept
from tests.support import synthetic


@pytest.fixture
def counted(monkeypatch):
    calls = []
    real = kept.with_self_consistent_volumes
    monkeypatch.setattr(kept, "with_self_consistent_volumes", lambda replica: calls.append(1) or real(replica))
    return calls


def test_five_questions_compute_the_volumes_once_and_a_changed_ladder_again(counted):
    ladder = synthetic.ladder(synthetic.Chi2(), particles=50, replicas=2, seed=4)
    key = id(ladder)
    answers = [float(observables.partition_function(ladder).log_z) for _ in range(5)]
    assert len(counted) == 2
    assert len(set(answers)) == 1
    telescoped = observables.partition_function(observables.Pool(ladder, volumes="telescoped"))
    assert len(counted) == 2 and float(telescoped.log_z) != answers[0]
    # Every energy in the record is moved, levels too: Z changes by that factor.
    for group in ("particles", "prior", "levels"):
        ladder.tree[group]["energy"].values[...] += 1.0
    assert float(observables.partition_function(ladder).log_z) == pytest.approx(answers[0] - 1.0, abs=1e-3)
    assert len(counted) == 4
    assert (key, False) in kept._kept
    del ladder, telescoped
    gc.collect()
    assert (key, False) not in kept._kept


def test_a_kept_ladder_gives_the_same_bits():
    one, other = (synthetic.ladder(synthetic.Chi2(), particles=50, replicas=2, seed=4) for _ in range(2))
    observables.thermodynamics(one)
    for name in ("log_z", "log_z_err"):
        a, b = (observables.partition_function(ladder, [0.5, 1.0])[name].values for ladder in (one, other))
        assert np.array_equal(a, b)
