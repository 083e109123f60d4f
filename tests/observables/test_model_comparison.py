"""Bayes factors, predictions and efficiency, on exact synthetic ladders and draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import observables
from quenchphys.ladder import Ladder
from tests.support.synthetic import Chi2
from tests.support.synthetic import ladder as run

WIDE, NARROW = Chi2(sigma=0.5), Chi2(sigma=0.4)


@pytest.fixture(scope="module")
def ladders():
    return [run(problem, particles=200, replicas=8, seed=seed) for seed, problem in enumerate((WIDE, NARROW))]


def with_data(ladder, digest):
    tree = ladder.tree.copy()
    tree.attrs = dict(ladder.attrs) | {"parameters": json.dumps({"data": "d.csv", "digest": digest})}
    return Ladder(tree)


def test_bayes_factor_of_two_widths(ladders):
    found = observables.bayes_factor(*ladders)
    exact = float(WIDE.log_z(1.0) - NARROW.log_z(1.0))
    assert exact > 2
    assert 0 < float(found.log_bf_err) < 0.2
    assert float(found.log_bf) == pytest.approx(exact, abs=3 * float(found.log_bf_err))
    each = [observables.partition_function(ladder) for ladder in ladders]
    assert float(found.log_bf_err) == pytest.approx(np.hypot(*(float(one.log_z_err) for one in each)))
    assert found.log_z.values.tolist() == [float(one.log_z) for one in each]


def test_bayes_factor_of_results(ladders):
    laplace = xr.Dataset({"log_z": -3.0, "log_z_err": 0.5})
    found = observables.bayes_factor(laplace, observables.partition_function(ladders[1]))
    assert float(found.log_bf) == pytest.approx(-3.0 - float(observables.partition_function(ladders[1]).log_z))


def test_bayes_factors_that_make_no_sense(ladders):
    with pytest.raises(ValueError, match="same data, but these were trained on other examples"):
        observables.bayes_factor(with_data(ladders[0], "aa"), with_data(ladders[1], "bb"))
    observables.bayes_factor(with_data(ladders[0], "aa"), with_data(ladders[1], "aa"))
    with pytest.raises(ValueError, match="has no log_z_err"):
        observables.bayes_factor(xr.Dataset({"log_z": 0.0}), ladders[1])
    with pytest.raises(ValueError, match="about one value of log Z"):
        observables.bayes_factor(observables.partition_function(ladders[0], [0.5, 1.0]), ladders[1])
    with pytest.raises(ValueError, match=r"at beta = 0\.5, not at beta = 1"):
        observables.bayes_factor(observables.partition_function(ladders[0], 0.5), ladders[1])


def draws(chains, count, seed=0):
    """Draws of a standard normal parameter."""
    field = np.random.default_rng(seed).normal(size=(chains, count, 1))
    return xr.Dataset({"field": (("chain", "draw", "parameter"), field)})


def log_normal(x):
    """Two examples, 0.3 and -1, that are normal about the parameter."""
    return -0.5 * (np.asarray(x) - np.array([0.3, -1.0])) ** 2 - 0.5 * np.log(2 * np.pi)


def test_predictions_average_probabilities_and_not_their_logarithms():
    """Under the posterior N(0, 1) of the parameter an example is N(0, 2)."""
    exact = np.mean([0.5 * np.log(4 * np.pi) + y * y / 4 for y in (0.3, -1.0)])
    found = observables.predictive_nll(draws(20, 2500), log_normal)
    assert 0 < float(found.nll_err) < 5e-3
    assert float(found.nll) == pytest.approx(exact, abs=3 * float(found.nll_err))
    assert found.nll_each.mean() == pytest.approx(float(found.nll))


def test_errors_of_predictions_are_calibrated():
    exact = np.mean([0.5 * np.log(4 * np.pi) + y * y / 4 for y in (0.3, -1.0)])
    runs = [observables.predictive_nll(draws(8, 200, seed), log_normal) for seed in range(200)]
    inside = np.mean([abs(float(one.nll) - exact) < float(one.nll_err) for one in runs])
    assert inside == pytest.approx(0.683, abs=3 * np.sqrt(0.683 * 0.317 / 200))


def test_predictions_that_make_no_sense():
    with pytest.raises(ValueError, match="at least 2 independent chains, but there is 1"):
        observables.predictive_nll(draws(1, 10), log_normal)
    with pytest.raises(ValueError, match="variable 'field' over the dimensions chain and draw"):
        observables.predictive_nll(xr.Dataset({"field": ("draw", np.zeros(3))}), log_normal)
    with pytest.raises(ValueError, match=r"one row for each configuration .* the shape \(10,\)"):
        observables.predictive_nll(draws(2, 10), lambda x: np.zeros(10))
    with pytest.raises(ValueError, match=r"undefined \(NaN\)"):
        observables.predictive_nll(draws(2, 10), lambda x: np.full((10, 2), np.nan))


def counted(ladder, gradients, pilots=0.0):
    tree = ladder.tree.copy()
    tree.attrs = dict(ladder.attrs) | {"gradients": gradients, "pilot_gradients": pilots}
    return Ladder(tree)


@pytest.mark.parametrize("softness", [2.0, None])
def test_the_kish_number_is_that_of_weights_of_the_posterior(softness):
    """The weights give posterior means, and the Kish number follows from them."""
    ladder = run(WIDE, particles=200, replicas=4, seed=5, softness=softness)
    found = observables.efficiency(counted(ladder, 4e6, 2e6))
    assert np.all(found.gradients == 1.5e6)
    assert float(found.ess_per_million) == pytest.approx(float(found.ess.mean()) / 1.5)
    energy = ladder.particles["energy"].values[0].astype(float)
    log_w = ladder.particles["log_weight"].values[0].astype(float)
    level = ladder.levels["energy" if softness else "beta"].values[0]
    log_g = ladder.levels["log_volume"].values[0]
    if softness:
        width = np.abs(np.concatenate([[level[1] - level[0]], (level[2:] - level[:-2]) / 2, [level[-1] - level[-2]]]))
        q = np.exp(log_w) * (width * np.exp(log_g - level))[:, None]
    else:
        q = np.exp(log_w - energy) / sum(np.exp(-b * energy - g) for b, g in zip(level, log_g, strict=True))
    assert float(found.ess[0]) == pytest.approx(q.sum() ** 2 / (q**2).sum(), rel=1e-3)
    mean = (q * energy).sum() / q.sum()
    assert mean == pytest.approx(WIDE.canonical(1.0).mean(), abs=4 * WIDE.canonical(1.0).std() / np.sqrt(200))


def test_gradients_must_be_known(ladders):
    tree = ladders[0].tree.copy()
    tree.attrs = {name: value for name, value in ladders[0].attrs.items() if name != "gradients"}
    with pytest.raises(ValueError, match="does not say how many gradients"):
        observables.efficiency(Ladder(tree))
