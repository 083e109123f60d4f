"""Tables of the Bayesian networks, on made-up parts: what is compared with what, and what is doubted."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
import pytest
import xarray as xr

from tests.support import synthetic
from workflows.reproduction import bayes_factors, networks
from workflows.reproduction.classification import (
    FILES,
    RELU,
    TASKS,
    _by_chains,
    _by_laplace,
    ladder_settings,
    network_of,
    over_splits,
)
from workflows.reproduction.experiment import Bench, Effort
from workflows.reproduction.methods import AUTO, QES, SMC
from workflows.reproduction.network_profiles import profile
from workflows.store import Study

matplotlib.use("Agg")


def made_up(shift=None):
    """Parts whose Bayes factors are the paper's, but for a shift of some (task, method), and half a nat on each split."""

    def measured(bench, task, activation, split, method):
        factor = float(bayes_factors.PAPER[task][QES][0]) + (shift or {}).get((task, method), 0.0)
        log_z = -100.0 - (factor if activation == RELU else 0.0) + (0.5 * split if activation == RELU else 0.0)
        return xr.Dataset(
            {
                "log_z": log_z,
                "log_z_err": 0.3,
                "nll": 0.5 + 0.01 * split,
                "nll_err": 0.002,
                "ess_per_million": 2000.0,
                "ess_per_million_err": 50.0,
                "gradients": 1e5,
            }
        )

    return measured


def run(monkeypatch, experiment, splits, shift=None, **further):
    monkeypatch.setattr(experiment, "measured", made_up(shift))
    settings = {"tasks": list(TASKS), "splits": splits, "methods": [QES, AUTO, SMC]} | further
    with Study(None, {}, progress=False) as study:
        return experiment.run(Bench(study, settings, seed=0))


def row(table, **which):
    chosen = np.all([table[name].values == value for name, value in which.items()], axis=0)
    assert chosen.sum() == 1
    return table.isel(row=int(np.argmax(chosen)))


def test_bayes_factors_of_one_split_are_shown_and_not_judged(monkeypatch):
    table = run(monkeypatch, bayes_factors, [0])
    one = row(table, case="heart", method=QES, quantity="log BF")
    assert float(one["ours"]) == pytest.approx(7.7)
    assert float(one["ours_err"]) == pytest.approx(0.3 * math.sqrt(2))
    assert float(one["paper"]) == 7.7
    assert float(one["gradients"]) == 2e5
    assert np.isnan(one["deviation"])
    assert table.attrs["doubt"] == ""


def test_bayes_factors_of_several_splits_carry_their_scatter(monkeypatch):
    table = run(monkeypatch, bayes_factors, [0, 1, 2])
    one = row(table, case="heart", method=SMC, quantity="log BF")
    assert float(one["ours"]) == pytest.approx(7.2)
    assert float(one["ours_err"]) == pytest.approx(0.5 * math.sqrt(1 + 1 / 3))
    assert abs(float(one["deviation"])) < 1
    assert float(row(table, case="heart", method=SMC, quantity="log BF, split 2")["ours"]) == pytest.approx(6.7)


def test_a_method_may_have_fewer_splits(monkeypatch):
    table = run(monkeypatch, bayes_factors, [0, 1, 2], {("heart", QES): 5.0}, splits_of={f"heart {QES}": [0]})
    one, other = (row(table, case="heart", method=method, quantity="log BF") for method in (QES, SMC))
    assert np.isnan(one["deviation"]) and np.isfinite(other["deviation"])
    assert table.attrs["doubt"] == "QES and SMC are +8.3 combined errors apart on heart (split number 0)."


def test_a_wrong_sign_and_disagreement_are_doubted(monkeypatch):
    table = run(monkeypatch, bayes_factors, [0], {("glass", QES): 8.0, ("sonar", AUTO): 2.5})
    assert "QES finds another sign than the paper on 1 of 1 splits of glass." in table.attrs["doubt"]
    assert "QES, auto and SMC are +4.2 combined errors apart on sonar" in table.attrs["doubt"]
    assert "QES and SMC are +13.3 combined errors apart on glass" in table.attrs["doubt"]
    assert "heart" not in table.attrs["doubt"]


def test_networks(monkeypatch):
    table = run(monkeypatch, networks, [0, 1])
    one = row(table, case="winered", method=QES, quantity="test NLL")
    assert float(one["ours"]) == pytest.approx(0.505)
    assert float(one["paper"]) == 0.909
    assert float(row(table, case="winered", method=SMC, quantity=networks.ESS)["paper"]) == 582


@pytest.mark.parametrize("experiment", [networks, bayes_factors])
def test_settings_and_figures(monkeypatch, experiment):
    assert set(experiment.EXPERIMENT.settings) == set(Effort)
    assert experiment.EXPERIMENT.data == FILES
    assert experiment.EXPERIMENT.figure(run(monkeypatch, experiment, [0])).axes


def test_single_tasks_have_ladders_of_their_own():
    settings = bayes_factors.EXPERIMENT.settings[Effort.STANDARD]
    assert ladder_settings(settings, "heart", SMC) == settings["ladder"]
    assert ladder_settings(settings, "winered", QES)["particles"] == 24
    assert ladder_settings(settings, "winered", SMC)["particles"] == 40
    assert ladder_settings({"ladder": {"particles": 5}}, "winered", QES) == {"particles": 5}


