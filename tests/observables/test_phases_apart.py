"""Two phases sampled apart: their point of equal weight against closed forms."""

import numpy as np
import pytest

import lattices
import observables
import quenchphys as qp
from lattices.phase_field import PhaseField

RUN = 1.1


def free_phase(stiffness: float) -> PhaseField:
    """A free field as a "phase": log Z = 1/2 sum log((s k + 1)/(s k + mu2)), from a Gaussian of another mass and mean."""
    field = lattices.scalar_field((6, 6), mu2=RUN, couplings={}, m0_sq=1.0, stiffness=stiffness)
    return PhaseField(field, 0.2, 1.8, 0.0, 0.0, np.inf, False, f"stiffness {stiffness:g}")


@pytest.fixture(scope="module")
def point():
    """Two stiffnesses have equal Z at mu2 = 1, where both are the prior, and at no other mu2."""
    ladders = [qp.bridge(free_phase(stiffness), sweeps=64, seed=seed) for stiffness, seed in ((3.0, 1), (1.0, 2))]
    return observables.separate_phases(*ladders)


def test_equal_weight_is_where_it_must_be(point):
    assert abs(float(point.mu2) - 1.0) < 3.5 * float(point.mu2_err) and float(point.mu2_err) < 0.02


def test_log_odds_at_the_run_and_their_slope(point):
    k = free_phase(1.0).field.lattice.eigenvalues
    log_z = [0.5 * np.log((s * k + 1) / (s * k + RUN)).sum() for s in (3.0, 1.0)]
    assert abs(float(point.log_odds) - (log_z[1] - log_z[0])) < 3.5 * float(point.log_odds_err)
    slope = -0.5 * (np.sum(1 / (k + 1)) - np.sum(1 / (3 * k + 1)))
    error = 0.5 * len(k) * np.hypot(*point.q_err.values)  # of -V/2 (<q>_o - <q>_d)
    assert abs(float(point.log_odds_slope) - slope) < 3.5 * error < 0.2 * abs(slope)


def test_phases_at_the_root(point):
    k = free_phase(1.0).field.lattice.eigenvalues
    for name, stiffness in (("disordered", 3.0), ("ordered", 1.0)):
        here = point.sel(phase=name)
        assert abs(float(here.q) - np.mean(1 / (stiffness * k + 1))) < 3.5 * float(here.q_err)
        assert abs(float(here.log_z)) < 3.5 * float(here.log_z_err)
    # At the root U = (mu2 - 1)/2 phi2 vanishes in both; its error is that of the root.
    assert abs(float(point.latent_heat)) < 3.5 * float(point.latent_heat_err)
    expected = 0.5 * float(point.mu2_err) * abs(float(np.sum(1 / (k + 1)) - np.sum(1 / (3 * k + 1))))
    assert float(point.latent_heat_err) == pytest.approx(expected, rel=0.2)


def test_both_phases_have_the_same_log_z(point):
    assert float(point.log_z[0]) == pytest.approx(float(point.log_z[1]), abs=1e-5)
    assert float(point.log_z_err[0]) == pytest.approx(float(point.log_z_err[1]), rel=1e-3)


def test_a_ladder_that_is_no_bridge_is_refused():
    ladder = qp.quench(qp.targets.gaussian(4), particles=50, replicas=2)
    with pytest.raises(ValueError, match="no log_scale"):
        observables.separate_phases(ladder, ladder)
