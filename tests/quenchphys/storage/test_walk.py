"""A walk on disk, as a ladder is: what was saved comes back, and anything else is refused in one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import observables
import quenchphys as qp
from quenchphys.walk import joined
from tests.support import synthetic

GROUPS, SWEEPS, CHAINS, DRAWS = 3, 5, 4, 7


def made_up(seed: int = 0) -> qp.Walk:
    rng = np.random.default_rng(seed)
    samples = ("group", "sweep", "chain")

    def single(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    data = xr.Dataset(
        {
            "energy": (samples, single(GROUPS, SWEEPS, CHAINS)),
            "q": (samples, single(GROUPS, SWEEPS, CHAINS)),
            "log_w": (samples, rng.normal(size=(GROUPS, SWEEPS, CHAINS))),
            "prior_log_w": (("group", "draw"), rng.normal(size=(GROUPS, DRAWS))),
            "last": (("group", "chain", "x", "y"), single(GROUPS, CHAINS, 2, 3)),
            "acceptance": ("group", single(GROUPS)),
            "step_size": ("group", single(GROUPS)),
            "scale": (("group", "coordinate"), single(GROUPS, 6)),
            "weight_energy": ("node", np.linspace(-1.0, 1.0, 9)),
            "weight_log": ("node", rng.normal(size=9)),
        },
        attrs={
            "problem": "phi6",
            "parameters": json.dumps({"shape": [2, 3]}),
            "couplings": json.dumps({"mu2": [2.3, "phi2", 0.5]}),
            "phases": json.dumps({"ordered": ["q", 1.25, None]}),
            "settings": json.dumps({"sweeps": SWEEPS}),
            "dimension": 6,
            "seed": seed,
            "gradients": 10.0,
            "undefined": 0.0,
            "wall_time": 0.5,
        },
    )
    return qp.Walk(data)


@pytest.fixture
def walk() -> qp.Walk:
    return made_up()


def test_round_trip(walk, tmp_path):
    path = walk.save(tmp_path / "walk.nc")
    again = qp.load(path)
    assert isinstance(again, qp.Walk)
    assert again.data.equals(walk.data)
    assert {name: again.data[name].dtype for name in again.data} == {name: walk.data[name].dtype for name in walk.data}
    assert {name: again.attrs[name] for name in walk.attrs} == dict(walk.attrs)
    assert again.couplings == {"mu2": (2.3, "phi2", 0.5)} and again.phases == {"ordered": ("q", 1.25, np.inf)}
    assert again.observables == ["q"] and again.dimension == 6 and again.problem == "phi6"
    np.testing.assert_array_equal(again.weight, walk.weight)
    np.testing.assert_array_equal(again.last, walk.last)
    assert "long_name" not in walk.data["energy"].attrs  # saving describes the file, not the walk in memory
    assert again.data["energy"].attrs == {"long_name": "energy U of the sample", "units": "nats"}


def test_an_existing_file_is_kept_unless_asked(walk, tmp_path):
    path = walk.save(tmp_path / "walk.nc")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        made_up(1).save(path)
    made_up(1).save(path, overwrite=True)
    assert qp.Walk.load(path).attrs["seed"] == 1


def test_ladder_and_walk_are_told_apart(walk, tmp_path):
    of_walk = walk.save(tmp_path / "walk.nc")
    ladder = synthetic.ladder(synthetic.Chi2(), particles=40, replicas=2, seed=1)
    of_ladder = ladder.save(tmp_path / "ladder.nc")
    assert isinstance(qp.load(of_ladder), qp.Ladder)
    with pytest.raises(ValueError, match=r"walk.nc does not hold a ladder: it has no group 'levels'\.$"):
        qp.Ladder.load(of_walk)
    with pytest.raises(ValueError, match=r"ladder.nc does not hold a walk: its format is 'quenchphys ladder 1'"):
        qp.Walk.load(of_ladder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.drop_vars("log_w"), r"does not hold a walk: the variable log_w is missing\.$"),
        (lambda data: data.rename(chain="walker"), "the variable energy has the dimensions"),
        (lambda data: data.assign(energy=data["energy"].astype(int)), "the variable energy has the type int64"),
        (lambda data: data.assign_attrs(couplings="os.system"), "its attribute 'couplings' is not JSON"),
        (lambda data: data.assign_attrs(phases="[1]"), "its attribute 'phases' is not a JSON object"),
    ],
)
def test_a_damaged_walk_is_refused(walk, tmp_path, change, message):
    path = qp.Walk(change(walk.data)).save(tmp_path / "walk.nc")
    with pytest.raises(ValueError, match=message) as refused:
        qp.load(path)
    assert "\n" not in str(refused.value)


def test_a_file_that_was_changed_is_refused(walk, tmp_path):
    path = walk.save(tmp_path / "walk.nc")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not as it was written"):
        qp.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a readable netCDF-4 file, so it holds no ladder or walk"):
        qp.load(path)


def test_parts_of_a_walk_are_joined():
    one, two = made_up(1), made_up(2)
    whole = joined([one, two])
    assert whole.energy.shape == (GROUPS, 2 * SWEEPS, CHAINS)
    np.testing.assert_array_equal(whole.energy, np.concatenate([one.energy, two.energy], axis=1))
    assert whole.data["prior_log_w"].sizes["draw"] == 2 * DRAWS
    np.testing.assert_array_equal(whole.last, two.last)
    assert whole.attrs["gradients"] == 20.0 and whole.attrs["wall_time"] == 1.0


def test_a_walk_is_restarted_from_other_configurations(walk):
    other = walk.restarted(np.zeros_like(walk.last))
    assert not other.last.any() and walk.last.any()
    for name in ("step_size", "scale", "weight_log"):
        np.testing.assert_array_equal(other.data[name], walk.data[name])
    # Its samples are not those of these configurations, so there are none.
    assert other.energy.shape == (GROUPS, 0, CHAINS) and other.data.sizes["draw"] == 0
    assert "not moved yet" in other.report()
    with pytest.raises(ValueError, match="has no sweeps"):
        observables.posterior(other)
