"""Runs of different seeds in one: right weights and errors, and nothing joined that does not belong together."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import observables
import quenchphys as qp
import workflows
from tests.support import synthetic
from workflows.command_line import main
from workflows.joined_runs import SCATTER

TRUTH = np.array([1.0, -2.0])


def made_up(seed, rng, settings=None, spread=1.0, groups=16):
    """A result whose errors are those of a jackknife over 16 groups."""
    each = TRUTH + 0.1 * rng.normal(size=(groups, 2)) + 0.1 * (spread - 1) * rng.normal(size=2)
    value, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(groups)
    axis = np.linspace(0, 1 + 0.01 * seed, 50)
    data = {
        "mu2": ((), value[0]),
        "mu2_err": ((), error[0]),
        "q": ("phase", value),
        "q_err": ("phase", error),
        "mu2_group": ("group", each[:, 0]),
        "p_q": ("q_axis", 2 * axis),
        "p_q_err": ("q_axis", np.full(50, 0.1)),
        "law": ((), value[0]),
        "law_err": ((), error[0]),
        "law_chi2": ((), 1.5),
        "law_dof": ((), 2),
        "law_p_value": ((), 0.4),
    }
    request = {"workflow": "coexistence", "L": 8, "seed": seed} | (settings or {})
    attrs = {"workflow": "coexistence", "request": json.dumps(request), "trusted": 1, "why": "", "wall_time": 3.0}
    return xr.Dataset(data, coords={"phase": ["a", "b"], "q_axis": axis, "beta": 1.0}, attrs=attrs)


def test_the_error_of_joined_runs_covers_the_truth():
    rng = np.random.default_rng(0)
    z = []
    for _ in range(500):
        joined = workflows.pool([made_up(seed, rng) for seed in range(4)])
        z.append(((joined.q - TRUTH) / joined.q_err).values)
    z = np.array(z)
    # 60 degrees of freedom: Student's t is nearly normal, and 1000 values know their deviation to 0.022.
    assert abs(z.mean()) < 4 * 0.032
    assert abs(z.std() - 1.0) < 4 * 0.023 + 0.02
    assert float(joined.mu2_err) == pytest.approx(0.1 / np.sqrt(64), rel=0.3)


@pytest.mark.filterwarnings("error")  # a command shows warnings to its user
def test_everything_of_the_runs_is_joined():
    rng = np.random.default_rng(1)
    runs = [made_up(seed, rng) for seed in (3, 5)]
    joined = workflows.pool(runs)
    assert float(joined.mu2) == pytest.approx(0.5 * (float(runs[0].mu2) + float(runs[1].mu2)))
    assert joined.sizes["group"] == 32
    assert (float(joined.law_chi2), float(joined.law_dof)) == (3.0, 4.0)
    assert float(joined.law_p_value) == pytest.approx(0.558, abs=1e-3)
    assert np.allclose(joined.p_q, 2 * joined.q_axis)  # a straight line stays one on the axis of the first run
    assert joined.attrs["trusted"] == 1 and json.loads(joined.attrs["seeds"]) == [3, 5]
    assert joined.attrs["wall_time"] == 6.0


def test_runs_that_scatter_more_than_their_errors_are_not_trusted():
    rng = np.random.default_rng(2)
    joined = workflows.pool([made_up(seed, rng, spread=4.0) for seed in range(4)])
    assert joined.attrs["trusted"] == 0
    assert "scatter more than their errors allow for" in joined.attrs["why"]
    assert float(joined.q_err.max()) > 0.05
    assert SCATTER < 0.01


def test_ladders_become_one_with_all_replicas(tmp_path, capsys):
    problem = synthetic.Chi2()
    ladders = [synthetic.ladder(problem, particles=60, replicas=2, seed=seed, last=3.0 + seed) for seed in (0, 1, 2)]
    files = [str(ladder.save(tmp_path / f"seed_{number}.nc")) for number, ladder in enumerate(ladders)]
    assert main(["pool", *files, "--out", str(tmp_path / "all.nc")]) == 0
    assert "3 runs joined in" in capsys.readouterr().out
    joined = qp.load(tmp_path / "all.nc")
    assert joined.prior.sizes["replica"] == 6 and joined.settings["replicas"] == 6
    apart, together = (observables.partition_function(source, [0.5, 1.0]) for source in (ladders, joined))
    for name in ("log_z", "log_z_err"):
        assert np.array_equal(apart[name], together[name])
    assert observables.posterior(joined, draws=50).sizes["chain"] == 6
    assert main(["show", str(tmp_path / "all.nc")]) == 0
    assert main(["pool", *files, "--out", str(tmp_path / "all.nc")]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        (lambda rng: [made_up(1, rng)], "At least two runs"),
        (lambda rng: made_up(1, rng), "At least two runs"),
        (lambda rng: [made_up(1, rng), made_up(2, rng), made_up(1, rng)], "run 0 and run 2 have the same seed, 1"),
        (lambda rng: [made_up(1, rng), made_up(2, rng, {"L": 9})], "only their seeds may differ: L is 8 there and here 9"),
        (lambda rng: [xr.Dataset(), made_up(1, rng)], "must be the result of a workflow"),
        (lambda rng: ["nowhere.nc", made_up(1, rng)], "There is no file nowhere.nc"),
        (
            lambda rng: [synthetic.ladder(synthetic.Chi2(), particles=20), made_up(1, rng)],
            "cannot be joined with each other",
        ),
        (
            lambda rng: [synthetic.ladder(synthetic.Chi2(), particles=20, seed=s) for s in (4, 4)],
            "run 0 and run 1 have the same seed, 4",
        ),
        (
            lambda rng: [synthetic.ladder(synthetic.Chi2(), particles=n, seed=n) for n in (20, 30)],
            "only their seeds may differ: particles is 20",
        ),
    ],
)
def test_what_does_not_belong_together_is_refused(runs, says):
    with pytest.raises((ValueError, FileNotFoundError), match=says):
        workflows.pool(runs(np.random.default_rng(3)))


def test_seeds_are_run_and_joined():
    rng = np.random.default_rng(4)
    found = workflows.over_seeds(lambda seed: made_up(seed, rng), range(3))
    assert found.attrs["runs"] == 3
    with pytest.raises(ValueError, match="at least two different"):
        workflows.over_seeds(lambda seed: made_up(seed, rng), [1, 1])
