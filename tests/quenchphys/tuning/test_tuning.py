"""Tuning of kernels: the scale, which kernels get one, the step size and the number of transitions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lattices
import quenchphys as qp
from quenchphys.parallel.random_numbers import GENERATOR
from quenchphys.problem import view
from quenchphys.settings import Settings
from quenchphys.smc.levels import SoftLevels
from quenchphys.smc.loop import contained, plan_for
from quenchphys.smc.population import correlation
from quenchphys.smc.programs import programs_for
from quenchphys.tuning.dual_averaging import DualAveraging
from quenchphys.tuning.mutation_count import MOST, WANTED, MutationCount
from quenchphys.tuning.scale import combine_scale, expected_form, score_statistics, shrink


def reading(variance: np.ndarray, particles: int, seed: int = 0) -> jax.Array:
    """The anisotropy read from Gaussian scores with these variances."""
    score = np.random.default_rng(seed).normal(size=(particles, len(variance))) * np.sqrt(variance)
    _, direction, weight = score_statistics(jnp.asarray(score, jnp.float32), jnp.full(particles, 1 / particles))
    return direction / weight


PRECISION = np.linspace(1.0, 9.0, 200, dtype=np.float32)


def test_the_noise_of_a_reading_is_not_trusted():
    read = reading(PRECISION + 3.0, particles=100)
    expected = (PRECISION + 3.0) / (PRECISION + 3.0).sum()
    noise = np.sqrt(np.mean((np.asarray(read) / expected - 1) ** 2))
    left = np.sqrt(np.mean((np.asarray(shrink(read, jnp.asarray(PRECISION))) / expected - 1) ** 2))
    assert noise > 0.1, "the premise: a hundred particles say little about two hundred coordinates"
    assert left < 0.2 * noise


def test_a_large_departure_is_trusted():
    variance = np.where(np.arange(200) % 2, 0.1, 10.0)  # nothing like a line in the precision
    read = reading(variance, particles=2000)
    trusted = np.asarray(shrink(read, jnp.asarray(PRECISION)))
    # One per cent of the expected form stays, so that a factor of 100 is read as one of 70.
    assert trusted[::2].mean() / trusted[1::2].mean() == pytest.approx(70, rel=0.1)


def test_the_expected_form_is_a_line_and_positive():
    line = 2.0 * PRECISION + 5.0
    np.testing.assert_allclose(expected_form(jnp.asarray(line), jnp.asarray(PRECISION)), line, rtol=1e-3)
    falling = jnp.asarray(10.0 - 1.2 * PRECISION)  # a line through zero within the range
    assert np.all(np.asarray(expected_form(falling, jnp.asarray(PRECISION))) > 0)


def test_a_coordinate_without_score_gets_the_largest_scale():
    scale = combine_scale(jnp.asarray([0.0, 0.8, 0.2]), jnp.float32(2.0), jnp.ones(3))
    assert np.all(np.isfinite(scale)) and float(scale[0]) >= float(scale[2]) > float(scale[1])


@pytest.mark.parametrize("step_size", [0.1, None])
def test_an_untuned_kernel_does_not_know_the_particles(step_size):
    """With a step size given the scale is the prior's, else the unbiasedness of a prescribed ladder would be lost."""
    target = qp.targets.bimodal(8)
    settings = Settings(particles=64, replicas=2, kernel=qp.MALA(step_size=step_size))
    plan, mesh = plan_for(settings, 8, 1)
    with contained(mesh):
        program, argument = programs_for(plan, mesh), view(target).as_argument()
        key = jax.random.split(jax.random.key(0, impl=GENERATOR), 2)
        _, draws, seen = program.draw_prior(argument, key)
        begin = (SoftLevels(np.float32(2)), key, key[0], draws, seen, np.float32(np.nan))
        state, _, _ = program.start(argument, *begin)
    same = np.allclose(state.scale, 1.0)  # the prior is N(0, 1)
    assert same == (step_size is not None)


