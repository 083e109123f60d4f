"""Settings and labels are plain values: numpy's and JAX's numbers are taken, anything else is refused before sampling."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenchphys as qp
from quenchphys.labels import check_labels, labels_of
from quenchphys.plain_values import plain, real, whole
from quenchphys.problem import view
from quenchphys.settings import Settings

TARGET = qp.targets.gaussian(4)
SMALL = {"particles": 32, "replicas": 2}


class Model:
    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 3))

    def log_prior(self, x):
        return -(x * x).sum() / 2

    def energy(self, x):
        return (x * x).sum()

    def observe(self, x):
        return {"r2": (x * x).sum()}


def model(**labels):
    return type("Model", (Model,), labels)()


@pytest.mark.parametrize(
    "settings",
    [
        {"seed": np.int64(1)},
        {"particles": np.int32(32), "replicas": np.uint8(2)},
        {"target_ess": np.float32(0.9)},
        {"resample_ess": jnp.float32(0.5), "max_levels": jnp.int32(40)},
        {"kernel": qp.HMC(leapfrogs=np.int64(4), target_acceptance=np.float32(0.8))},
        {"softness": np.float32(2.0)},
    ],
)
def test_numbers_of_numpy_and_jax_are_settings(settings, tmp_path):
    given = qp.quench(TARGET, **SMALL | settings, checkpoint=tmp_path / "run")
    given.save(tmp_path / "ladder.nc")
    assert json.loads(qp.load(tmp_path / "ladder.nc").attrs["settings"])


def test_settings_are_pythons_own():
    settings = Settings(particles=np.int32(5), target_ess=np.float32(0.9))
    assert type(settings.particles) is int and type(settings.target_ess) is float
    assert settings == Settings(particles=5, target_ess=0.9)


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (2.0, TypeError, "seed must be a whole number; 2.0 was given"),
        (True, TypeError, "whole number; True"),
        ("3", TypeError, "whole number; '3'"),
        (np.arange(2), TypeError, "whole number"),
        (np.array([1]), TypeError, "whole number"),
        (None, TypeError, "whole number"),
        (-1, ValueError, "at least 0"),
        (2**63, ValueError, r"below 2\^62; 9223372036854775808 was given"),
        (10**30, ValueError, r"below 2\^62"),
    ],
)
def test_wrong_whole_numbers(value, kind, says):
    with pytest.raises(kind, match=says):
        whole("seed", value, 0)


@pytest.mark.parametrize("value", ["0.5", None, 1j, [0.5], np.ones(2), True, object()])
def test_wrong_real_numbers(value):
    with pytest.raises(TypeError, match="share must be a number"):
        real("share", value)


def test_plain_values_survive_json():
    given = {"a": np.arange(3), 4: (1, np.float64(2.5)), "b": {"c": jnp.ones((1, 2))}, "d": None, "e": np.bool_(True)}
    found = plain("parameters", given | {"f": jnp.bfloat16(0.5)})
    assert json.loads(json.dumps(found)) == found
    assert found == {"a": [0, 1, 2], "4": [1, 2.5], "b": {"c": [[1.0, 1.0]]}, "d": None, "e": True, "f": 0.5}


@pytest.mark.parametrize("value", [object(), 1j, np.array([object()]), len])
def test_what_is_not_plain_is_refused(value):
    with pytest.raises(TypeError, match="parameters must be plain numbers, texts, lists and dicts"):
        plain("parameters", {"a": [value]})


def test_labels_of_numpy_and_jax_reach_the_file(tmp_path):
    labels = {
        "parameters": {"h": np.arange(3)},
        "couplings": {"g": (jnp.float32(1.0), "r2", np.float64(1.0))},
        "phases": {"near": ("r2", np.float32(0.0), np.inf)},
    }
    ladder = qp.load(qp.quench(model(**labels), **SMALL).save(tmp_path / "ladder.nc"))
    assert ladder.parameters == {"h": [0, 1, 2]}
    assert ladder.couplings == {"g": (1.0, "r2", 1.0)}
    assert ladder.phases == {"near": ("r2", 0.0, np.inf)}


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({"parameters": [1, 2]}, "parameters of a problem must be a dict"),
        ({"parameters": {"f": len}}, "parameters must be plain numbers"),
        ({"couplings": {"g": (1.0, "r2")}}, r"the coupling 'g' .* must be \(value, observable, factor\)"),
        ({"couplings": {"g": ("one", "r2", 1.0)}}, "the value of the coupling 'g' must be a number"),
        ({"couplings": {"g": (np.nan, "r2", 1.0)}}, "the value of the coupling 'g' must be finite"),
        ({"phases": {"p": ("r2", 2.0, 1.0)}}, "the bounds of the phase 'p' must be two increasing numbers"),
        ({"phases": {"p": (3, 0.0, 1.0)}}, "the phase 'p' must name its observable by a text"),
        ({"dims": ("x", "y")}, r"the names of the 1 axes .* \('x', 'y'\) was given"),
        ({"dims": ("x/y",)}, "an axis may not be called 'x/y'"),
        ({"dims": ("replica",)}, "an axis may not be called 'replica'"),
        ({"dims": ("r2",)}, "an axis may not be called 'r2'"),
        ({"observe": lambda self, x: {"r/2": x.sum()}}, "an observable may not be called 'r/2'"),
        ({"observe": lambda self, x: {3: x.sum()}}, "an observable may not be called 3"),
    ],
)
def test_labels_that_no_file_can_hold_are_refused_before_sampling(labels, says, monkeypatch):
    monkeypatch.setattr("quenchphys.smc.loop.begin", lambda *_: pytest.fail("sampled"))
    with pytest.raises((TypeError, ValueError), match=says) as refused:
        qp.quench(model(**labels), **SMALL)
    assert "\n" not in str(refused.value)


def test_an_observable_may_not_have_the_name_of_a_variable_of_walks():
    with pytest.raises(ValueError, match="an observable may not be called 'last'"):
        qp.multicanonical(
            model(observe=lambda self, x: {"last": x.sum()}),
            np.zeros((1, 1, 3)),
            np.arange(4.0),
            np.zeros(4),
            sweeps=16,
        )


def test_shipped_models_have_plain_labels():
    import lattices

    for problem in (lattices.phi6(L=4, mu2=2.3), lattices.phi4(shape=(2, 3, 4), mu2=-0.5), TARGET):
        check_labels(view(problem))
        assert json.loads(json.dumps(labels_of(view(problem)))) == labels_of(view(problem))
