"""A ladder says how it ended, and refuses what it cannot do in one sentence."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import quenchphys as qp
from quenchphys import Outcome
from quenchphys.stopping import Standing, fired
from tests.support.exact_draws import draw_level

TARGET = qp.targets.gaussian(16)
SMALL = {"particles": 64, "replicas": 2}


@pytest.mark.parametrize("step", [1e4, 1e-6])
def test_a_frozen_population_is_found(step):
    ladder = qp.quench(TARGET, **SMALL, kernel=qp.MALA(steps=4, step_size=step))
    assert ladder.outcome is Outcome.FROZEN
    assert not ladder.outcome.trusted
    assert "stopped moving" in ladder.report()
    assert int(ladder.levels.level_count.max()) < 12, "and early"


class Custom:
    """A Gaussian with a hole in which the energy is NaN, or whatever a test wants it to be."""

    def __init__(self, hole=lambda x: x[0] > 1e9, shape=(3,)):
        self.hole, self.shape = hole, shape

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, *self.shape))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        return jnp.where(self.hole(x), jnp.nan, 2 * jnp.sum(x * x))


def test_nan_on_part_of_the_prior():
    """The half space x_0 > 1 has no energy: the rest is sampled rightly, and the outcome says what happened."""
    ladder = qp.quench(Custom(lambda x: x[0] > 1.0), particles=400, replicas=8, seed=1)
    assert ladder.outcome is Outcome.UNDEFINED_ENERGY
    assert ladder.attrs["undefined_draws"] > 0
    assert "NaN" in ladder.report()
    from scipy import stats

    import observables

    exact = -1.5 * np.log(5.0) + np.log(stats.norm.cdf(1.0 * np.sqrt(5.0)))
    found = observables.partition_function(ladder, beta=[1.0])
    assert abs(float(found.log_z.squeeze()) - exact) < 3 * float(found.log_z_err.squeeze())


def test_nan_where_no_prior_draw_falls():
    """A hole the ladder only meets on its way down."""
    hole = lambda x: jnp.sum((x - 0.1) ** 2) < 0.02  # noqa: E731
    ladder = qp.quench(Custom(hole, shape=(6,)), particles=200, replicas=2, stop=qp.LevelLimit(120))
    assert ladder.attrs["undefined_draws"] == 0
    assert ladder.outcome is Outcome.UNDEFINED_ENERGY


def test_level_limit_and_time_limit():
    short = qp.quench(TARGET, **SMALL, max_levels=5)
    assert short.outcome is Outcome.LEVEL_LIMIT
    assert short.levels.sizes["level"] == 5
    assert qp.quench(TARGET, **SMALL, stop=qp.LevelLimit(5)).outcome is Outcome.LEVEL_LIMIT
    timed = qp.quench(TARGET, **SMALL, stop=qp.WallTime(1e-3))
    assert timed.outcome is Outcome.TIME_LIMIT


def test_reached_energy_is_the_first_level_below_it():
    ladder = qp.quench(TARGET, **SMALL, stop=qp.ReachedEnergy(5.0) | qp.LevelLimit(1000))
    assert ladder.outcome is Outcome.REACHED_ENERGY
    for r, count in enumerate(ladder.levels.level_count.values):
        energy = ladder.levels.energy.values[r]
        assert energy[count - 1] <= 5.0 < energy[count - 2]
        assert np.isnan(energy[count:]).all()
        assert np.all(ladder.particles.parent.values[r, count:] == -1)


def test_rules_combine():
    place = Standing(
        level=9,
        parameter=4.0,
        energy=np.array([1.0, 2.0]),
        log_weight=np.log([0.5, 0.5]),
        log_volume=-5.0,
        log_integral={1.0: -2.0},
        softness=2.0,
        elapsed=3.0,
    )
    deep, shallow = qp.ReachedEnergy(5.0), qp.ReachedEnergy(3.0)
    assert fired(deep | qp.LevelLimit(10), place) is Outcome.REACHED_ENERGY
    assert fired(shallow | qp.LevelLimit(10), place) is Outcome.LEVEL_LIMIT
    assert fired(shallow & qp.LevelLimit(10), place) is None
    assert fired(deep & qp.LevelLimit(10), place) is Outcome.REACHED_ENERGY
    assert fired(qp.WallTime(2.0), place) is Outcome.TIME_LIMIT
    assert fired(qp.RemainingEvidence(-3.0), place) is Outcome.CONVERGED
    assert fired(qp.RemainingEvidence(-5.0), place) is None


@pytest.mark.parametrize("beta", [0.7, 1.0, 1.6])
def test_the_evidence_below_a_level_is_that_of_quadrature(beta):
    """At an exactly sampled level, Z_below / Z_above by the rule against integrals over s = |x|^2."""
    target, level, nu = qp.targets.gaussian(10), 8.0, 5.0
    s = np.linspace(0, 200, 400_001)
    u = np.asarray(target.radial_energy(s, np))
    chi2 = stats.chi2.pdf(s, target.dim)
    slack = np.maximum(level - u, 0.0)
    z = integrate.trapezoid(chi2 * np.exp(-beta * u), s)
    below = integrate.trapezoid(chi2 * np.exp(-beta * u) * special.gammainc(nu + 1, beta * slack), s)
    integral = np.log(z - below) + special.gammaln(nu + 1) - (nu + 1) * np.log(beta)

    def log_factor(energy):
        return nu * np.log(np.maximum(level - energy, 0.0))

    x = draw_level(target, log_factor, 20_000, np.random.default_rng(1))
    energy = np.asarray(target.radial_energy((x**2).sum(axis=1), np))
    equal = np.full(len(x), -np.log(len(x)))
    place = Standing(3, level, energy, equal, target.log_volume(level, nu), {beta: integral}, nu, 1.0)
    measured = qp.EvidenceBelow(share=0.1, beta=beta).remaining(place) + np.log(0.1)
    terms = np.exp(-beta * energy) * special.gammainc(nu + 1, beta * (level - energy)) / (level - energy) ** nu
    error = terms.std() / terms.mean() / np.sqrt(len(x))
    assert error < 0.05
    assert abs(measured - np.log(below / (z - below))) < 4 * error


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"softness": -1.0}, "softness must be greater than -1"),
        ({"softness": float("nan")}, "softness must be a finite number"),
        ({"softness": "soft"}, "softness must be a finite number"),
        ({"particles": 1}, "particles must be at least 2; 1 was given"),
        ({"particles": 10.5}, "particles must be a whole number; 10.5 was given"),
        ({"replicas": 0}, "replicas must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"target_ess": 0.0}, "target_ess must lie between 0 and 1"),
        ({"target_ess": 1.0}, "target_ess must lie between 0 and 1"),
        ({"resample_ess": 1.5}, "resample_ess must lie between 0 and 1"),
        ({"stop": qp.RemainingEvidence(float("-inf"))}, "can never fire: dlogz must be a finite number"),
        ({"stop": qp.ReachedEnergy(float("-inf"))}, "can never fire: the energy must be a finite number"),
        ({"stop": qp.WallTime(float("inf"))}, "can never fire: the time must be positive and finite"),
        ({"stop": qp.LevelLimit(0)}, "can never fire: the number of levels must be at least 1"),
        ({"stop": qp.LevelLimit(9) | qp.ReachedEnergy(float("nan"))}, "can never fire"),
        ({"stop": -3}, "stop must be a rule"),
        ({"kernel": "mala"}, "kernel must be a kernel such as MALA"),
        ({"kernel": qp.MALA(step_size=-1.0)}, "step size of a kernel must be positive"),
        ({"kernel": qp.HMC(trajectories=0)}, "at least one step"),
        ({"levels": [1.0, 2.0]}, "levels must be strictly decreasing"),
        ({"levels": []}, "levels must be a list of finite numbers"),
    ],
)
def test_wrong_settings(wrong, says):
    with pytest.raises((ValueError, TypeError), match=says) as caught:
        qp.quench(TARGET, **wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"beta": 0.0}, "beta must be positive"),
        ({"betas": [0.0, 1.0]}, "betas must be positive"),
        ({"betas": [0.5, 0.2]}, "betas must be strictly increasing"),
        ({"stop": qp.RemainingEvidence(-3)}, "a tempered ladder has no energy levels"),
        ({"stop": qp.LevelLimit(3) | qp.ReachedEnergy(1.0)}, "a tempered ladder has no energy levels"),
    ],
)
def test_wrong_settings_of_temper(wrong, says):
    with pytest.raises(ValueError, match=says):
        qp.temper(TARGET, **wrong)


def broken(**methods):
    made = Custom()
    for name, method in methods.items():
        setattr(made, name, method)
    return made


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (object(), "needs the functions sample_prior, log_prior and energy"),
        (
            broken(energy=lambda x: x),
            r"energy\(x\) must return one real number .* it returned an array of shape \(3,\)",
        ),
        (broken(energy=lambda x: jnp.sum(x) + 0j), "energy.* must return one real number"),
        (broken(energy=lambda x: x @ jnp.ones((5, 5))), "energy of this Custom fails when it is called"),
        (broken(energy=lambda x: jnp.nan * jnp.sum(x)), "the energy is NaN on all 20 prior draws"),
        (broken(energy=lambda x: 0 * jnp.sum(x * x)), "the energy is 0 on every prior draw"),
        (broken(energy=lambda x: jnp.where(x[0] > -1, jnp.inf, x[0])), "infinite or NaN on"),
        (broken(log_prior=lambda x: x), r"log_prior\(x\) must return one real number"),
        (
            broken(sample_prior=lambda key, n: jnp.ones((4, 3))),
            r"sample_prior\(key, n\) must return an array \(n, ...\)",
        ),
        (broken(sample_prior=lambda key, n: jnp.ones(n)), "energy of this Custom fails when it is called: Too many indices"),
        (broken(sample_prior=lambda key, n: jnp.ones((n, 3), int)), "floating-point configurations"),
        (broken(observe=lambda x: {"a": x}), r"observe\(x\) must return a dict of scalars; .* for 'a'"),
        (broken(observe=lambda x: 1.0), r"observe\(x\) must return a dict of scalars"),
        (broken(observe=lambda x: {"energy": x[0]}), "may not be called 'energy'"),
        (broken(stop={"depth": 3}), "the stop of a problem is"),
    ],
)
def test_wrong_problems(problem, says):
    with pytest.raises((ValueError, TypeError), match=says) as caught:
        qp.quench(problem, particles=2, replicas=1)
    assert "\n" not in str(caught.value)


class Hidden:
    """Two wells, one of them so narrow and so far out that no draw meets it; it may be named as a phase."""

    def __init__(self, phases):
        self.phases = phases

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 4))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        return jnp.minimum(jnp.sum((x + 1) ** 2), 500 * jnp.sum((x - 3) ** 2) - 60.0)

    def observe(self, x):
        return {"x": jnp.mean(x)}


def test_trust_says_what_was_checked_and_what_cannot_be():
    """A mode that nobody met and nobody named is invisible, so the report says that it would be; a named one is missed."""
    unnamed = qp.quench(Hidden({}), **SMALL)
    assert unnamed.outcome.trusted
    assert "phases (none is named); no check can see a mode that no prior draw and no particle came near" in unnamed.report()
    named = qp.quench(Hidden({"left": ("x", -jnp.inf, 2.0), "right": ("x", 2.0, jnp.inf)}), **SMALL)
    assert named.outcome is Outcome.MISSED_PHASE
    assert "no check can see" not in named.report()
