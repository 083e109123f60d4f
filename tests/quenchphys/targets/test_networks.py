"""Bayesian networks: their size, energy, gradient and evidence, against other ways to compute them."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from scipy import integrate, special

import observables
import quenchphys as qp

SHAPES = {
    "sonar": (60, 2, 1280),
    "glass": (9, 6, 528),
    "heart": (13, 2, 528),
    "australian": (14, 2, 544),
    "winered": (11, 6, 560),
}


def synthetic(folder, rows, inputs, classes, seed=0):
    """A CSV file of random numbers, whose classes follow the first column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, inputs)).round(3)
    label = np.argsort(np.argsort(x[:, 0] + 0.5 * rng.normal(size=rows))) * classes // rows
    header = ",".join([f"c{i}" for i in range(inputs)] + ["label"])
    lines = [",".join(map(str, [*row, f"k{k}"])) for row, k in zip(x, label, strict=True)]
    path = folder / f"data_{rows}_{inputs}_{classes}.csv"
    path.write_text("\n".join([header, *lines]))
    return path


@pytest.mark.parametrize("shape", SHAPES)
def test_the_five_networks_of_the_paper(tmp_path, shape):
    inputs, classes, dim = SHAPES[shape]
    model = qp.targets.network(synthetic(tmp_path, 60, inputs, classes))
    assert model.dim == dim
    assert model.sample_prior(jax.random.key(0), 2).shape == (2, dim)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return synthetic(tmp_path_factory.mktemp("data"), 50, 3, 3)


def by_hand(model, x, inputs, labels):
    """-log likelihood of every example, in numpy and float64, layer by layer as the paper has it."""
    x, place = np.asarray(x, np.float64), 0
    h = np.asarray(inputs, float)
    sizes = [h.shape[1], *model.hidden, len(model.classes)]
    for number, (fan_in, units) in enumerate(itertools.pairwise(sizes)):
        weight = x[place : place + fan_in * units].reshape(fan_in, units)
        place += fan_in * units
        h = h @ weight / np.sqrt(fan_in)
        if number < len(model.hidden):
            h = h + 0.1 * x[place : place + units]
            place += units
            h = {"tanh": np.tanh, "relu": lambda v: np.maximum(v, 0)}[model.activation](h)
    assert place == x.size
    return special.logsumexp(h, axis=1) - h[np.arange(len(h)), np.asarray(labels)]


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (5, 4)])
def test_energy_and_gradient(path, hidden, activation):
    model = qp.targets.network(path, hidden, activation)
    x = model.sample_prior(jax.random.key(1), 6)
    energy, gradient = jax.jit(jax.vmap(jax.value_and_grad(model.energy)))(x)
    for own, value in zip(x, energy, strict=True):
        assert float(value) == pytest.approx(by_hand(model, own, model.inputs, model.labels).sum(), rel=1e-5)
    assert float(model.loss(model.predict(x[0]))) == pytest.approx(float(energy[0]), rel=1e-5)
    # Along the gradient, in float64 and by hand, where a step may be small enough for the kinks of ReLU.
    start, direction = np.asarray(x[0], float), np.asarray(gradient[0], float) / np.linalg.norm(gradient[0])
    sides = [by_hand(model, start + h * direction, model.inputs, model.labels).sum() for h in (1e-5, -1e-5)]
    assert np.linalg.norm(gradient[0]) == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-3)
    seen = jax.jit(model.test_log_likelihood)(x)
    assert np.allclose(seen[0], -by_hand(model, x[0], model.test_inputs, model.test_labels), rtol=1e-4, atol=1e-5)
    assert model.predict(x[0]).shape == (len(model.labels), 3)


def test_checks_of_the_engine(path):
    qp.check(qp.targets.network(path, (5, 4), "relu"))


@pytest.fixture(scope="module")
def logistic(tmp_path_factory):
    """One input and two classes without hidden layers: two parameters, of which only the difference counts."""
    model = qp.targets.network(synthetic(tmp_path_factory.mktemp("two"), 24, 1, 2), hidden=())
    assert model.dim == 2
    return model, qp.quench(model, particles=50, replicas=8, seed=1, progress=False)


def mean_over_prior(model, function):
    """The average of function(d) over the prior of the difference d = w_1 - w_0 ~ N(0, 2) of the two weights."""
    z, sign = (np.asarray(part, float) for part in (model.inputs[:, 0], 2 * np.asarray(model.labels) - 1))

    def integrand(d):
        likelihood = np.exp(np.sum(special.log_expit(sign * d * z)))
        return np.exp(-d * d / 4) / np.sqrt(4 * np.pi) * likelihood * function(d)

    return integrate.quad(integrand, -25, 25, points=[0, 2, 5])[0]


def test_evidence_of_two_parameters_by_quadrature(logistic):
    model, ladder = logistic
    exact = np.log(mean_over_prior(model, lambda d: 1.0))
    found = observables.partition_function(ladder)
    assert float(found.log_z_err) < 0.1
    assert float(found.log_z) == pytest.approx(exact, abs=3 * float(found.log_z_err))


def test_predictions_of_two_parameters_by_quadrature(logistic):
    model, ladder = logistic
    total = mean_over_prior(model, lambda d: 1.0)
    z, sign = np.asarray(model.test_inputs[:, 0], float), 2 * np.asarray(model.test_labels) - 1
    exact = -np.mean([np.log(mean_over_prior(model, lambda d, a=a: special.expit(a * d)) / total) for a in sign * z])
    found = observables.predictive_nll(ladder, model.test_log_likelihood)
    assert 0 < float(found.nll_err) < 0.02
    assert float(found.nll) == pytest.approx(exact, abs=3 * float(found.nll_err))


def test_files_say_what_was_trained_on(logistic, path):
    model, ladder = logistic
    assert ladder.parameters == model.parameters
    assert ladder.parameters["training"] + ladder.parameters["test"] == 24
    splits = [qp.targets.network(path, split=split).parameters["digest"] for split in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]
