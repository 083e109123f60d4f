"""Error bars: z-scores of many synthetic ladders, from the genealogy and from replicas."""

import numpy as np
import pytest
from scipy import stats

import observables
from observables.estimation.estimator import estimate
from observables.estimation.genealogy import choose_lag
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from tests.support import synthetic

PROBLEM = synthetic.Chi2()
LADDERS = 60


def scores(volumes, **settings):
    """z of log Z and <E> at beta = 1, from single ladders."""
    z = []
    for seed in range(LADDERS):
        made = synthetic.ladder(PROBLEM, particles=100, seed=seed, ess=0.85, **settings)
        found = observables.thermodynamics(observables.Pool(made, volumes=volumes), 1.0)
        assert found.attrs["errors_from"] == "genealogy"
        exact = (PROBLEM.log_z(1.0), PROBLEM.canonical(1.0).mean())
        z.append([(found[n] - e) / found[n + "_err"] for n, e in zip(("log_z", "energy"), exact, strict=True)])
    return np.array(z, float)


@pytest.mark.parametrize(
    ("volumes", "settings"),
    [
        ("self-consistent", {"refresh": 0.7}),
        ("telescoped", {"refresh": 0.5}),
        ("self-consistent", {"softness": None, "last": 15}),
    ],
)
def test_single_ladders_know_their_error(volumes, settings):
    z = scores(volumes, **settings)
    # Of 60 scores the mean has the error 0.13 and the variance 0.18; errors of first order are right to O(1/N) beyond.
    assert np.all(np.abs(z.mean(axis=0)) < 0.6), z.mean(axis=0)
    assert np.all((z.var(axis=0) > 0.45) & (z.var(axis=0) < 2.0)), z.var(axis=0)
    assert all(stats.kstest(column, "norm").pvalue > 1e-4 for column in z.T)


def test_replicas_know_their_error():
    z = []
    for seed in range(40):
        made = synthetic.ladder(PROBLEM, particles=30, replicas=8, seed=seed, ess=0.85)
        found = observables.partition_function(observables.Pool(made, "telescoped"))
        z.append(float((found.log_z - PROBLEM.log_z(1.0)) / found.log_z_err))
    assert stats.kstest(z, stats.t(7).cdf).pvalue > 1e-3
    assert 0.4 < np.var(z) / stats.t(7).var() < 2


def test_self_consistent_volumes_are_nearer_to_the_truth():
    made = synthetic.ladder(PROBLEM, softness=0.0, particles=100, replicas=12, seed=3)
    exact = np.array([PROBLEM.log_volume(e, 0.0) for e in made.levels["energy"].values[0, ::20]])
    telescoped, wham = observables.Pool(made, "telescoped"), observables.Pool(made)
    error = [np.std([r.log_volume[::20] - exact for r in pool.replicas]) for pool in (telescoped, wham)]
    assert error[1] < 0.7 * error[0], error


def test_wham_is_stationary():
    """G_l = sum_i n_i w_i f_l(U_i) / D(U_i)"""
    replica = observables.Pool(synthetic.ladder(PROBLEM, particles=50, ess=0.8, seed=1)).replicas[0]
    order = np.argsort(replica.energy)
    expected = np.zeros(len(replica.level))
    for rows, near, share in replica.mixture.shares(replica.energy[order]):
        expected[near] += np.exp(replica.log_share[order][rows]) @ share
    np.testing.assert_allclose(expected, 50, rtol=2e-3)


def test_the_lag_follows_the_families():
    fresh = synthetic.ladder(PROBLEM, particles=400, seed=1)
    few = synthetic.ladder(PROBLEM, particles=40, seed=1)
    assert choose_lag(observables.Pool(few).replicas[0]) < choose_lag(observables.Pool(fresh).replicas[0])


@pytest.mark.parametrize("volumes", ["telescoped", "self-consistent"])
def test_log_z_of_replicas_is_the_corrected_log_of_their_mean_z(volumes):
    made = synthetic.ladder(PROBLEM, particles=30, replicas=8, seed=1)
    pool = observables.Pool(made, volumes)
    each = estimate(pool, Targets.grid(pool, 1.0, {}), no_moments).log_z[:, 0]
    found = observables.partition_function(pool)
    blocks, error = len(each), float(found.log_z_err)
    correction = error**2 / 2 * (1 if volumes == "telescoped" else 1 - blocks)
    assert float(found.log_z) == pytest.approx(np.log(np.mean(np.exp(each))) + correction, abs=1e-9)


def test_bias_of_log_z_is_the_one_corrected_for():
    """Telescoped: E[log Z] is low by half a variance; self-consistent: by much less."""
    made = synthetic.ladder(PROBLEM, softness=None, last=15, particles=12, replicas=400, seed=5)
    ratio = []
    for volumes in ("telescoped", "self-consistent"):
        pool = observables.Pool(made, volumes)
        off = estimate(pool, Targets.grid(pool, 1.0, {}), no_moments).log_z[:, 0] - PROBLEM.log_z(1.0)
        ratio.append((off.mean() / off.var(), 1 / (off.std() * np.sqrt(len(off)))))
    (telescoped, its_error), (wham, error) = ratio
    assert abs(telescoped + 0.5) < 3 * its_error, ratio
    assert abs(wham + 0.2) < 3 * error < 0.6, ratio
