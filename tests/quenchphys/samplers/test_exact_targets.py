"""Ladders against exact answers: volumes at every level, log Z, moments, phases, modes."""

from __future__ import annotations

import numpy as np
import pytest

import observables
import quenchphys as qp
from quenchphys import Outcome


def within(value, error, exact, sigmas=3.0):
    assert abs(value - exact) < sigmas * error, f"{value} +- {error} against {exact}"


def log_z(ladder):
    found = observables.partition_function(ladder, beta=[1.0])
    return float(found.log_z.squeeze()), float(found.log_z_err.squeeze())


@pytest.fixture(scope="module")
def gaussian():
    return qp.targets.gaussian(20), qp.quench(qp.targets.gaussian(20), particles=200, replicas=16, seed=1)


@pytest.fixture(scope="module")
def spike_slab():
    return qp.targets.spike_slab(10), qp.quench(qp.targets.spike_slab(10), particles=600, replicas=16, seed=2)


@pytest.mark.parametrize("made", ["gaussian", "spike_slab"])
def test_volumes_at_every_level(made, request):
    target, ladder = request.getfixturevalue(made)
    count = int(ladder.levels.level_count.min())
    energy, measured = (ladder.levels[name].values[:, :count] for name in ("energy", "log_volume"))
    exact = np.vectorize(lambda e: target.log_volume(float(e)))(energy[:, ::32])
    deviation = measured[:, ::32] - exact
    error = deviation.std(axis=0, ddof=1) / 4
    # Neighbouring levels are nearly the same random number: a handful are independent.
    assert np.max(np.abs(deviation.mean(axis=0) / error)) < 4
    assert error.max() < 0.06


def test_gaussian_evidence(gaussian):
    target, ladder = gaussian
    value, error = log_z(ladder)
    within(value, error, target.log_z)
    assert error < 0.05
    assert ladder.outcome is Outcome.CONVERGED
    found = observables.order_parameters(ladder)
    within(float(found.r2.squeeze()), float(found.r2_err.squeeze()), target.moments()["r2"])


def test_spike_slab_holds_both_phases(spike_slab):
    target, ladder = spike_slab
    value, error = log_z(ladder)
    within(value, error, target.log_z)
    assert error < 0.05
    found = observables.order_parameters(ladder)
    share = float(found.spike.squeeze())
    within(share, float(found.spike_err.squeeze()), 0.9)
    assert share == pytest.approx(0.9, abs=0.02)
    assert ladder.outcome is Outcome.CONVERGED


def test_tempering_misses_the_spike_and_says_so():
    # At D = 10 one prior draw in half a million falls into the spike and gives it away; at D = 20 none does.
    target = qp.targets.spike_slab(20)
    ladder = qp.temper(target, particles=1000, replicas=16, seed=3)
    value, error = log_z(ladder)
    assert value - target.log_z == pytest.approx(np.log(0.1), abs=0.02)
    assert error < 0.01
    assert ladder.outcome is Outcome.MISSED_PHASE
    assert "NOT TO BE TRUSTED" in ladder.report()


def test_too_shallow_a_quench_misses_the_spike_and_says_so():
    # At D = 10 a few particles reach the spike before so shallow an end; at D = 20 none does.
    ladder = qp.quench(qp.targets.spike_slab(20), particles=100, replicas=2, stop=qp.RemainingEvidence(-3))
    assert ladder.outcome is Outcome.MISSED_PHASE


@pytest.mark.parametrize("softness", [0.5, 8.0])
def test_other_softness(softness):
    """Any nu gives the same evidence of a smooth target; above 4 with HMC."""
    target = qp.targets.gaussian(20)
    ladder = qp.quench(target, particles=200, replicas=16, seed=5, softness=softness)
    within(*log_z(ladder), target.log_z)


def test_bimodal_keeps_both_modes():
    target = qp.targets.bimodal(10)
    ladder = qp.quench(target, particles=200, replicas=8, seed=6)
    within(*log_z(ladder), target.log_z)
    mode = [
        float(observables.order_parameters(qp.Ladder(ladder.tree.isel(replica=[r]))).mode.squeeze()) for r in range(8)
    ]
    within(np.mean(mode), np.std(mode, ddof=1) / np.sqrt(8), 0.5)


def test_symmetry_move_is_exact():
    """With x -> -x as a move the two modes of a double well are balanced in every replica, and log Z stays right."""

    class TwoWells:
        symmetries = (lambda x: -x,)

        def sample_prior(self, key, n):
            import jax

            return jax.random.normal(key, (n, 2))

        def log_prior(self, x):
            return -0.5 * (x * x).sum()

        def energy(self, x):
            return 30.0 * ((x[0] ** 2 - 1.0) ** 2 + 0.1 * x[1] ** 2)

        def observe(self, x):
            return {"right": (x[0] > 0).astype(x.dtype)}

    grid = np.linspace(-8, 8, 4001)
    first = np.trapezoid(np.exp(-0.5 * grid**2 - 30 * (grid**2 - 1) ** 2), grid) / np.sqrt(2 * np.pi)
    exact = np.log(first) - 0.5 * np.log1p(6.0)
    ladder = qp.quench(TwoWells(), particles=300, replicas=8, seed=7)
    within(*log_z(ladder), exact)
    found = observables.order_parameters(ladder)
    assert float(found.right.squeeze()) == pytest.approx(0.5, abs=0.01)
    last = int(ladder.levels.level_count.min()) - 1
    right = (np.exp(ladder.particles.log_weight) * ladder.particles.right)[:, last].sum("particle").values
    assert np.all(np.abs(right - 0.5) < 0.15), "every population is balanced down to its last level"
