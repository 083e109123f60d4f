"""At a fixed schedule the volumes are unbiased, whatever the number of particles and however poor the mutation."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

import quenchphys as qp

RUNS = 1024
TARGET = qp.targets.gaussian(4)
KERNEL = qp.MALA(steps=1, step_size=0.15)


def _ratios(ladder, exact):
    return np.exp(ladder.levels["log_volume"].values - exact)


def _check(ratio):
    error = ratio.std(axis=0, ddof=1) / np.sqrt(len(ratio))
    z = (ratio.mean(axis=0) - 1) / error
    assert np.all(np.abs(z) < 3.5), z
    assert abs(z[-1]) < 3, z
    assert error[-1] < 0.1, "the test must be able to see a bias of a third"


def test_quench_at_fixed_levels():
    energies = np.linspace(8.0, 0.6, 14)
    ladder = qp.quench(
        TARGET,
        particles=24,
        replicas=RUNS,
        seed=3,
        levels=energies,
        kernel=KERNEL,
        stop=qp.LevelLimit(len(energies)),
        draws_per_particle=2,
        configurations=1,
    )
    assert (ladder.levels["level_count"] == len(energies)).all()
    exact = np.array([TARGET.log_volume(float(np.float32(e))) for e in energies])
    _check(_ratios(ladder, exact))
    # The evidence by quadrature is linear in the volumes, so it is unbiased for the quadrature of the exact ones.
    weight = np.exp(-energies) / np.exp(gammaln(3.0))
    estimate = np.exp(ladder.levels["log_volume"].values) @ weight
    truth = np.exp(exact) @ weight
    error = estimate.std(ddof=1) / np.sqrt(RUNS)
    assert abs(estimate.mean() - truth) < 3 * error
    assert error < 0.05 * truth


def test_temper_at_fixed_temperatures():
    betas = np.geomspace(0.05, 1.0, 10)
    ladder = qp.temper(
        TARGET,
        particles=24,
        replicas=RUNS,
        seed=4,
        betas=betas,
        kernel=KERNEL,
        draws_per_particle=2,
        configurations=1,
    )
    assert ladder.outcome is qp.Outcome.REACHED_BETA
    exact = np.array([TARGET.log_z_at(float(np.float32(b))) for b in betas])
    _check(_ratios(ladder, exact))


def test_the_population_did_lag():
    """The premise of the tests above: with so poor a kernel and so few particles single runs scatter widely."""
    ladder = qp.temper(
        TARGET,
        particles=24,
        replicas=RUNS,
        seed=4,
        betas=np.geomspace(0.05, 1.0, 10),
        kernel=KERNEL,
        draws_per_particle=2,
        configurations=1,
    )
    scatter = ladder.levels["log_volume"].values[:, -1].std()
    assert scatter > 0.15
    assert float(ladder.levels["displacement"].max()) < 0.5
    assert ladder.levels["lineages"].values[:, -1].mean() < 24 * 0.8
