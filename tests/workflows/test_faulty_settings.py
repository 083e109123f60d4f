"""Faulty settings and models by the hundred: one sentence before anything is sampled, or a run that begins.

Every setting of every public function gets values of the wrong kind, sign, size and shape.  A value may be refused by a
ValueError, a TypeError, a MemoryError or an OSError of one line, or taken; nothing else may happen, and least of all after
sampling has begun.
"""

from __future__ import annotations

import warnings
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lattices
import quenchphys as qp
import workflows

REFUSALS = (ValueError, TypeError, MemoryError, OSError)
TARGET = qp.targets.gaussian(3)
START = np.zeros((8, 1, 3), np.float32)
FEW = settings(max_examples=50, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

numbers = st.one_of(
    st.sampled_from([0, 1, -1, 2, 7, 2**31, 2**32, 2**63, 2**64, 10**30, 0.0, 0.5, 1.0, -1.0, 2.5, 1e-300, 1e300]),
    st.sampled_from([float("nan"), float("inf"), -float("inf")]),
    st.integers(-3, 300),
    st.floats(-2.0, 2.0),
)
odd = st.one_of(
    numbers,
    numbers.filter(lambda x: abs(x) < 2**31).map(np.float32),
    st.integers(-3, 300).map(np.int64),
    st.integers(-3, 300).map(jnp.int32),
    st.floats(-2.0, 2.0).map(jnp.float32),
    st.sampled_from([None, True, False, "", "auto", "12", b"12", 1j, object(), len]),
    st.sampled_from([np.array([3]), np.array(3), np.array([]), np.array("x")]),
    st.sampled_from([(), [], {}, [1, 2], (1.0, 2.0), {"a": 1}, [[1], [2, 3]], range(3), {3}, qp.HMC, qp.HMC(), TARGET]),
)


class Begun(Exception):
    """Sampling begins here."""


def begin(*_, **__):
    raise Begun


def outcome(call) -> str:
    """The refusal of a call, or nothing if sampling began."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Begun:
            return ""
        except REFUSALS as refused:
            assert str(refused).strip() and len(str(refused).splitlines()) == 1, repr(refused)
            return str(refused)
    return ""


QUENCH = ["particles", "replicas", "seed", "softness", "target_ess", "resample_ess", "kernel", "stop", "levels"]
QUENCH += ["draws_per_particle", "configurations", "max_levels", "checkpoint", "devices"]


@FEW
@given(st.dictionaries(st.sampled_from(QUENCH), odd, min_size=1, max_size=3))
def test_quench(tmp_path_factory, chosen):
    if "checkpoint" in chosen and isinstance(chosen["checkpoint"], str | bytes):
        chosen["checkpoint"] = tmp_path_factory.mktemp("run")
    with patch("quenchphys.smc.loop.begin", begin), patch("quenchphys.samplers.quenched.read_softness", begin):
        outcome(lambda: qp.quench(TARGET, **{"particles": 16, "replicas": 1} | chosen))


@FEW
@given(st.dictionaries(st.sampled_from(["particles", "replicas", "seed", "target_ess", "kernel", "stop", "betas"]), odd))
def test_temper(chosen):
    with patch("quenchphys.smc.loop.begin", begin):
        outcome(lambda: qp.temper(TARGET, **{"particles": 16, "replicas": 1} | chosen))


@FEW
@given(st.dictionaries(st.sampled_from(["start", "energy", "log_weight", "sweeps", "warm_up", "kernel", "seed"]), odd))
def test_multicanonical(chosen):
    usual = {"start": START, "energy": np.arange(4.0), "log_weight": np.zeros(4), "sweeps": 16}
    with patch("quenchphys.samplers.multicanonical_chains.programs", begin):
        outcome(lambda: qp.multicanonical(TARGET, **usual | chosen))


@FEW
@given(st.dictionaries(st.sampled_from(["L", "shape", "dim", "mu2", "lam", "eta", "m0_sq", "stiffness"]), odd, max_size=4))
def test_phi6(chosen):
    outcome(lambda: lattices.phi6(**{"L": 4, "mu2": 2.3} | chosen))


POINT = ["L", "bracket", "model", "coupling", "shape", "pilot_particles", "pilot_replicas", "groups", "chains", "sweeps"]
POINT += ["seed", "softness", "lam", "eta"]


@FEW
@given(st.dictionaries(st.sampled_from(POINT), odd, min_size=1, max_size=3))
def test_coexistence(chosen):
    with patch("workflows.budget.LadderSettings.quench", begin):
        outcome(lambda: workflows.coexistence(**{"L": 4, "bracket": (2.2, 2.5), "progress": False} | chosen))


@FEW
@given(st.dictionaries(st.sampled_from(["sizes", "order", "particles", *POINT[1:]]), odd, min_size=1, max_size=3))
def test_finite_size_scaling(chosen):
    chosen.pop("shape", None)
    usual = {"sizes": [2, 3, 4], "bracket": (2.2, 2.5), "progress": False}
    with patch("workflows.budget.LadderSettings.quench", begin):
        outcome(lambda: workflows.finite_size_scaling(**usual | chosen))


@FEW
@given(st.dictionaries(st.sampled_from(["beta", "particles", "replicas", "seed", "softness", "model"]), odd, min_size=1))
def test_partition_function(chosen):
    with patch("workflows.budget.LadderSettings.quench", begin):
        outcome(lambda: workflows.partition_function(**{"model": TARGET, "progress": False} | chosen))


class Model:
    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 3))

    def log_prior(self, x):
        return -(x * x).sum() / 2

    def energy(self, x):
        return (x * x).sum()


returned = st.one_of(odd, st.sampled_from([jnp.ones(3), jnp.ones((2, 2)), jnp.zeros((), jnp.int32), {"energy": 1.0}]))
functions = st.dictionaries(st.sampled_from(["sample_prior", "log_prior", "energy", "observe"]), returned, max_size=2)
labels = st.dictionaries(
    st.sampled_from(["name", "parameters", "couplings", "phases", "dims"]),
    st.one_of(odd, st.dictionaries(st.sampled_from(["a", "b/c", ""]), st.one_of(odd, st.tuples(odd, odd, odd)), max_size=2)),
    max_size=3,
)


@FEW
@given(functions, labels)
def test_models(functions, labels):
    made = {name: lambda self, *_, value=value: value for name, value in functions.items()}
    with patch("quenchphys.smc.loop.begin", begin):
        outcome(lambda: qp.quench(type("Faulty", (Model,), made | labels)(), particles=16, replicas=1))


def test_a_right_model_begins():
    """The tests above would pass if nothing ever did."""
    with patch("quenchphys.smc.loop.begin", begin), pytest.raises(Begun):
        qp.quench(Model(), particles=16, replicas=1)
