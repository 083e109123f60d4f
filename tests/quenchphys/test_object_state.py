"""A plain problem that was changed is compiled again, one that was not is not, and a stale program is found out."""

from __future__ import annotations

import types
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import observables
import quenchphys as qp
from quenchphys.object_state import ObjectState
from quenchphys.problem import view
from quenchphys.smc import step

STRENGTH = 1.0
ELSEWHERE = types.ModuleType("elsewhere")  # what a function reads in another module is no part of its state
ELSEWHERE.strength = 1.0
FEW = {"particles": 100, "replicas": 4, "progress": False}


class Inner:
    def __init__(self):
        self.weights = [1.0, 2.0]


class Model:
    """A Gaussian; everything its energy uses is 1 in the beginning."""

    shared = 1.0

    def __init__(self):
        self.number, self.table, self.inner, self.options = 1.0, np.ones(3, np.float32), Inner(), {"scale": 1.0}
        offset = 1.0
        self.function = lambda: offset

        def replace(value):
            nonlocal offset
            offset = value

        self.replace = replace

    @cached_property
    def derived(self):
        return 1.0

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 3))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        inner = self.inner.weights[0] * self.options["scale"] * self.derived
        factor = self.number * self.shared * inner * self.function() * STRENGTH * ELSEWHERE.strength
        return 0.5 * factor * jnp.sum(self.table * x * x)


def set_global(value):
    global STRENGTH
    STRENGTH = value


CHANGES = {
    "a number": lambda m: setattr(m, "number", 2.0),
    "an array in place": lambda m: m.table.__setitem__(slice(None), 2.0),
    "an attribute of an attribute": lambda m: m.inner.weights.__setitem__(0, 2.0),
    "a dict": lambda m: m.options.update(scale=2.0),
    "a closure": lambda m: m.replace(2.0),
    "the class": lambda m: setattr(Model, "shared", 2.0),
    "a global number": lambda m: set_global(2.0),
    "a method": lambda m: setattr(m, "energy", lambda x: jnp.sum(x * x)),
}


@pytest.fixture(autouse=True)
def _unchanged():
    yield
    Model.shared = ELSEWHERE.strength = 1.0
    set_global(1.0)


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_changed_is_compiled_again_and_nothing_else(name):
    traced = []

    @jax.jit
    def energy(problem, x):
        traced.append(name)
        return problem.energy(x)

    x, model = jnp.ones(3), Model()
    for _ in range(3):
        assert float(energy(view(model).as_argument(), x)) == 1.5
    assert float(energy(view(Model()).as_argument(), x)) == 1.5
    assert len(traced) <= 2, "an equal object has the same program, unless it has functions of its own"
    before = len(traced)
    CHANGES[name](model)
    for _ in range(2):
        assert float(energy(view(model).as_argument(), x)) == 3.0
        assert float(energy(view(model), x)) == 3.0
    assert len(traced) == before + 1


def test_states_are_equal_for_equal_objects():
    class Plain:
        def __init__(self, value):
            self.value, self.itself = value, self

    assert ObjectState(Plain(np.arange(3.0))) == ObjectState(Plain(np.arange(3.0)))
    assert ObjectState(Plain(float("nan"))) == ObjectState(Plain(float("nan")))
    for other in (np.arange(3.0, dtype=np.float32), np.arange(3), [0.0, 1.0, 2.0], jnp.arange(4.0), {1: 2}, None):
        assert ObjectState(Plain(np.arange(3.0))) != ObjectState(Plain(other))
    assert hash(ObjectState(Plain({"a": {1, 2}}))) == hash(ObjectState(Plain({"a": {2, 1}})))


def test_a_model_that_was_changed_between_runs_is_the_new_one(monkeypatch):
    """log Z = -3/2 log(1 + factor); only the run after a change traces the program again."""
    traced, original = [], step.descend
    monkeypatch.setattr(step, "descend", lambda *parts: (traced.append(1), original(*parts))[1])
    model, counts = Model(), []
    for factor, seed in ((3.0, 1), (3.0, 2), (100.0, 1)):
        model.number = factor
        found = observables.partition_function(qp.quench(model, **FEW, seed=seed))
        assert abs(float(found.log_z) + 1.5 * np.log1p(factor)) < 4 * float(found.log_z_err)
        counts.append(len(traced))
    assert counts == [1, 1, 2]


def test_a_program_that_no_longer_belongs_to_its_problem_is_refused():
    qp.quench(Quiet(), **FEW)
    ELSEWHERE.strength = 2.0
    with pytest.raises(
        RuntimeError, match=r"the energy of a configuration is .* made an attribute of the problem"
    ) as refused:
        qp.quench(Quiet(), **FEW)
    assert "\n" not in str(refused.value)


def test_chains_refuse_a_program_that_no_longer_belongs_to_their_problem():
    start = np.random.default_rng(0).normal(size=(1, 16, 3))
    weight = {"energy": np.linspace(0, 9, 5), "log_weight": np.zeros(5), "sweeps": 1, "warm_up": 0}
    qp.multicanonical(Quiet(), start, **weight)
    ELSEWHERE.strength = 2.0
    with pytest.raises(RuntimeError, match=r"the energy of a configuration is .* made an attribute of the problem"):
        qp.multicanonical(Quiet(), start, **weight)


class Quiet:
    """It has no state of its own."""

    sample_prior, log_prior = Model.sample_prior, Model.log_prior

    def energy(self, x):
        return 0.5 * ELSEWHERE.strength * jnp.sum(x * x)
