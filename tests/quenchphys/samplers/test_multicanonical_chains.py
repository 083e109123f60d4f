"""Chains of density pi(x) w(U(x)): they stay in it, know their weights exactly, and go on where they stopped."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import quenchphys as qp
from quenchphys.samplers.multicanonical_chains import Weight
from quenchphys.walk import Walk

D, SIGMA = 6, 0.5
ENERGY = np.linspace(1.0, 14.0, 40)
LOG_W = -0.4 * ENERGY - 0.5 * (ENERGY - 6) ** 2 / 9  # curved, so that slope and value must both be right
GROUPS, CHAINS = 8, 64


def log_w(energy):
    """The curve and its straight continuations, from the numbers that define it alone."""
    inside = np.clip(energy, ENERGY[0], ENERGY[-1])
    slope = -0.4 - (inside - 6) / 9
    return -0.4 * inside - 0.5 * (inside - 6) ** 2 / 9 + slope * (energy - inside)


def density(energy):
    """Of U = |x|^2/(2 sigma^2) with x ~ N(0, 1) and the weight w: 2 sigma^2 U is chi-squared with D degrees."""
    return stats.chi2.pdf(2 * SIGMA**2 * energy, D) * np.exp(log_w(energy))


@pytest.fixture(scope="module")
def problem():
    return qp.targets.gaussian(D)


@pytest.fixture(scope="module")
def exact():
    """U and configurations from the exact density, by inversion: (group, chain, D)."""
    grid = np.linspace(1e-6, 80, 200_001)
    share = integrate.cumulative_trapezoid(density(grid), grid, initial=0)
    rng = np.random.default_rng(3)
    energy = np.interp(rng.random((GROUPS, CHAINS)), share / share[-1], grid)
    direction = rng.standard_normal((GROUPS, CHAINS, D))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    return direction * np.sqrt(2 * SIGMA**2 * energy)[..., None]


def test_the_weight_is_the_curve_and_straight_beyond():
    weight = Weight.through(ENERGY, LOG_W)
    energy = np.linspace(-5, 25, 301)
    assert np.allclose(weight.log(energy), log_w(energy), atol=2e-3)
    step = 1e-3
    slope = (weight.log(energy + step) - weight.log(energy - step)) / (2 * step)
    assert np.allclose(np.asarray(weight.slope(energy.astype(np.float32), None)), slope, atol=2e-3)


@pytest.mark.parametrize("kernel", [qp.HMC(leapfrogs=4), qp.MALA()], ids=["hmc", "mala"])
def test_chains_started_in_their_density_stay_there(problem, exact, kernel):
    walk = qp.multicanonical(problem, exact, ENERGY, LOG_W, sweeps=320, warm_up=32, kernel=kernel, seed=1)
    z = integrate.quad(density, 0, 80, limit=200)[0]
    for power in (1, 2):
        mean = integrate.quad(lambda e, power=power: e**power * density(e), 0, 80, limit=200)[0] / z
        by_group = (walk.energy.astype(float) ** power).mean(axis=(1, 2))
        error = by_group.std(ddof=1) / np.sqrt(GROUPS)
        assert abs(by_group.mean() - mean) < 5 * error
        assert error < 0.02 * mean
    assert np.allclose(walk.data["log_w"], log_w(walk.energy.astype(float)), atol=2e-3)
    assert np.allclose(walk.data["r2"], 2 * SIGMA**2 * walk.energy, rtol=1e-4)


def test_weights_are_exact_for_another_target(problem, exact):
    """Z(1)/Z(0.5) from samples of neither."""
    walk = qp.multicanonical(problem, exact, ENERGY, LOG_W, sweeps=320, warm_up=32, seed=2)
    energy = walk.energy.astype(float)
    sums = [np.exp(-beta * energy - walk.data["log_w"].values).mean(axis=(1, 2)) for beta in (1.0, 0.5)]
    ratio = np.log(sums[0].mean() / sums[1].mean())
    without = [np.log(np.delete(sums[0], g).mean() / np.delete(sums[1], g).mean()) for g in range(GROUPS)]
    error = np.sqrt((GROUPS - 1) * np.var(without))
    assert abs(ratio - (problem.log_z_at(1.0) - problem.log_z_at(0.5))) < 5 * error
    assert error < 0.05


def test_draws_from_the_prior_come_with_the_walk(problem, exact):
    """<w> over the prior is known; groups have draws of their own, and so has every part of a walk."""
    walk = qp.multicanonical(problem, exact, ENERGY, LOG_W, sweeps=320, warm_up=32, seed=2)
    mean = integrate.quad(density, 0, 80, limit=200)[0] * 2 * SIGMA**2  # density has U, chi2 has 2 sigma^2 U
    by_group = np.exp(walk.data["prior_log_w"].values).mean(axis=1)
    error = by_group.std(ddof=1) / np.sqrt(GROUPS)
    assert abs(by_group.mean() - mean) < 5 * error
    assert error < 0.05 * mean
    draws = walk.data["prior_log_w"].values
    assert len(np.unique(draws)) > 0.99 * draws.size


def test_a_walk_is_a_matter_of_its_seed_and_goes_on(problem, exact):
    settings = {"sweeps": 16, "warm_up": 16}
    one, again, other = (qp.multicanonical(problem, exact, ENERGY, LOG_W, seed=s, **settings) for s in (4, 4, 5))
    assert np.array_equal(one.energy, again.energy)
    assert not np.array_equal(one.energy, other.energy)
    assert not np.isclose(one.data["prior_log_w"], other.data["prior_log_w"]).any()
    onward = qp.multicanonical(problem, one, ENERGY, LOG_W, seed=6, **settings)
    assert np.array_equal(onward.data["step_size"], one.data["step_size"])
    assert np.array_equal(onward.data["scale"], one.data["scale"])
    timid = Walk(one.data.assign(step_size=0 * one.data["step_size"] + 1e-5))
    timid = qp.multicanonical(problem, timid, ENERGY, LOG_W, seed=6, **settings)
    assert np.allclose(timid.energy[:, -1], (one.last**2).sum(axis=-1) / (2 * SIGMA**2), atol=0.05)


def test_a_walk_tells_what_it_is(problem, exact):
    walk = qp.multicanonical(problem, exact, ENERGY, LOG_W, sweeps=10, warm_up=0, kernel=qp.HMC(leapfrogs=4), seed=3)
    assert walk.data["energy"].dims == ("group", "sweep", "chain")
    assert (walk.problem, walk.dimension, walk.observables) == (problem.name, D, ["r2"])
    assert walk.attrs["format"] == "quenchphys walk 1" and walk.attrs["method"] == "multicanonical"
    assert walk.settings | {"kernel": None} == {
        "groups": GROUPS, "chains": CHAINS, "sweeps": 16, "warm_up": 0, "transitions": 4, "kernel": None
    }  # fmt: skip
    assert walk.settings["kernel"]["name"] == "HMC"
    assert np.array_equal(walk.weight, [ENERGY, LOG_W])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"start": np.zeros((2, 3, D + 1))}, r"shape \(group, chain, 6\)"),
        ({"start": np.full((2, 3, D), np.nan)}, "100% of it not finite"),
        ({"energy": ENERGY[::-1]}, "ascending energies"),
        ({"energy": ENERGY[:3], "log_weight": LOG_W[:3]}, "four or more"),
        ({"log_weight": LOG_W[:-1]}, r"\(40,\) and \(39,\)"),
        ({"sweeps": 0}, "sweeps must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"kernel": 3}, "kernel must be"),
    ],
)
def test_wrong_requests_are_one_sentence(problem, exact, wrong, says):
    right = {"start": exact, "energy": ENERGY, "log_weight": LOG_W, "sweeps": 16}
    with pytest.raises((ValueError, TypeError), match=says):
        qp.multicanonical(problem, **right | wrong)
