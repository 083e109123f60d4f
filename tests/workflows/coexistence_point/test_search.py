"""A coexistence point from pilots and chains: right, kept, used again, refused where it must be."""

from __future__ import annotations

import json
import os
import signal
import threading

import numpy as np
import pytest
import xarray as xr

import quenchphys as qp
import workflows
from tests.support.mean_field_model import CUT, averages, coexistence_mu2, one_site
from workflows.budget import PARTS, CoexistenceSettings, LadderSettings, PilotSettings, Use, WalkSettings, seed_of
from workflows.coexistence_point.describe import cut_through_a_phase, doubts

L, BRACKET = 4, (0.5, 1.5)
SMALL = {"model": one_site, "sweeps": 320, "progress": False}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    out = tmp_path_factory.mktemp("coexistence") / "run.nc"
    return out, workflows.coexistence(L, BRACKET, out=out, **SMALL)


def test_the_coupling_of_equal_weight_and_log_z_are_those_of_quadrature():
    points = [workflows.coexistence(L, BRACKET, **SMALL | {"seed": seed}) for seed in range(100, 700, 100)]
    z = []
    for found in points:
        problem = one_site(L, float(found.mu2))
        share, log_z = averages(problem, lambda x: (x**2 >= CUT).astype(float))
        exact = [coexistence_mu2(L), log_z + np.log(1 - share), log_z + np.log(share)]
        measured = [float(found.mu2), *found.log_z.values]
        error = [float(found.mu2_err), *found.log_z_err.values]
        z.append((np.array(measured) - exact) / error)
    # Errors from 16 groups of chains.
    assert (np.abs(np.mean(z, axis=0)) < 4 / np.sqrt(len(z))).all()
    assert (np.std(z, axis=0) < 2.5).all()
    assert np.mean([abs(float(found.mu2) - coexistence_mu2(L)) for found in points]) < 0.005


def test_both_phases_are_described(kept):
    _, found = kept
    problem = one_site(L, float(found.mu2))
    share, _ = averages(problem, lambda x: (x**2 >= CUT).astype(float))
    q_ordered = averages(problem, lambda x: x**2 * (x**2 >= CUT))[0] / share
    measured, error = float(found.q.sel(phase="ordered")), float(found.q_err.sel(phase="ordered"))
    assert abs(measured - q_ordered) < 5 * error
    assert float(found.share.sel(phase="ordered")) == pytest.approx(0.5, abs=1e-4)
    assert found.trusted == 1
    assert float(found.latent_heat) > 0
    for name in ("p_q", "p_m", "log_p_energy", "ordered_share"):
        assert np.isfinite(found[name]).any()
    # P(q) of a single site diverges as 1/sqrt(q), so it has no peak whose height could be read.
    assert np.isnan(found["mu2_equal_height"]) and np.isnan(found["barrier"])


def test_any_coupling_may_be_the_open_one():
    mu2 = coexistence_mu2(L)
    found = workflows.coexistence(L, (-1.2, -0.8), coupling="lam", mu2=mu2, **SMALL)
    assert abs(float(found.lam) + 1.0) < 5 * float(found.lam_err)


def test_an_existing_result_is_refused_before_sampling(kept, monkeypatch):
    out, _ = kept
    monkeypatch.setattr(LadderSettings, "quench", _never)
    with pytest.raises(FileExistsError, match="exists already"):
        workflows.coexistence(L, BRACKET, out=out, **SMALL)


def test_a_result_can_be_analysed_again_without_sampling(kept, monkeypatch):
    out, before = kept
    monkeypatch.setattr(LadderSettings, "quench", _never)
    again = workflows.coexistence(L, BRACKET, out=out, overwrite=True, **SMALL)
    assert float(again.mu2) == float(before.mu2)
    assert float(workflows.load_result(out).mu2) == float(before.mu2)


