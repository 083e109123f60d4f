"""NUTS and MCLMC chains against exact moments, ArviZ on their result, phases, costs and bad input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenchphys as qp

PRECISION = np.array([[3.0, 1.5, 0.0], [1.5, 2.0, 0.4], [0.0, 0.4, 8.0]])
SHIFT = np.array([0.5, -1.0, 2.0])


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tilted:
    """A correlated Gaussian: standard normal prior, U = 1/2 (x - shift) A (x - shift) + depth (x_0^2 - 9)^2.

    With a positive depth it has two wells instead, at x_0 = +-3, that no chain leaves.
    """

    a: Any
    shift: Any
    depth: Any

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 3))

    def log_prior(self, x):
        return -0.5 * jnp.vdot(x, x)

    def energy(self, x):
        away = x - self.shift
        return 0.5 * away @ self.a @ away + self.depth * (x[0] ** 2 - 9.0) ** 2

    def observe(self, x):
        return {"first": x[0], "mixed": x[0] * x[1]}

    phases = {"left": ("first", -np.inf, 0.0), "right": ("first", 0.0, np.inf)}  # noqa: RUF012


GAUSS = Tilted(jnp.asarray(PRECISION, jnp.float32), jnp.asarray(SHIFT, jnp.float32), jnp.float32(0.0))
WELLS = Tilted(jnp.zeros((3, 3)), jnp.zeros(3), jnp.float32(4.0))
SIZE = {"chains": 32, "draws": 100, "tune": 200}


def moments(beta):
    """Mean and covariance of the posterior."""
    covariance = np.linalg.inv(np.eye(3) + beta * PRECISION)
    return covariance @ (beta * PRECISION @ SHIFT), covariance


@pytest.fixture(scope="module", params=["nuts", "mclmc"])
def found(request):
    return qp.chains(GAUSS, kernel=request.param, seed=1, **SIZE)


def test_moments_are_those_of_the_target(found):
    """Each mean within 4 standard errors, from the scatter of 32 chains; MCLMC has a bias of up to 5% of sigma on top."""
    mean, covariance = moments(1.0)
    sigma = np.sqrt(np.diagonal(covariance))
    exact = {
        "first": (mean[0], sigma[0]),
        "mixed": (mean[0] * mean[1] + covariance[0, 1], np.sqrt(2) * sigma[0] * sigma[1]),
    }
    bias = 0.05 if found.attrs["kernel"] == "mclmc" else 0.0
    for name, (value, spread) in exact.items():
        of_chains = found[name].mean("draw").values
        error = of_chains.std(ddof=1) / np.sqrt(len(of_chains))
        assert abs(of_chains.mean() - value) < 4 * error + bias * spread, name
        assert error < 0.1 * spread
    field = found.field.values.reshape(-1, 3)
    assert np.allclose(np.cov(field.T), covariance, atol=0.12 * sigma.max() ** 2)
    assert found.attrs["trusted"] == 1, found.attrs["why"]


def test_another_temperature(found):
    """A quarter of the energy: the posterior is wider, and so is the scatter of the draws."""
    warm = qp.chains(GAUSS, kernel=found.attrs["kernel"], seed=4, beta=0.25, **SIZE)
    mean, covariance = moments(0.25)
    of_chains = warm["first"].mean("draw").values
    sigma = np.sqrt(covariance[0, 0])
    assert abs(of_chains.mean() - mean[0]) < 4 * of_chains.std(ddof=1) / np.sqrt(32) + 0.05 * sigma
    assert warm["first"].std().item() == pytest.approx(sigma, rel=0.1)


def test_arviz_takes_the_dataset_as_it_is(found):
    ess = arviz.ess(found)
    assert set(ess.data_vars) == {"energy", "first", "mixed", "field"}
    assert ess.field.shape == (3,) and float(ess.field.min()) > 300
    assert float(ess["first"]) == pytest.approx(float(found.ess_bulk.sel(quantity="first")), rel=1e-6)
    assert float(arviz.rhat(found)["first"]) < 1.05
    assert arviz.convert_to_inference_data(found).posterior.sizes["chain"] == 32


def test_gradients_and_tuning_are_counted(found):
    if found.attrs["kernel"] == "mclmc":
        assert (found.tuning_gradients == 2 * 200 + 1).all() and (found.gradients == 2 * 300 + 1).all()
        assert found.energy_error.shape == (32, 100)
    else:
        # A trajectory of depth d has between 2^(d-1) and 2^d - 1 steps.
        least, most = (2 ** (found.tree_depth - 1)).sum("draw"), (2**found.tree_depth).sum("draw")
        drawn = found.gradients - found.tuning_gradients
        assert ((drawn >= least) & (drawn <= most)).all() and (found.tuning_gradients > 200).all()
    assert found.attrs["gradients"] == found.gradients.sum()
    assert (found.step_size > 0).all() and found.diverging.dtype == bool


def test_chains_that_cannot_leave_their_phase_say_so(found):
    """Two wells behind a wall of 4 * 81 nats: the same compiled program, another problem."""
    stuck = qp.chains(WELLS, kernel=found.attrs["kernel"], seed=2, **SIZE)
    assert not stuck.left_first_phase.any()
    assert np.isin(stuck.phase_share.values, (0.0, 1.0)).all()
    right = (stuck.first_phase == "right").values
    assert np.array_equal(right, (stuck["first"].isel(draw=0) > 0).values) and 4 < right.sum() < 28
    assert stuck.attrs["trusted"] == 0 and "left their first phase" in stuck.attrs["why"]
    # Those of the Gaussian, where both signs are one mode, do leave it.
    assert found.left_first_phase.mean() > 0.9


def test_the_same_seed_gives_the_same_chains(found):
    again = qp.chains(GAUSS, kernel=found.attrs["kernel"], seed=1, **SIZE)
    assert np.array_equal(again.energy, found.energy)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "gibbs"}, "'nuts', 'mclmc'; 'gibbs' was given"),
        ({"chains": 0}, "chains"),
        ({"draws": 3}, "draws"),
        ({"tune": 5}, "tune"),
        ({"thin": 0}, "thin"),
        ({"beta": -1.0}, "beta"),
        ({"beta": float("nan")}, "beta"),
        ({"seed": 1.5}, "seed"),
        ({"fields": 3}, "fields"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings, words):
    with pytest.raises((TypeError, ValueError), match=words) as refusal:
        qp.chains(GAUSS, **settings)
    assert "\n" not in str(refusal.value)


def test_draws_that_do_not_fit_into_memory_are_refused():
    with pytest.raises(MemoryError, match="lower chains"):
        qp.chains(GAUSS, chains=100_000, draws=10_000_000)


class Whole:
    """A discrete problem: whole numbers have no gradient."""

    def sample_prior(self, key, n):
        return jax.random.randint(key, (n, 4), 0, 2)

    def log_prior(self, x):
        return jnp.zeros(())

    def energy(self, x):
        return jnp.sum(x).astype(jnp.float32)


@pytest.mark.parametrize("method", [qp.chains, qp.nested])
def test_a_discrete_problem_is_refused(method):
    with pytest.raises(ValueError, match="floating-point configurations"):
        method(Whole())


def test_mclmc_needs_two_dimensions():
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        qp.chains(qp.targets.gaussian(1), kernel="mclmc")


def test_a_missing_library_is_asked_for(monkeypatch):
    def gone(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("quenchphys.extras.import_module", gone)
    with pytest.raises(ModuleNotFoundError, match=r"qp.chains needs the library blackjax.*quenchphys\[rivals\]"):
        qp.chains(GAUSS)
    with pytest.raises(ModuleNotFoundError, match=r"qp.nested needs the library blackjax"):
        qp.nested(GAUSS)
