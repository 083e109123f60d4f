"""A weight is improved from a walk that has hardly begun: chains with a known stationary distribution, badly started."""

from __future__ import annotations

import numpy as np
import pytest

import observables
from observables.multicanonical_weight import stationary
from quenchphys.walk import Walk
from tests.support import synthetic

GROUPS, CHAINS, SWEEPS = 4, 50, 400


def log_met(u):
    """log of how often a walk on 0..400 meets u in the end: a hill, and one side favoured by three nats."""
    return 3.0 * u / 400.0 + np.exp(-((u - 160.0) ** 2) / 3200.0)


@pytest.fixture(scope="module")
def walk():
    """Metropolis steps of twelve units; everybody starts on the side that is hardly met in the end."""
    rng = np.random.default_rng(1)
    u = np.broadcast_to(np.linspace(0.0, 240.0, CHAINS), (GROUPS, CHAINS)).copy()
    seen = []
    for _ in range(SWEEPS):
        proposal = u + rng.normal(0.0, 12.0, u.shape)
        inside = (proposal > -20) & (proposal < 420)
        log_accept = log_met(np.clip(proposal, 0, 400)) - log_met(np.clip(u, 0, 400))
        u = np.where(inside & (np.log(rng.random(u.shape)) < log_accept), proposal, u)
        seen.append(u)
    return synthetic.walk({"energy": np.stack(seen, axis=1)})


def flattened(walk, energy, log_weight, like=None):
    """The new weight of a walk that had this one."""
    nodes = {"weight_energy": ("node", energy), "weight_log": ("node", log_weight)}
    return observables.flattened(Walk(walk.data.drop_dims("node").assign(nodes)), like)


def test_a_weight_is_flattened(walk):
    energy = np.linspace(0.0, 400.0, 201)
    found_at, found = flattened(walk, energy, np.zeros_like(energy))
    assert (found_at == energy).all()
    exact = -log_met(energy)
    error = (found - found.mean()) - (exact - exact.mean())
    # The histogram still shows where the chains were put.
    count, _ = np.histogram(walk.energy, np.linspace(0, 400, 21))
    histogram = -np.log(count) + log_met(np.linspace(10, 390, 20))
    assert np.ptp(histogram) > 1.0
    assert np.ptp(error) < 0.7
    assert error.std() < 0.2


def test_the_weight_of_the_walk_is_the_one_improved(walk):
    energy = np.linspace(0.0, 400.0, 201)
    straight = 0.3 * energy
    flat, tilted = (flattened(walk, energy, w)[1] for w in (np.zeros_like(energy), straight))
    np.testing.assert_allclose(tilted - straight, flat)


def test_energies_are_met_as_often_as_others(walk):
    energy = np.linspace(0.0, 400.0, 201)
    like = 400 * np.sqrt(np.random.default_rng(2).random(200_000))  # a density that grows with u
    flat, tilted = (flattened(walk, energy, 0 * energy, like=seen)[1] for seen in (None, like))
    ratio = (tilted - flat)[20:] - np.log(np.maximum(energy[20:] / 200, 0.1))
    assert np.ptp(ratio) < 0.3


def test_energies_never_met_do_not_break_it(walk):
    energy = np.linspace(-800.0, 1200.0, 201)
    assert np.isfinite(flattened(walk, energy, np.zeros_like(energy))[1]).all()


def test_ends_that_are_close_keep_their_weight(walk):
    energy = np.linspace(0.0, 20.0, 50)
    assert (flattened(walk, energy, 0.1 * energy)[1] == 0.1 * energy).all()


def test_stationary_distribution():
    matrix = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.1, 0.9]])
    found = stationary(1e6 * matrix)
    np.testing.assert_allclose(found @ matrix, found)
    assert found.sum() == pytest.approx(1.0)


def test_rare_states_are_accurate():
    """A chain that climbs 100 nats: each state is e^-10 times as likely as the one before."""
    up, down = np.exp(-10.0), 0.5
    steps = up * np.eye(11, k=1) + down * np.eye(11, k=-1) + (1 - up - down) * np.eye(11)
    steps[0, 0], steps[-1, -1] = 1 - up, 1 - down
    np.testing.assert_allclose(np.diff(np.log(stationary(steps))), np.log(up / down), rtol=1e-12)