def test_ladders_of_another_request_are_not_taken(kept, tmp_path):
    out, _ = kept
    (tmp_path / "run.ladders").mkdir()
    (tmp_path / "run.ladders/request.json").write_text((out.parent / "run.ladders/request.json").read_text())
    with pytest.raises(FileExistsError, match=r"another request.*seed was 0 and is now 5"):
        workflows.coexistence(L, BRACKET, out=tmp_path / "run.nc", **SMALL | {"seed": 5})


def test_defaults_are_a_pilot_of_4_x_64_particles_and_16_groups_of_8_chains():
    settings = CoexistenceSettings.of()
    assert settings.pilot == PilotSettings(particles=64, replicas=4)
    assert settings.walk == WalkSettings(groups=16, chains=8, sweeps=1600)
    assert settings.pilot.ladder(2) == LadderSettings(64, 4, seed=seed_of(0, Use.PILOT, 2))


def test_no_two_parts_of_neighbouring_studies_share_a_seed():
    seeds = [seed_of(study, use, number) for study in range(50) for use in Use for number in range(100)]
    assert len(set(seeds)) == len(seeds)
    assert seed_of(0, Use.PILOT) != seed_of(2**32, Use.PILOT)


def test_settings_are_used_as_given_and_old_names_set_the_pilot(tmp_path):
    """Pilot and chains have exactly the sizes that were given, and so has the request; a warning gives the new names."""
    out, sizes = tmp_path / "run.nc", {"groups": 8, "chains": 5}
    with pytest.warns(FutureWarning) as warned:
        found = workflows.coexistence(L, BRACKET, out=out, **SMALL | sizes | {"particles": 48, "replicas": 3})
    texts = [str(one.message) for one in warned if one.category is FutureWarning]
    assert [text.split(" (")[0] for text in texts] == [
        "particles is now called pilot_particles",
        "replicas is now called pilot_replicas",
    ]
    assert warned[0].filename == __file__
    ladder = qp.load(next((tmp_path / "run.ladders").glob("pilot*.nc")))
    assert (ladder.settings["particles"], ladder.settings["replicas"]) == (48, 3)
    with xr.open_dataset(next((tmp_path / "run.ladders").glob("walk1_*.nc")), engine="h5netcdf") as part:
        assert part["energy"].shape == (8, 32, 5)
    assert found.crossings.shape == (8,)
    request = json.loads(found.attrs["request"])
    sizes |= {"pilot_particles": 48, "pilot_replicas": 3}
    assert sizes.items() <= request.items()
    assert not {"particles", "replicas"} & set(request)
    # The new names are the same request: nothing is sampled again.
    again = workflows.coexistence(L, BRACKET, out=out, overwrite=True, **SMALL | sizes)
    assert float(again.mu2) == float(found.mu2)


def test_ladders_of_an_earlier_version_are_refused_in_one_sentence(tmp_path):
    (tmp_path / "run.ladders").mkdir()
    before = {"workflow": "coexistence", "format": 2, "particles": 500, "replicas": 8}
    (tmp_path / "run.ladders/request.json").write_text(json.dumps(before))
    with pytest.raises(FileExistsError, match=r"another request \(of an earlier version of quenchphys\)"):
        workflows.coexistence(L, BRACKET, out=tmp_path / "run.nc", **SMALL)


@pytest.mark.parametrize(
    ("bracket", "side", "replicas"), [((1.4, 1.8), "mu2 lies below 1.4", 4), ((0.3, 0.6), "mu2 lies above 0.6", 1)]
)
def test_a_bracket_beside_the_point_says_on_which_side_it_lies(bracket, side, replicas):
    with pytest.raises(ValueError, match=f"the ordered share is .* at {bracket[0]:g} and .*{side}"):
        workflows.coexistence(L, bracket, **SMALL | {"pilot_replicas": replicas})