def test_correlation_of_a_weighted_population():
    rng = np.random.default_rng(1)
    before = rng.normal(size=(2, 4000)).astype(np.float32)
    after = np.stack([0.6 * before[0] + 0.8 * rng.normal(size=4000), np.full(4000, 7.0)]).astype(np.float32)
    weight = rng.uniform(size=4000)
    weight[:1000] = 0.0
    before[:, 0] = np.inf  # a dead particle does not count
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight / weight.sum()).astype(np.float32)
    found = np.asarray(correlation(jnp.asarray(log_weight), jnp.asarray(before), jnp.asarray(after)))
    exact = np.cov(before[0, 1000:], after[0, 1000:], aweights=weight[1000:])
    assert found[0] == pytest.approx(exact[0, 1] / np.sqrt(exact[0, 0] * exact[1, 1]), abs=1e-4)
    assert found[1] == 0.0, "a constant has nothing to remember"


def test_the_mutation_count_settles_where_the_slowest_quantity_is_forgotten():
    tau = 9.0
    count = MutationCount(qp.HMC(), 10)
    count.watch(view(lattices.phi6(L=4, mu2=2.3)), ["s_min", "q", "m"])  # in order: energy, m, q, s_min
    for _ in range(12):
        slowest, slow, fast = (np.exp(-count.transitions / t) for t in (90.0, tau, 2.0))
        count.update(np.full((16, 2), count.transitions), np.tile([fast, slowest, slow, slowest], (16, 2, 1)))
    assert count.transitions == round(-tau * np.log(WANTED))


def test_the_mutation_count_is_bounded_and_fixed_if_the_kernel_says_so():
    stuck = np.full((16, 2, 1), 0.9999)
    count = MutationCount(qp.HMC(), 10)
    for _ in range(20):
        count.update(np.full((16, 2), count.transitions), stuck)
    assert count.transitions == MOST * 6
    for kernel, number in ((qp.HMC(trajectories=5), 5), (qp.MALA(), 16)):
        fixed = MutationCount(kernel, 10)
        fixed.update(np.full((16, 2), number), stuck)
        assert fixed.transitions == number


def test_a_ladder_records_what_it_spent():
    ladder = qp.quench(qp.targets.gaussian(16), particles=64, replicas=2, softness=20.0, stop=qp.LevelLimit(40))
    spent = ladder.levels.transitions.values
    assert spent.min() < 6, "an easy target does not need six trajectories"
    assert ladder.attrs["gradients"] == pytest.approx(spent.sum() * qp.HMC().leapfrogs * 64)
    assert list(ladder.levels["quantity"].values) == ["energy", "r2"]
    assert float(ladder.levels.correlation[:, 1:].mean()) < 0.5


def test_dual_averaging_is_that_of_blackjax():
    from blackjax.optimizers.dual_averaging import dual_averaging

    begin, update, final = dual_averaging()
    errors = jnp.asarray(np.random.default_rng(4).uniform(-0.4, 0.6, (50, 3)), jnp.float32)
    theirs = jax.vmap(begin)(jnp.asarray([0.01, 0.3, 2.0]))
    ours = jax.vmap(DualAveraging.around)(jnp.asarray([0.01, 0.3, 2.0]))
    for error in errors:
        theirs, ours = jax.vmap(update)(theirs, error), jax.vmap(DualAveraging.update)(ours, error)
    for name in ("log_x", "log_x_avg", "step", "avg_error", "mu"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(ours.step_size, final(theirs))


def test_dual_averaging_finds_the_step_size_of_a_known_acceptance():
    search = DualAveraging.around(0.1)
    for _ in range(1000):
        search = search.update(0.8 - jnp.exp(-jnp.exp(search.log_x)))  # acceptance exp(-eps)
    assert float(search.step_size) == pytest.approx(-np.log(0.8), rel=0.05)
