"""The experiments of the paper: listed, refused in words, resumed to the same bits, compared with right errors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import xarray as xr

import observables
import quenchphys as qp
import workflows
from tests.support import synthetic
from workflows.command_line import main
from workflows.reproduction import ORDER, experiments
from workflows.reproduction.experiment import Effort
from workflows.reproduction.path_length import drop, expected_carrying
from workflows.reproduction.pooling import carrying, pooled_kish, pooled_log_weights
from workflows.reproduction.table import Row, Stated, collect, doubts, stated


@pytest.fixture
def tiny(monkeypatch):
    """path-length as small as it can be."""
    small = {"dims": [10], "methods": ["QES", "SMC"], "particles": 60, "replicas": 2}
    known = experiments()
    known["path-length"] = dataclasses.replace(known["path-length"], settings=dict.fromkeys(Effort, small))
    monkeypatch.setattr("workflows.reproduction.reproduce_paper.experiments", lambda: known)
    return known


def test_the_list_teaches(capsys):
    assert main(["reproduce", "--list"]) == 0
    said = capsys.readouterr().out
    for one in experiments().values():
        assert one.name in said and one.label in said
    assert "quick" in said and "standard" in said and "paper" in said and "needs" in said


def test_every_experiment_is_complete():
    assert len(set(ORDER)) == 15
    for one in experiments().values():
        assert set(one.settings) == set(one.minutes) == set(Effort)
        assert one.minutes[Effort.STANDARD] <= 60, one.name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["path-lenght"], "There is no experiment 'path-lenght' (did you mean path-length?); there are"),
        (
            ["path-length", "--effort", "standart"],
            "There is no effort 'standart' (did you mean standard?); there are quick",
        ),
        (["path-length", "--seed", "-1"], "seed"),
        (["path-length", "--plot", "figure.bmp"], "ends in .png"),
        ([], "Which table or figure?"),
    ],
)
def test_a_wrong_request_is_one_sentence(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    said = capsys.readouterr().err
    assert says in said and len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_data_that_is_missing_is_named_before_anything_is_sampled(monkeypatch, tmp_path):
    known = experiments()
    known["sketch"] = dataclasses.replace(
        known["path-length"], name="sketch", data=("heart.csv", "glass.csv"), data_required=True
    )
    monkeypatch.setattr("workflows.reproduction.reproduce_paper.experiments", lambda: known)
    with pytest.raises(ValueError, match=r"sketch needs a folder with heart.csv, glass.csv"):
        workflows.reproduce("sketch")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        workflows.reproduce("sketch", data=tmp_path / "nowhere")
    (tmp_path / "heart.csv").write_text("1,2\n")
    with pytest.raises(FileNotFoundError, match=r"needs glass\.csv in"):
        workflows.reproduce("sketch", data=tmp_path)


def test_interrupted_and_resumed_is_the_same_to_the_bit(tiny, tmp_path, monkeypatch, capsys):
    """Stopped after its first ladder: the second run samples only the others, and the result is that of one run."""
    whole = workflows.reproduce("path-length", seed=3, out=tmp_path / "whole.nc")
    from workflows.reproduction import methods

    real, made = methods.sample, []

    def stopping(method, *arguments):
        if len(made) == 1:
            raise qp.Interrupted("Interrupted after 3 levels.")
        made.append(method)
        return real(method, *arguments)

    monkeypatch.setattr(methods, "sample", stopping)
    with pytest.raises(qp.Interrupted, match="Run the same command again"):
        workflows.reproduce("path-length", seed=3, out=tmp_path / "parts.nc")
    monkeypatch.setattr(methods, "sample", lambda method, *rest: made.append(method) or real(method, *rest))
    parts = workflows.reproduce("path-length", seed=3, out=tmp_path / "parts.nc")
    assert made == ["QES", "SMC"]
    xr.testing.assert_identical(whole.drop_attrs(), parts.drop_attrs())
    # A finished result is read, shown and drawn without sampling.
    assert main(["reproduce", "path-length", "--seed", "3", "--out", str(tmp_path / "parts.nc")]) == 0
    assert len(made) == 2
    said = capsys.readouterr().out
    assert "tab:typical" in said and "carrying weight" in said
    assert (tmp_path / "parts.png").stat().st_size > 10_000


def test_errors_of_printed_numbers():
    """The deviation of ten seeds, of three with Student's factor, and a number that was merely rounded."""
    assert stated("-0.89", "0.71", 10).error == pytest.approx(0.71 / math.sqrt(10), rel=0.07)
    assert stated("0.5", "0.3", 3).error == pytest.approx(1.32 * 0.3 / math.sqrt(3), rel=0.02)
    assert stated("-2.29", "0.00").error == pytest.approx(0.01 / math.sqrt(12))
    assert math.isnan(stated("43").error)


def test_deviations_are_in_combined_errors():
    rows = [
        Row("a", "QES", "x", 1.0, 0.3, Stated(0.0, 0.4), exact=0.7),
        Row("b", "QES", "x", 1.0, 0.3, Stated(0.0, 0.1)),
        Row("b", "SMC", "x", 1.0, 0.3, Stated(0.0, 0.1), comparable=False),
        Row("c", "QES", "levels", 7.0, paper=Stated(5.0)),
    ]
    table = collect(rows)
    assert table["deviation"].values[0] == pytest.approx(2.0)
    assert table["deviation_exact"].values[0] == pytest.approx(1.0)
    assert np.isnan(table["deviation"].values[2:]).all()
    assert doubts(table) == "x of QES on b is +3.2 errors from the printed value."


def test_weights_of_the_paper_on_exact_ladders():
    """Kish numbers of a synthetic ladder: levels as the theory says, and a tempered pool that weighs only what is near."""
    ladder = synthetic.ladder(synthetic.Chi2(), particles=400, replicas=1, seed=0)
    (replica,) = observables.Pool(ladder, volumes="telescoped").replicas
    log_q = pooled_log_weights(replica)
    assert np.exp(log_q).sum() == pytest.approx(1.0)
    # The pooled weights are those of the posterior: the mean energy is that of the estimator.
    mean = float((np.exp(log_q) * replica.particle_energy).sum())
    exact = observables.thermodynamics(ladder, 1.0)
    assert mean == pytest.approx(
        float(exact.energy.squeeze()), abs=4 * float(exact.energy_err.squeeze()) + 0.02 * abs(mean)
    )
    assert 1 < carrying(replica) < len(replica.level) and carrying(replica) < pooled_kish(replica) < log_q.size


def test_the_drop_of_a_level_follows_from_its_ess():
    """At nu = 0 the weights are 0 or 1, so the drop is -log(ESS); at nu = 2 it is that of a sum over exact slacks."""
    assert drop(0.9, nu=1e-9) == pytest.approx(-math.log(0.9), rel=1e-4)
    slack = np.random.default_rng(0).gamma(3.0, size=400_000)
    r = np.maximum(1 - drop(0.95) / slack, 0) ** 2
    assert r.mean() ** 2 / (r**2).mean() == pytest.approx(0.95, abs=0.002)
    assert expected_carrying(10_000) == pytest.approx(645.6, abs=0.1)
