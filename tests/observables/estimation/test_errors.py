"""Error bars: z-scores of many synthetic ladders, from the genealogy and from replicas."""

import numpy as np
import pytest
from scipy import stats

import observables
from observables.checks import FEWEST_FAMILIES, few_lineages
from observables.estimation.errors import Uncertain, Variance, _together, student_ratio
from observables.estimation.estimator import estimate
from observables.estimation.genealogy import _none, _products, choose_lag, left_out_factors, read_genealogy
from observables.estimation.moments import Columns, no_moments
from observables.estimation.targets import Targets
from tests.support import synthetic

PROBLEM = synthetic.Chi2()
LADDERS = 60
LUCKY = 23  # a seed with which one lineage of `rare_phase` carries most of Z


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
        found = observables.partition_function(observables.Pool(made, "telescoped"), errors="replicas")
        assert found.attrs["errors_from"] == "replicas"
        z.append(float((found.log_z - PROBLEM.log_z(1.0)) / found.log_z_err))
    assert stats.kstest(z, stats.t(7).cdf).pvalue > 1e-3
    assert 0.4 < np.var(z) / stats.t(7).var() < 2


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_few_replicas_know_how_little_they_know(replicas):
    """Jackknife and genealogy together: z is standard normal, which the jackknife of two replicas is far from."""
    z = []
    for seed in range(40):
        pool = observables.Pool(synthetic.ladder(PROBLEM, None, particles=60, replicas=replicas, seed=seed, last=12))
        found = observables.thermodynamics(pool)
        assert found.attrs["errors_from"] == "replicas and genealogy"
        exact = (PROBLEM.log_z(1.0), PROBLEM.canonical(1.0).mean())
        z.append([float((found[n] - e) / found[n + "_err"]) for n, e in zip(("log_z", "energy"), exact, strict=True)])
    # Of 40 scores the mean has the error 0.16 and the standard deviation 0.11.
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.6), np.mean(z, axis=0)
    assert np.all((np.std(z, axis=0) > 0.65) & (np.std(z, axis=0) < 1.4)), np.std(z, axis=0)


def test_two_estimates_of_a_variance_are_pooled_by_what_they_know():
    blocks, families = Variance(np.array([4.0]), np.array([3.0])), Variance(np.array([1.0]), np.array([9.0]))
    assert _together([blocks, families]) == pytest.approx(np.sqrt((3 * 4 + 9 * 1) / 12) * student_ratio(12.0))
    # Blocks that scatter far more than families explain count alone, with their own few degrees of freedom.
    torn = blocks._replace(value=np.array([100.0]))
    assert _together([torn, families]) == pytest.approx(10 * student_ratio(3.0))
    # One standard error holds 68% of Student's t.
    t = stats.t(3).rvs(100_000, random_state=np.random.default_rng(0))
    assert np.mean(np.abs(t) < student_ratio(3.0)) == pytest.approx(0.6827, abs=0.005)


def test_freedom_counts_families():
    """Of independent normal terms the genealogy knows the variance as well as their number allows."""
    found = [_variance_of_one(seed) for seed in range(60)]
    variance, freedom = np.array(found).T
    measured = 2 * variance.mean() ** 2 / variance.var(ddof=1)
    assert 1 / 3 < np.median(freedom) / measured < 3, (np.median(freedom), measured)


def _variance_of_one(seed):
    pool = observables.Pool(synthetic.ladder(PROBLEM, particles=60, seed=seed, ess=0.75))
    found = read_genealogy(estimate(pool, Targets.grid(pool, 1.0, {}), lambda samples, energy: Columns([energy])))
    return found.covariance[0, 1, 1], found.freedom[0, 1]


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
    correction = float(found.log_z_err) ** 2 / 2
    assert float(found.log_z) == pytest.approx(np.log(np.mean(np.exp(each))) + correction, abs=1e-9)


def test_bias_of_log_z_is_the_one_corrected_for():
    """Telescoped: E[log Z] is low by half a variance.  Self-consistent: by less here, where levels have no ancestors."""
    made = synthetic.ladder(PROBLEM, softness=None, last=15, particles=12, replicas=400, seed=5)
    ratio = []
    for volumes in ("telescoped", "self-consistent"):
        pool = observables.Pool(made, volumes)
        off = estimate(pool, Targets.grid(pool, 1.0, {}), no_moments).log_z[:, 0] - PROBLEM.log_z(1.0)
        ratio.append((off.mean() / off.var(), 1 / (off.std() * np.sqrt(len(off)))))
    (telescoped, its_error), (wham, error) = ratio
    assert abs(telescoped + 0.5) < 3 * its_error, ratio
    assert abs(wham + 0.2) < 3 * error < 0.6, ratio


def rare_phase(seed, replicas=1):
    """A ladder whose particles move at one level in ten, so that few lineages find the lower phase."""
    return synthetic.ladder(
        synthetic.TwoPhases(), particles=200, replicas=replicas, seed=seed, refresh=0.1, ess=0.9, last=22.0
    )


def share_of_rare_phase(made):
    """log Z, and as a mean the share of the lower phase."""
    pool = observables.Pool(made)
    targets = Targets.grid(pool, 1.0, {})
    return estimate(pool, targets, lambda samples, energy: Columns([(energy < 30.0).astype(float)]), check=False)


