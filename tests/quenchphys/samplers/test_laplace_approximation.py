"""The Laplace approximation against closed forms: linear and logistic regression, and where it is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenchphys as qp

RNG = np.random.default_rng(7)
INPUTS = RNG.normal(size=(30, 2))
MEASURED = INPUTS @ np.array([0.8, -0.4]) + 0.5 * RNG.normal(size=30)
CLASSES = (RNG.uniform(size=30) < 1 / (1 + np.exp(-INPUTS @ np.array([1.5, -1.0])))).astype(float)
NOISE, WIDTH, OFFSET = 0.5, 2.0, 0.3
QUICK = {"steps": 1500, "learning_rate": 0.02, "starts": 2, "draws": 2000, "seed": 1}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Regression:
    """Two weights with the prior N(OFFSET, WIDTH^2); its log_prior is not normalised, as no problem's has to be."""

    inputs: Any
    observed: Any

    def sample_prior(self, key, n):
        return OFFSET + WIDTH * jax.random.normal(key, (n, 2))

    def log_prior(self, x):
        return -0.5 * jnp.sum((x - OFFSET) ** 2) / WIDTH**2 + 17.0

    def predict(self, x):
        return self.inputs @ x

    def energy(self, x):
        return self.loss(self.predict(x))

    def observe(self, x):
        return {"slope": x[0]}


class Linear(Regression):
    def loss(self, outputs):
        return jnp.sum((self.observed - outputs) ** 2) / (2 * NOISE**2)


class Logistic(Regression):
    def loss(self, outputs):
        return jnp.sum(jnp.logaddexp(0.0, outputs) - self.observed * outputs)


for kind in (Linear, Logistic):
    jax.tree_util.register_dataclass(kind, data_fields=["inputs", "observed"], meta_fields=[])


def of(kind, observed):
    return kind(jnp.asarray(INPUTS, jnp.float32), jnp.asarray(observed, jnp.float32))


def test_linear_regression_is_exact():
    """The evidence of a Gaussian likelihood in closed form: y ~ N(X m, s^2 + w^2 X X^T), without its constant."""
    covariance = NOISE**2 * np.eye(30) + WIDTH**2 * INPUTS @ INPUTS.T
    away = MEASURED - INPUTS @ np.full(2, OFFSET)
    exact = -0.5 * away @ np.linalg.solve(covariance, away) - 0.5 * np.linalg.slogdet(covariance)[1]
    exact += 30 * np.log(NOISE)
    for curvature in ("gauss-newton", "hessian"):
        found = qp.laplace(of(Linear, MEASURED), curvature=curvature, **QUICK)
        assert found.log_z.item() == pytest.approx(exact, abs=2e-3)
        assert found.log_z_importance.item() == pytest.approx(exact, abs=2e-3)
        assert found.ess.item() > 0.999 * QUICK["draws"] and found.attrs["trusted"] == 1
    posterior = np.linalg.inv(np.eye(2) / WIDTH**2 + INPUTS.T @ INPUTS / NOISE**2)
    mean = posterior @ (np.full(2, OFFSET) / WIDTH**2 + INPUTS.T @ MEASURED / NOISE**2)
    assert np.allclose(found["mode"], mean, atol=1e-3)
    assert np.allclose(np.cov(found.field.values[0].T), posterior, atol=4 * np.sqrt(2 / 2000) * posterior.max())
    assert found.slope.mean().item() == pytest.approx(mean[0], abs=4 * np.sqrt(posterior[0, 0] / 2000))


def test_an_end_beside_the_mode_may_be_accepted_and_is_named():
    """Of a Gaussian likelihood, log Z is low by what the Newton step would have gained."""
    exact = qp.laplace(of(Linear, MEASURED), **QUICK)
    found = qp.laplace(of(Linear, MEASURED), **QUICK | {"steps": 30, "tolerance": 1e4})
    assert found.decrement.item() > 0.2
    assert found.log_z.item() == pytest.approx(exact.log_z.item() - found.decrement.item(), abs=5e-3)
    assert found.attrs["trusted"] == 0 and "a Newton step would gain" in found.attrs["why"]


def test_logistic_regression_says_how_far_it_is_from_a_gaussian():
    found = qp.laplace(of(Logistic, CLASSES), **QUICK)
    grid = np.linspace(-12, 12, 601)
    x = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    logits = x @ INPUTS.T
    log_f = -0.5 * ((x - OFFSET) ** 2).sum(axis=-1) / WIDTH**2 - np.log(2 * np.pi * WIDTH**2)
    log_f -= (np.logaddexp(0, logits) - CLASSES * logits).sum(axis=-1)
    exact = np.log(np.exp(log_f).sum() * (grid[1] - grid[0]) ** 2)
    error = found.log_z_importance_err.item()
    assert abs(found.log_z_importance.item() - exact) < 4 * error < 0.1
    distance = abs(found.log_z.item() - exact)
    assert 1e-3 < distance < 2.5 * found.log_z_err.item() < 0.5
    assert found.attrs["trusted"] == 1 and found.attrs["gradients"] >= 2 * 1500


class Ring(Regression):
    """A posterior on a circle: every point of it is a mode, and the curvature along it is zero."""

    def energy(self, x):
        return 50.0 * (jnp.vdot(x, x) - 4.0) ** 2 + jnp.vdot(x - OFFSET, x - OFFSET) * -0.5 / WIDTH**2


class Loose(Linear):
    def energy(self, x):
        return 2 * self.loss(self.predict(x))


class Laplacian(Linear):
    """A prior that is not a Gaussian."""

    def sample_prior(self, key, n):
        return jax.random.laplace(key, (n, 2))

    def log_prior(self, x):
        return -jnp.sum(jnp.sqrt(x * x + 1e-4))


for kind in (Ring, Loose, Laplacian):
    jax.tree_util.register_dataclass(kind, data_fields=["inputs", "observed"], meta_fields=[])


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (Linear, {"curvature": "fisher"}, "'gauss-newton', 'hessian'; 'fisher' was given"),
        (Linear, {"steps": 0}, "steps"),
        (Linear, {"learning_rate": -1}, "learning_rate"),
        (Linear, {"starts": 0}, "starts"),
        (Linear, {"draws": 1}, "draws"),
        (Linear, {"tolerance": 0}, "tolerance"),
        (Ring, {}, "Gauss-Newton curvature needs predict"),
        (Loose, {}, "must be its energy"),
        (Linear, {"steps": 10}, "not reached a minimum"),
        (Ring, {"curvature": "hessian"}, "singular or negative"),
    ],
)
def test_where_it_does_not_apply_it_says_so(kind, settings, words):
    with pytest.raises((TypeError, ValueError), match=words) as refusal:
        qp.laplace(of(kind, MEASURED), **QUICK | settings)
    assert "\n" not in str(refusal.value)


def test_a_prior_that_is_no_gaussian_is_refused(monkeypatch):
    monkeypatch.setattr("quenchphys.samplers.laplace_approximation.check", lambda problem: None)
    with pytest.raises(ValueError, match="needs a Gaussian prior"):
        qp.laplace(of(Laplacian, MEASURED), **QUICK)


def test_the_spike_alone_is_found_and_the_other_phase_named():
    target = qp.targets.spike_slab(4)
    found = qp.laplace(target, curvature="hessian", **QUICK)
    assert found.log_z.item() == pytest.approx(target.log_z + np.log(0.9), abs=0.02)
    assert found.attrs["trusted"] == 0 and "slab and spike" in found.attrs["why"]
