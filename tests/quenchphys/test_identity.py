"""Fingerprints: alike on every kind of processor, and other ones for a model that was edited."""

from __future__ import annotations

import json

import pytest

import lattices
import quenchphys as qp
from quenchphys import identity
from quenchphys.identity import difference, fingerprint, remembering


class Silent:
    """A lattice field that says nothing about itself."""

    def __init__(self, mu2=2.3):
        self.mu2 = mu2

    @property
    def own(self):
        return lattices.phi6(L=4, mu2=self.mu2)

    def sample_prior(self, key, n):
        return self.own.sample_prior(key, n)

    def log_prior(self, x):
        return self.own.log_prior(x)

    def energy(self, x):
        return self.own.energy(x)

    def observe(self, x):
        return {"m4": self.own.observe(x)["m4"]}


def test_a_processor_that_rounds_differently_gives_the_same_fingerprint(monkeypatch):
    """Code that was optimised adds in another order, as another kind of processor does."""
    before = fingerprint(Silent())
    monkeypatch.setattr(identity, "QUICKLY", {})
    monkeypatch.setattr(identity, "_compiled", {})
    now = fingerprint(Silent())
    assert now != before
    assert difference(before, now) == ""


@pytest.mark.parametrize(("mu2", "says"), [(2.3001, "the energy of the problem has other values than before"), (2.3, "")])
def test_a_small_edit_is_noticed(mu2, says):
    assert difference(fingerprint(Silent()), fingerprint(Silent(mu2))) == says


@pytest.mark.parametrize(
    ("was", "is_now", "same"),
    [
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.00001, 4.0], True),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0001, 4.0], False),
        ([0.0, 2.0, 3.0, 4.0, 0.0, 1e-9], [1e-8, 2.0, 3.0, 4.0, 1e-9, 1e-9], False),  # each scale by itself
        ([float("nan"), float("inf")], [float("nan"), float("inf")], True),
        ([float("nan"), 1.0], [1.0, 1.0], False),
        ([float("inf"), 1.0], [float("-inf"), 1.0], False),
        ([1.0], [1.0, 1.0], False),
        ("an earlier digest", [1.0], False),
    ],
)
def test_only_rounding_is_forgiven(was, is_now, same):
    assert (difference({"values": {"energy": was}}, {"values": {"energy": is_now}}) == "") == same


def test_one_object_is_computed_once_in_a_study(monkeypatch):
    calls = []
    monkeypatch.setattr(identity, "_fingerprint", lambda problem: calls.append(problem) or {})
    model, other = object(), object()
    with remembering():
        fingerprint(model)
        with remembering():
            fingerprint(model)
            fingerprint(other)
        fingerprint(other)
    fingerprint(model)
    assert calls == [model, other, model]


def test_a_model_that_was_changed_in_place_has_another_fingerprint():
    model = Silent()
    before = fingerprint(model)
    model.mu2 = 2.31
    assert difference(before, fingerprint(model)) == "the energy of the problem has other values than before"


def test_a_fingerprint_is_plain_and_names_the_problem():
    found = fingerprint(qp.targets.gaussian(16))
    assert json.loads(json.dumps(found)) == found
    assert found["model"] == "gaussian" and found["shape"] == [16] and found["dtype"] == "float32"
    assert found == fingerprint(qp.targets.gaussian(16))


def test_differences_are_named_where_they_are():
    assert difference({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}) == "c was 2 and is now 3"
    assert len(difference({"schedule": list(range(999))}, {"schedule": None})) < 200
    assert difference({"a": None}, {}) == "a was None and is now 'nothing'"
    assert difference({"a": float("nan"), "b": [1, float("nan")]}, {"a": float("nan"), "b": [1, float("nan")]}) == ""