def test_over_splits():
    assert over_splits([2.0], [0.1]) == (2.0, 0.1)
    mean, error = over_splits([1.0, 2.0, 3.0], [0.1] * 3)
    assert (mean, error) == (2.0, pytest.approx(math.sqrt(4 / 3)))


def test_heart_is_binary_without_incomplete_rows(tmp_path):
    rows = "".join(f"{i},{i % 5}\n" for i in range(40)) + "?,3\n"
    (tmp_path / "heart.csv").write_text("age,label\n" + rows)
    model = network_of(tmp_path, "heart", "tanh", 0)
    assert model.classes == ("0", "1")
    assert len(model.labels) + len(model.test_labels) == 40


@pytest.mark.parametrize(("problem", "last", "peaks"), [(synthetic.Chi2(), 3.0, 1), (synthetic.TwoPhases(), 17.0, 2)])
def test_peaks_of_a_profile(problem, last, peaks):
    """P(E) of a problem without a transition has one peak, however deep the ladder; with one it has two."""
    ladder = synthetic.ladder(problem, particles=100, replicas=4, seed=1, ess=0.8, last=last)
    found = profile(ladder, examples=10)
    assert float(found["peaks"]) == peaks
    assert float(found["energy"][int(found["log_p"].argmax())]) == 0
    assert float(found["depth"]) > 2
    # The area below P(E) is one, with the energy per example.
    area = np.trapezoid(np.exp(found["log_p"].values), 10 * found["energy"].values)
    assert area == pytest.approx(1, abs=0.3)


def laplace_of(monkeypatch, tmp_path, results):
    """`_by_laplace` of a small network, with made-up approximations; a text is a refusal."""
    (tmp_path / "glass.csv").write_text("a,label\n" + "".join(f"{i},{i % 2}\n" for i in range(20)))
    model = network_of(tmp_path, "glass", "tanh", 0)
    given = iter(results)

    def laplace(problem, *, seed, steps, learning_rate, starts, draws, tolerance):
        one = next(given)
        if isinstance(one, str):
            raise ValueError(one)
        field = np.random.default_rng(seed).normal(size=(1, draws, model.dim)).astype(np.float32)
        drawn = {"log_z": one, "field": (("chain", "draw", "parameter"), field)}
        return xr.Dataset(drawn, attrs={"why": "fine", "gradients": 50.0})

    monkeypatch.setattr("quenchphys.laplace", laplace, raising=False)
    return _by_laplace(model, {"starts": len(results), "steps": 1, "rate": 1e-3, "draws": 40}, seed=0)


def test_laplace_approximations_from_several_starts(monkeypatch, tmp_path):
    found = laplace_of(monkeypatch, tmp_path, [-100.0, -102.0, "no minimum"])
    assert float(found["log_z"]) == -101.0
    assert float(found["log_z_err"]) == pytest.approx(1.0)
    assert float(found["gradients"]) == 100.0
    assert 0 < float(found["nll_err"]) < float(found["nll"])
    assert found.attrs["outcome"] == "fine; fine; no minimum"


def test_a_laplace_approximation_that_does_not_apply_is_no_number(monkeypatch, tmp_path):
    found = laplace_of(monkeypatch, tmp_path, ["no minimum"])
    assert np.isnan(found["log_z"]) and np.isnan(found["nll"])
    assert found.attrs["outcome"] == "no minimum"


def test_what_laplace_returns_is_understood(tmp_path):
    """The same with the approximation itself, not a made-up one."""
    (tmp_path / "glass.csv").write_text("a,label\n" + "".join(f"{i},{i % 2}\n" for i in range(20)))
    model = network_of(tmp_path, "glass", "tanh", 0)
    found = _by_laplace(model, {"starts": 1, "steps": 4000, "rate": 1e-2, "draws": 40}, seed=0)
    assert np.isfinite(found["log_z"]), found.attrs["outcome"]
    assert 0 < float(found["nll_err"]) < float(found["nll"])


def test_chains_are_asked_for_predictions_and_effective_samples(monkeypatch, tmp_path):
    (tmp_path / "glass.csv").write_text("a,label\n" + "".join(f"{i},{i % 2}\n" for i in range(20)))
    model = network_of(tmp_path, "glass", "tanh", 0)
    asked = {}

    def chains(problem, **options):
        asked.update(options)
        field = np.random.default_rng(0).normal(size=(3, 20, model.dim)).astype(np.float32)
        drawn = xr.Dataset({"field": (("chain", "draw", "parameter"), field)}, attrs={"gradients": 4e6, "why": "fine"})
        return drawn.assign_coords(quantity=["energy"], ess_bulk=("quantity", [800.0]))

    monkeypatch.setattr("quenchphys.chains", chains, raising=False)
    found = _by_chains(model, "NUTS", {"chains": 3, "tune": 5, "draws": 20}, seed=7)
    assert asked == {"kernel": "nuts", "seed": 7, "progress": False, "chains": 3, "tune": 5, "draws": 20}
    assert float(found["ess_per_million"]) == pytest.approx(200.0)
    assert 0 < float(found["nll_err"]) < float(found["nll"])
