"""Seeds: each of 64 bits has a key of its own, below 2^32 that of JAX; others are refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import quenchphys as qp
from quenchphys.parallel.random_numbers import GENERATOR, key_of

TARGET, FEW = qp.targets.gaussian(4), {"particles": 50, "replicas": 2, "stop": qp.LevelLimit(3), "progress": False}
START = {"energy": np.linspace(0, 9, 5), "log_weight": np.zeros(5), "sweeps": 1, "warm_up": 0}


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_small_seed_has_the_key_that_jax_gives_it(seed):
    expected = jax.random.key_data(jax.random.key(np.uint32(seed), impl=GENERATOR))
    np.testing.assert_array_equal(jax.random.key_data(key_of(seed)), expected)


def test_no_two_seeds_have_the_same_key():
    seeds = [0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    words = {tuple(np.asarray(jax.random.key_data(key_of(seed))).tolist()) for seed in seeds}
    assert len(words) == len(seeds)
    assert key_of(0).dtype == jax.random.key(0, impl=GENERATOR).dtype


@pytest.mark.parametrize("kind", [np.int64, np.uint32, np.uint64])
def test_seeds_of_numpy_are_those_of_python(kind, tmp_path):
    ladder = qp.quench(TARGET, **FEW, seed=kind(7))
    assert type(ladder.attrs["seed"]) is int
    assert ladder.prior.identical(qp.quench(TARGET, **FEW, seed=7).prior)
    assert qp.load(ladder.save(tmp_path / "ladder.nc")).attrs["seed"] == 7


def test_large_seeds_are_seeds_of_their_own(tmp_path):
    """In `quench`, `temper` and `multicanonical`; a file holds the largest as well."""
    largest = 2**64 - 1
    for run in (qp.quench, qp.temper):
        ladders = [run(TARGET, **FEW, seed=seed) for seed in (0, 2**32, largest)]
        energies = [ladder.prior.energy.values for ladder in ladders]
        assert not any((energies[i] == energies[j]).any() for i, j in ((0, 1), (0, 2), (1, 2)))
    assert int(qp.load(ladders[2].save(tmp_path / "ladder.nc")).attrs["seed"]) == largest
    walks = [qp.multicanonical(TARGET, np.zeros((1, 4, 4)), **START, seed=np.uint64(seed)) for seed in (0, 2**32)]
    assert not (walks[0].energy == walks[1].energy).any()


@pytest.mark.parametrize("seed", [2**64, np.uint64(3) * 1.0, -1, True])
def test_other_seeds_are_refused(seed):
    for run in (qp.quench, qp.temper):
        with pytest.raises((TypeError, ValueError), match=r"^seed must be .* was given$"):
            run(TARGET, seed=seed)
    with pytest.raises((TypeError, ValueError), match=r"^seed must be .* was given$"):
        qp.multicanonical(TARGET, np.zeros((1, 4, 4)), **START, seed=seed)