def test_single_ladders_know_their_error_where_few_lineages_find_a_phase():
    values, errors = [], []
    for seed in range(60):
        found = share_of_rare_phase(rare_phase(seed))
        uncertain = Uncertain(found, "genealogy")
        first = np.sqrt(np.diagonal(uncertain.families.covariance[0]))
        answers = uncertain.of(lambda log_z, mean: log_z), uncertain.of(lambda log_z, mean: mean[:, 0])
        values.append([answer.value[0] for answer in answers])
        errors.append([answer.error[0] for answer in answers])
        assert np.all(np.array(errors[-1]) > 0.999 * first), seed  # stretches may cancel; the error must not vanish
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0, ddof=1)
    # The scatter of 60 such skewed values is known to a fifth.  First order claims 0.7 of it, for both.
    assert np.all((ratio > 0.85) & (ratio < 1.4)), ratio


def test_a_family_is_left_out_as_in_a_jackknife():
    """Families of one independent particle each, one of which carries most of Z."""
    rng = np.random.default_rng(1)
    weight, value = rng.exponential(size=500), rng.normal(size=500)
    weight[0], value[0] = 2000.0, 3.0
    mean = weight @ value / weight.sum()
    sums = np.stack([weight / weight.sum() - 1 / 500, weight * (value - mean) / weight.sum()], axis=1)
    found = sums * left_out_factors(sums[:, None, :1], 2, 0.99)[:, 0]
    left = weight.sum() - weight
    expected = np.stack([-np.log(left / 499 * 500 / weight.sum()), mean - (weight @ value - weight * value) / left], axis=1)
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=1e-5)
    assert found[0, 0] > 1.5 > 1 > sums[0, 0]
    # However much a family carries, something is left.
    assert left_out_factors(np.array([[[1.2]]]), 2, 0.9).ravel() == pytest.approx([np.log(10) / 0.9, 10.0])


def test_replicas_leave_no_family_out():
    families = read_genealogy(share_of_rare_phase(rare_phase(1, replicas=2)))
    assert families.left_out is None and families.largest == 0


def test_bias_of_log_z_is_that_of_first_order():
    """A family that carries nearly all of Z widens the error, but does not push log Z up."""
    pool = observables.Pool(rare_phase(LUCKY))
    found = estimate(pool, Targets.grid(pool, 1.0, {}), no_moments, check=False)
    families = read_genealogy(found)
    answer = observables.partition_function(pool, errors="genealogy")
    assert float(answer.log_z) == pytest.approx(found.log_z[0, 0] + families.covariance[0, 0, 0] / 2)
    assert float(answer.log_z_err) ** 2 > 1.5 * families.covariance[0, 0, 0]


def test_a_single_ladder_says_that_one_lineage_decides():
    assert float(observables.diagnostics(rare_phase(LUCKY)).largest_family) > 0.5
    warning = "of Z descends from one particle"
    assert warning in observables.report(observables.Pool(rare_phase(LUCKY)))
    assert warning not in observables.report(observables.Pool(rare_phase(LUCKY, replicas=2)))
    assert warning not in observables.report(observables.Pool(synthetic.ladder(PROBLEM, seed=1)))


def test_a_single_ladder_doubts_errors_that_rest_on_rare_lineages():
    """Also where no lineage decides alone: families that found a phase are far more unequal than those that drift."""
    rare, sound = (
        [observables.diagnostics(made(seed)) for seed in range(12)]
        for made in (rare_phase, lambda seed: synthetic.ladder(PROBLEM, seed=seed))
    )
    assert np.mean([few_lineages(found) is not None for found in rare]) > 0.8
    assert np.mean([float(found.families) < FEWEST_FAMILIES for found in rare]) < 0.7  # their number alone does not tell
    assert not any(few_lineages(found) for found in sound)
    warning = "cannot know whether it missed another such family"
    single = observables.Pool(rare_phase(1)), observables.Pool(synthetic.ladder(PROBLEM, seed=1))
    assert [warning in observables.report(pool) for pool in single] == [True, False]
    assert all("rare lineages that it did not find" in observables.report(pool) for pool in single)
    assert "families" not in observables.diagnostics(rare_phase(1, replicas=2))


def test_number_and_inequality_of_families():
    """1/sum s^2 and sum s^3/(sum s^2)^2: all of them and 1 for equal shares; half of them and 3/2 for exponential ones."""
    rng = np.random.default_rng(1)
    for weight, families, tail in ((np.ones(500), 500, 1.0), (rng.exponential(size=500), 250, 1.5)):
        shares = np.zeros((500, 1, 1))
        shares[:, 0, 0] = weight / weight.sum()
        squares = _none(1, 1)
        for stretch in (shares, 0.01 * shares):  # that with the fewest families counts, not the last one
            squares.add(_products(np.zeros((500, 1, 1)), stretch, 0.95))
        assert 1 / squares.squares[0] == pytest.approx(families, rel=0.2)
        assert squares.cubes[0] / squares.squares[0] ** 2 == pytest.approx(tail, rel=0.2)
