"""Faulty settings and models by the hundred: one sentence before anything is sampled, or a run that begins.

Every setting of every public function gets values of the wrong kind, sign, size and shape.  A value may be refused by a
ValueError, a TypeError, a MemoryError or an OSError of one line, or taken; nothing else may happen, and least of all after
sampling has begun.  A new public function is one row of `FUNCTIONS`.

    pytest -n 0 -s tests/workflows/test_faulty_settings.py      prints how many of which kind were tried
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple
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
EXAMPLES = 35
FEW = settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

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


class Function(NamedTuple):
    """A public function, settings with which it works, and the names of those that get odd values."""

    call: Callable[..., Any]
    usual: dict[str, Any]
    odd: str


PHASE = lattices.phase_fields(lattices.phi6(L=6, mu2=2.3))["disordered"]
LADDER = {"problem": TARGET, "particles": 16, "replicas": 1}
POINT = {"bracket": (2.2, 2.5), "progress": False}
CHAINS = {"problem": TARGET, "start": np.zeros((8, 1, 3), np.float32), "energy": np.arange(4.0), "sweeps": 16}
OF_A_POINT = "bracket model coupling pilot_particles pilot_replicas groups chains sweeps seed softness lam eta"

FUNCTIONS = {
    "quench": Function(
        qp.quench,
        LADDER,
        "particles replicas seed softness target_ess resample_ess kernel stop levels draws_per_particle configurations "
        "max_levels checkpoint devices",
    ),
    "temper": Function(qp.temper, LADDER, "particles replicas seed target_ess kernel stop betas"),
    "multicanonical": Function(
        qp.multicanonical, CHAINS | {"log_weight": np.zeros(4)}, "start energy log_weight sweeps warm_up kernel seed"
    ),
    "bridge": Function(
        qp.bridge, {"problem": PHASE, "sweeps": 16}, "problem error betas groups sweeps warm_up kernel seed devices"
    ),
    "nested": Function(qp.nested, LADDER, "particles replicas seed replaced steps stop configurations max_levels"),
    "chains": Function(qp.chains, {"problem": TARGET, "draws": 4}, "kernel chains draws tune thin beta seed fields"),
    "phi6": Function(lattices.phi6, {"L": 4, "mu2": 2.3}, "L shape dim mu2 lam eta m0_sq stiffness"),
    "phi4": Function(lattices.phi4, {"L": 4, "mu2": -0.7, "lam": 0.125}, "L shape dim mu2 lam m0_sq stiffness"),
    "coexistence": Function(workflows.coexistence, POINT | {"L": 4}, f"L shape {OF_A_POINT}"),
    "finite_size_scaling": Function(
        workflows.finite_size_scaling, POINT | {"sizes": [2, 3, 4]}, f"sizes order particles {OF_A_POINT}"
    ),
    "partition_function": Function(
        workflows.partition_function,
        {"model": TARGET, "progress": False},
        "beta particles replicas seed softness model",
    ),
    "calibrate": Function(
        workflows.calibrate, {"problem": TARGET, "progress": False}, "seeds beta particles replicas seed softness problem"
    ),
}
BEGINNINGS = (  # where the functions begin to sample
    "quenchphys.smc.loop.begin",
    "quenchphys.samplers.quenched.read_softness",
    "quenchphys.samplers.multicanonical_chains.programs",
    "quenchphys.samplers.bridge_chains.Chains",
    "quenchphys.samplers.nested_slices.begin",
    "quenchphys.samplers.gradient_chains.run",
    "workflows.budget.LadderSettings.quench",
)


class Begun(Exception):
    """Sampling begins here."""


def begin(*_, **__):
    raise Begun


def outcome(call) -> str:
    """What came of a call: a refusal, sampling that began, or a value."""
    with ExitStack() as patches, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place in BEGINNINGS:
            patches.enter_context(patch(place, begin))
        try:
            call()
        except Begun:
            return "began"
        except REFUSALS as refused:
            assert str(refused).strip() and len(str(refused).splitlines()) == 1, repr(refused)
            return type(refused).__name__
    return "taken"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_settings(name, tmp_path_factory):
    function, found = FUNCTIONS[name], {}

    @FEW
    @given(st.dictionaries(st.sampled_from(function.odd.split()), odd, min_size=1, max_size=3))
    def tried(chosen):
        text = repr(chosen)
        if isinstance(chosen.get("checkpoint"), str | bytes):
            chosen["checkpoint"] = tmp_path_factory.mktemp("run")
        found[text] = outcome(lambda: function.call(**function.usual | chosen))

    tried()
    _count(name, found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_usual_settings_are_taken(name):
    """The test above would pass if nothing ever were."""
    function = FUNCTIONS[name]
    assert outcome(lambda: function.call(**function.usual)) in ("began", "taken")


def _count(name: str, found: dict[str, str]) -> None:
    """Print how many distinct inputs there were and what came of them; most must have been distinct, and many faulty."""
    kinds = Counter(found.values())
    print(f"\n{name}: {len(found)} distinct inputs, " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()), end="")
    assert len(found) >= 0.85 * EXAMPLES
    assert len(found) - kinds["began"] - kinds["taken"] >= EXAMPLES / 3


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


def test_models():
    found = {}

    @FEW
    @given(functions, labels)
    def tried(functions, labels):
        made = {name: lambda self, *_, value=value: value for name, value in functions.items()}
        faulty = type("Faulty", (Model,), made | labels)()
        found[repr((functions, labels))] = outcome(lambda: qp.quench(faulty, particles=16, replicas=1))

    tried()
    _count("models", found)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"sample_prior": lambda self, key, n: jax.random.normal(key, (n, 3), jnp.float16)}, r"\(float32\); .* float16"),
        ({"sample_prior": lambda self, key, n: jax.random.normal(key, (n, 3), jnp.bfloat16)}, r"\(float32\); .* bfloat16"),
        ({"energy_and_grad": lambda self, x: ((x * x).sum(-1), x[:, :2])}, "energy_and_grad"),
        ({"symmetries": 3}, "symmetries"),
        ({"symmetries": (lambda x: x[:2],)}, "symmetry 0 must return a configuration of shape"),
        ({"basis": "modes"}, "basis"),
        ({"basis": qp.SiteBasis((3,), jnp.ones(2))}, "basis"),
    ],
)
def test_parts_of_the_wrong_shape_or_type(part, says):
    with pytest.raises((ValueError, TypeError), match=says) as refused:
        qp.quench(type("Faulty", (Model,), part)(), particles=16, replicas=1)
    assert len(str(refused.value).splitlines()) == 1