def test_a_pilot_may_be_a_single_ladder():
    found = workflows.coexistence(L, BRACKET, **SMALL | {"pilot_replicas": 1})
    assert abs(float(found.mu2) - coexistence_mu2(L)) < 4 * float(found.mu2_err)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"bracket": (2.3, 2.2)}, "reversed: got 2.3 and 2.2"),
        ({"bracket": (2.3, 2.3)}, "equal: got 2.3 and 2.3"),
        ({"bracket": None, "model": one_site}, "bracket is missing: .*mean field knows where to look for mu2 of a scalar"),
        ({"bracket": None, "coupling": "lam", "mu2": 2.3}, "bracket is missing: give two values of lam"),
        ({"bracket": None, "model": "phi4"}, "second order by mean field.*quenchphys fss"),
        ({"bracket": (2.2, "high")}, "bracket must be two values of mu2"),
        ({"bracket": (2.2, float("nan"))}, "finite"),
        ({"model": "phi8"}, "no model 'phi8'; there are phi4, phi6"),
        ({"model": 6}, "model must be a name"),
        ({"coupling": "mu"}, "no coupling 'mu'; its couplings are mu2, lam, eta"),
        ({"coupling": "lam"}, "needs a value of mu2"),
        ({"mu2": 2.2}, "cannot be given"),
        ({"gamma": 1.0}, "no coupling 'gamma'"),
        ({"L": None}, "ive either L or shape .*neither was given"),
        ({"L": 8.5}, "must be integers"),
        ({"model": "phi4", "bracket": (0.1, 0.2)}, "second order by mean field.*use finite_size_scaling"),
        ({"bracket": (5.0, 6.0)}, "not expected to have two phases"),
        ({"pilot_particles": 1}, "pilot_particles must be at least 2; 1 was given"),
        ({"pilot_replicas": 0}, "pilot_replicas must be at least 1; 0 was given"),
        ({"groups": 7}, "groups must be at least 8; 7 was given"),
        ({"chains": 0}, "chains must be at least 1; 0 was given"),
        ({"sweeps": 100}, "sweeps must be at least 176; 100 was given"),
        ({"seed": -1}, "seed must be at least 0; -1 was given"),
        ({"particles": 100, "pilot_particles": 100}, "old name of pilot_particles .*: give one of them, not both"),
        ({"softness": -2.0}, "softness must be greater than -1"),
        ({"out": "no/such/folder/run.nc"}, "does not exist"),
    ],
)
def test_wrong_requests_are_refused_before_sampling(wrong, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(LadderSettings, "quench", _never)
    with pytest.raises((ValueError, TypeError, OSError), match=says):
        workflows.coexistence(**{"L": 8, "bracket": (2.25, 2.33), "out": "run.nc"} | wrong)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_study_keeps_what_it_has_and_goes_on(tmp_path, monkeypatch, ctrl_c):
    """Ctrl-C in the pilot, then in the second part of the walk, which stops after one device call of 16 sweeps."""
    out = tmp_path / "run.nc"
    settings = SMALL | {"model": "phi6", "sweeps": 640}  # more than one block of levels, and of sweeps in a part
    quench, walk, begun, walked = LadderSettings.quench, WalkSettings.walk, [], []

    class Impatient:
        """A meter that presses Ctrl-C after the first block of levels."""

        def update(self, *numbers):
            if numbers[0] == 16:
                os.kill(os.getpid(), signal.SIGINT)

        def close(self):
            pass

    def interrupted_ladder(self, problem, stop, progress, checkpoint):
        begun.append(checkpoint.name)
        return quench(self, problem, stop, Impatient() if len(begun) == 1 else progress, checkpoint)

    def interrupted_walk(self, problem, start, weight, part, *progress):
        walked.append(part)
        if walked == [0, 1]:
            os.kill(os.getpid(), signal.SIGINT)
        return walk(self, problem, start, weight, part, *progress)

    monkeypatch.setattr(LadderSettings, "quench", interrupted_ladder)
    monkeypatch.setattr(WalkSettings, "walk", interrupted_walk)
    with pytest.raises(workflows.Interrupted, match="Run the same command again to continue"):
        workflows.coexistence(4, (2.2, 2.5), out=out, **settings)
    assert sorted(file.suffix for file in (tmp_path / "run.ladders").iterdir()) == [".checkpoint", ".json"]
    with pytest.raises(workflows.Interrupted, match="Run the same command again to continue") as stopped:
        workflows.coexistence(4, (2.2, 2.5), out=out, **settings)
    assert str(stopped.value.__cause__).startswith("Interrupted after 16 sweeps")
    assert not out.exists()
    found = workflows.coexistence(4, (2.2, 2.5), out=out, **settings)
    assert begun[0] == begun[1]  # the pilot went on
    assert len(begun) == 2
    assert walked == [0, 1, *range(1, PARTS)]  # the part that was stopped, and no other, was walked twice
    monkeypatch.setattr(LadderSettings, "quench", quench)
    xr.testing.assert_equal(found, workflows.coexistence(4, (2.2, 2.5), **settings))
    assert not list((tmp_path / "run.ladders").glob("*.checkpoint"))
    assert signal.getsignal(signal.SIGINT) is ctrl_c


def test_outside_the_main_thread_no_signal_is_caught():
    found = []
    worker = threading.Thread(target=lambda: found.append(workflows.coexistence(L, BRACKET, **SMALL)))
    worker.start()
    worker.join()
    assert found[0].trusted == 1


def test_a_ladder_that_missed_a_phase_is_not_trusted(monkeypatch):
    """A pilot cut short must not look like an answer."""
    quench = LadderSettings.quench

    def shallow(self, problem, stop, progress, checkpoint):
        return quench(self, problem, qp.LevelLimit(6), progress, checkpoint)

    monkeypatch.setattr(LadderSettings, "quench", shallow)
    with pytest.raises(RuntimeError, match="ended with"):
        workflows.coexistence(L, BRACKET, **SMALL)


def test_chains_that_do_not_cross_give_no_answer(monkeypatch):
    """Steps too small to get anywhere."""
    still = qp.multicanonical

    def frozen(*arguments, **named):
        return still(*arguments, **named | {"kernel": qp.HMC(leapfrogs=1, step_size=1e-4)})

    monkeypatch.setattr(qp, "multicanonical", frozen)
    with pytest.raises(RuntimeError, match="never crossed from one phase to the other"):
        workflows.coexistence(L, BRACKET, **SMALL)


def test_what_makes_a_point_doubtful_is_said(kept):
    out, found = kept
    pilot = qp.load(next((out.parent / "run.ladders").glob("pilot*.nc")))

    def said(undefined=0.0, **changed):
        return doubts(pilot, [xr.Dataset(attrs={"undefined": undefined})], found.assign(changed), "mu2")

    assert said() == []
    assert "from phase to phase only 16 times" in said(crossings=0 * found.crossings + 1)[0]
    assert "saw one phase only" in said(mu2_group=found.mu2_group.where(np.arange(16) > 0))[0]
    assert "known to 0.5 nats only" in said(mu2_err=0.5 / abs(found.log_odds_slope))[0]
    assert "missed a part of a phase" in said(mu2_pilot=found.mu2 + 2.0, mu2_pilot_err=found.mu2_err)[0]
    assert "second half of the walk is 6.0 errors away" in said(drift=xr.Variable((), -6.0))[0]
    assert "undefined (NaN)" in said(undefined=0.1)[0]
    assert "too close to one of them" in said(q=found.q + 5.0)[0]
    assert "hardly met the energies of the prior" in said(meetings=0 * found.meetings + 3)[0]


@pytest.mark.parametrize(("cut", "doubted"), [(1.06, True), (0.8, False), (1.4, True), (0.2, True)])
def test_a_cut_through_the_peak_of_a_phase_is_doubted(cut, doubted):
    """phi6 with lam = -0.85 on 32 x 32, where the cut of mean field, 1.06, makes the jump 4% too small."""
    point = xr.Dataset({"q": ("phase", [0.28, 1.24])}, attrs={"phase_by": "q", "phase_cut": cut})
    assert ("too close to one of them" in cut_through_a_phase(point)) is doubted


def _never(*arguments, **named):
    raise AssertionError("nothing may be sampled here")
