"""Bridges: log Z of a phase against closed forms, their outcomes, and what they refuse."""

import numpy as np
import pytest

import lattices
import observables
import quenchphys as qp
from lattices.phase_field import PhaseField
from quenchphys.bridging.placement import error_of, integrals, lengths, log_volumes
from quenchphys.samplers.bridge_chains import RESERVE, excess_of


@pytest.fixture(scope="module")
def free():
    """From a Gaussian of other mean and mass to a free field: every answer is exact."""
    field = lattices.scalar_field((6, 6), mu2=2.0, couplings={}, m0_sq=1.0, stiffness=1.0)
    phase = PhaseField(field, 0.5, 0.8, 0.1, 0.0, np.inf, False, "free")
    return phase, qp.bridge(phase, sweeps=256, seed=3)


def test_log_z_of_a_free_field(free):
    phase, ladder = free
    k = phase.field.lattice.eigenvalues
    exact = 0.5 * np.log((k + 1.0) / (k + 2.0)).sum()
    found = observables.partition_function(ladder, beta=[1.0])
    z = (float(found.log_z[0]) + phase.log_scale - exact) / float(found.log_z_err[0])
    assert abs(z) < 3 and float(found.log_z_err[0]) < 0.05
    # The recorded volumes are those of thermodynamic integration, another estimate from the same samples.
    volume = ladder.levels["log_volume"].values[:, -1]
    assert abs(volume.mean() + phase.log_scale - exact) < 4 * volume.std() / np.sqrt(len(volume)) + 0.01


def test_averages_of_a_free_field(free):
    phase, ladder = free
    k = phase.field.lattice.eigenvalues
    found = observables.order_parameters(ladder, mu2=2.2)
    assert abs(float(found.q) - np.mean(1 / (k + 2.2))) < 4 * float(found.q_err)
    assert ladder.outcome is qp.Outcome.REACHED_BETA


def test_the_prior_has_as_many_draws_as_other_levels_have_samples(free):
    _, ladder = free
    assert ladder.prior.sizes["draw"] == ladder.particles.sizes["particle"] == 256
    energy = ladder.prior["energy"].values
    assert len(np.unique(energy)) == energy.size


def test_a_bridge_is_a_file(free, tmp_path):
    _, ladder = free
    again = qp.load(ladder.save(tmp_path / "bridge.nc"))
    assert again.method == "bridge" and again.particles.equals(ladder.particles)
    assert "bridge" in again.report()


def test_prescribed_betas(free):
    """Three betas do not fill a device call."""
    phase, _ = free
    ladder = qp.bridge(phase, sweeps=32, betas=[0.3, 0.7, 1.0], groups=8, seed=4)
    assert ladder.levels.sizes == {"replica": 8, "level": 3} and ladder.configurations["field"].shape == (8, 1, 6, 6)
    field, last = ladder.configurations["field"].values[:, 0], ladder.particles["q"].values[:, -1, -1]
    np.testing.assert_allclose((field**2).mean(axis=(1, 2)), last, rtol=1e-5)


def test_length_and_volume_of_known_curves():
    betas = np.linspace(0.1, 1, 10)
    assert lengths(betas, np.full(11, 3.0))[-1] == pytest.approx(3.0)
    known = np.concatenate([[0.0], betas])
    # <U> = 1 - beta + beta^3, with slope -Var U: the corrected trapezoid is exact for cubics.
    mean, variance = 1 - known + known**3, 1 - 3 * known**2
    assert log_volumes(betas, mean, variance)[-1] == pytest.approx(-(1 - 0.5 + 0.25))


def test_the_error_that_decides_when_to_stop():
    """That of the integral over independent betas; of 16 groups it scatters much less than the scatter of 16 integrals."""
    rng = np.random.default_rng(1)
    betas, width = np.array([0.05, 0.2, 0.5, 0.6, 1.0]), np.array([1.0, 3.0, 2.0, 0.5, 4.0])
    energy, draws = width[:, None, None] * rng.normal(size=(5, 8000, 3)), 2.0 * rng.normal(size=(8000, 4))
    truth = integrals(energy, draws, betas)[:, -1].std()
    few = [error_of(energy[:, i : i + 16], draws[i : i + 16], betas) for i in range(0, 8000, 16)]
    assert 4 * np.sqrt(np.mean(np.square(few))) == pytest.approx(truth, rel=0.03)
    assert np.std(few) / np.mean(few) < 0.15
    # Neither of the two estimates may exceed what was asked for.
    for i in range(0, 800, 16):
        groups = slice(i, i + 16)
        stated = integrals(energy[:, groups], draws[groups], betas)[:, -1].std(ddof=1) / 4
        both = max(stated, error_of(energy[:, groups], draws[groups], betas) / RESERVE)
        assert excess_of(energy[:, groups], draws[groups], betas, 0.5) == pytest.approx(both / 0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"groups": 12}, "multiple of 8"),
        ({"error": -1.0}, "error must be positive"),
        ({"betas": [0.5, 0.9]}, "end at 1"),
        ({"sweeps": 3}, "sweeps"),
    ],
)
def test_faulty_settings_are_refused(free, settings, words):
    with pytest.raises(ValueError, match=words):
        qp.bridge(free[0], **settings)


def test_a_problem_without_a_local_action_is_refused():
    with pytest.raises(TypeError, match="local action"):
        qp.bridge(qp.targets.gaussian(4))
