"""Likelihoods of a user's own network, in flax and in plain JAX."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenchphys as qp

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(12, 2)).astype(np.float32)
LABELS = (INPUTS @ [1.0, -0.5] + 0.3 * RNG.normal(size=12)).astype(np.float32)
NOISE = 0.5


def squares(outputs, labels):
    """-log of a Gaussian likelihood, up to its constant."""
    return 0.5 * jnp.sum((outputs - labels) ** 2) / NOISE**2


def linear(parameters, inputs):
    return inputs @ parameters["slope"] + parameters["level"]


START = {"slope": jnp.zeros(2), "level": jnp.zeros(())}


def test_evidence_of_a_linear_model():
    """y ~ N(0, noise^2 + A S A^T) with A the inputs and a column of ones, S the prior variances."""
    scale = {"slope": 1.5, "level": 0.5}
    model = qp.targets.likelihood(linear, START, squares, (INPUTS, LABELS), scale=scale)
    assert model.dim == 3
    a = np.column_stack([INPUTS, np.ones(12)])
    covariance = NOISE**2 * np.eye(12) + a @ np.diag([1.5**2, 1.5**2, 0.5**2]) @ a.T
    # Against the likelihood without its constant, (2 pi noise^2)^(-n/2).
    exact = -0.5 * (np.linalg.slogdet(covariance / NOISE**2)[1] + LABELS @ np.linalg.solve(covariance, LABELS))
    weight = np.exp(-np.asarray(jax.jit(jax.vmap(model.energy))(model.sample_prior(jax.random.key(0), 200_000)), float))
    error = weight.std() / weight.mean() / np.sqrt(len(weight))
    assert error < 0.05
    assert np.log(weight.mean()) == pytest.approx(exact, abs=3 * error)


def test_a_flax_module_is_taken_as_it_is():
    net = nn.Sequential([nn.Dense(4), nn.tanh, nn.Dense(3)])
    labels = np.arange(12) % 3

    def cross_entropy(outputs, labels):
        return -jnp.sum(jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1))

    start = net.init(jax.random.key(0), INPUTS)
    model = qp.targets.likelihood(
        net.apply, start, cross_entropy, (INPUTS, labels), test=(INPUTS[:5], labels[:5]), name="flax"
    )
    assert model.dim == 2 * 4 + 4 + 4 * 3 + 3
    qp.check(model)
    x = model.sample_prior(jax.random.key(1), 3)
    assert model.predict(x[0]).shape == (12, 3)
    assert float(model.loss(model.predict(x[0]))) == pytest.approx(float(model.energy(x[0])))
    seen = model.test_log_likelihood(x)
    assert seen.shape == (3, 5)
    # The unit scale leaves the parameters as they are.
    outputs = net.apply(model.unflatten(x[1]), INPUTS[:5])
    expected = np.take_along_axis(np.asarray(jax.nn.log_softmax(outputs)), labels[:5, None], axis=1)[:, 0]
    assert np.allclose(seen[1], expected, rtol=1e-5)


FAULTS = {
    "a mean": ({"loss": lambda o, y: jnp.mean((o - y) ** 2)}, "must be the sum of the losses of the examples"),
    "no sum": ({"loss": lambda o, y: (o - y) ** 2}, r"must return one number.*\(12,\)"),
    "a failing function": ({"apply": lambda p, z: z @ p["slop"]}, "apply or loss fails for a draw from the prior: .*slop"),
    "labels too few": ({"data": (INPUTS, LABELS[:5])}, "equally many examples.*5 and 12"),
    "no labels": ({"data": INPUTS}, r"data must be a pair \(inputs, labels\)"),
    "no parameters": ({"parameters": {}}, "at least one number"),
    "a negative scale": ({"scale": -1.0}, "must be positive and finite"),
    "scales of another structure": ({"scale": {"slope": 1.0}}, "in the structure of parameters"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_refused_in_one_sentence(fault):
    wrong, message = FAULTS[fault]
    with pytest.raises(ValueError, match=message) as refused:
        qp.targets.likelihood(**({"apply": linear, "parameters": START, "loss": squares, "data": (INPUTS, LABELS)} | wrong))
    assert "\n" not in str(refused.value)


def test_test_data_are_asked_for():
    model = qp.targets.likelihood(linear, START, squares, (INPUTS, LABELS))
    with pytest.raises(ValueError, match=r"no test data; give them as test=\(inputs, labels\)"):
        model.test_log_likelihood(jnp.zeros((2, 3)))
