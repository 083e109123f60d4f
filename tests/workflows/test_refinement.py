"""Chains over the energies of a ladder: exact answers at every temperature, and a ladder that lags is not believed."""

from __future__ import annotations

import numpy as np
import pytest

import observables
import quenchphys as qp
import workflows
from quenchphys.ladder import Ladder
from tests.support.mean_field_model import CUT, averages, coexistence_mu2, one_site
from workflows.refinement import balance_of

L = 8
MU2 = coexistence_mu2(L)
BETAS = np.array([0.3, 0.7, 1.0, 1.3])
WALK = {"groups": 8, "chains": 8, "sweeps": 320}


@pytest.fixture(scope="module")
def problem():
    return one_site(L, MU2)


@pytest.fixture(scope="module")
def ladder(problem):
    return qp.quench(problem, particles=64, replicas=4, seed=1, progress=False)


def test_a_walk_answers_at_every_temperature_like_quadrature(problem, ladder, tmp_path):
    walk = workflows.polish(problem, ladder, beta=1.3, **WALK, out=tmp_path / "walk.nc", progress=False)
    assert walk.attrs["trusted"] == 1
    found = observables.thermodynamics(walk, BETAS)
    exact_u, exact_z = np.array([averages(problem, lambda x: _energy(problem, x), beta) for beta in BETAS]).T
    assert (np.abs(found.log_z - exact_z) < 4 * found.log_z_err).all()
    assert (np.abs(found.energy - exact_u) < 4 * found.energy_err).all()
    assert found.log_z_err.max() < 0.1
    share = observables.phase_weights(walk)
    exact, _ = averages(problem, lambda x: (x**2 >= CUT).astype(float))
    assert abs(float(share.ordered_share) - exact) < 4 * float(share.ordered_share_err)
    again = qp.load(tmp_path / "walk.nc")
    assert isinstance(again, qp.Walk) and (again.energy == walk.energy).all()


def test_chains_that_remember_their_start_are_not_believed(problem, ladder, monkeypatch):
    """What is compared is right; the drift itself is set by hand."""
    name, answer = balance_of(ladder, 1.0)
    assert name == "the log odds of the phases"
    walk = workflows.polish(problem, ladder, **WALK, progress=False)
    value, error = answer(observables.Pool(walk))
    exact, _ = averages(problem, lambda x: (x**2 >= CUT).astype(float))
    assert abs(value - np.log(exact / (1 - exact))) < 4 * error
    monkeypatch.setattr("workflows.refinement.drift_of", lambda walks, answer: -6.0)
    doubted = workflows.polish(problem, ladder, **WALK, progress=False)
    assert doubted.attrs["trusted"] == 0
    assert "second half of the walk is 6.0 errors away from the first in the log odds" in doubted.attrs["why"]


def _energy(problem, x):
    p = x * x
    return float(problem.volume) * (float(problem.mu2) / 2 * p + float(problem.lam) * p**2 + float(problem.eta) * p**3)


def test_a_ladder_of_another_model_is_refused(ladder):
    with pytest.raises(ValueError, match="with its own model"):
        workflows.polish(one_site(L, MU2 + 0.1), ladder, **WALK)


def test_a_curve_from_a_ladder_that_lags_rests_on_chains(problem, ladder, monkeypatch):
    """The outcome is set by hand: a model that lags takes minutes."""
    lagged = Ladder(ladder.tree.copy())
    lagged.tree.attrs["outcome"] = qp.Outcome.LAGGED.value
    monkeypatch.setattr("workflows.budget.LadderSettings.quench", lambda self, *_: lagged)
    monkeypatch.setattr("workflows.thermal.WalkSettings", lambda seed: workflows.budget.WalkSettings(**WALK, seed=seed))
    found = workflows.partition_function(problem, BETAS, particles=64, replicas=4, progress=False)
    _, exact = np.array([averages(problem, lambda x: x, beta) for beta in BETAS]).T
    assert found.trusted == 1 and found.attrs["method"] == "multicanonical"
    assert (np.abs(found.log_z - exact) < 4 * found.log_z_err).all()
