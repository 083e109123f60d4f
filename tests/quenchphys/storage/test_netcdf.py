"""A ladder on disk: read by strangers, written whole or not at all."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import quenchphys as qp
from quenchphys.storage.checksum import seal
from tests.support import synthetic

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def ladder():
    return synthetic.ladder(synthetic.Chi2(), particles=40, replicas=2, seed=1)


def run(code, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, env=environment
    )


def test_round_trip(ladder, tmp_path):
    path = ladder.save(tmp_path / "ladder.nc")
    again = qp.load(path)
    assert again.tree.equals(ladder.tree)
    assert again.couplings == ladder.couplings
    assert again.outcome is ladder.outcome
    for name in ladder.attrs:
        assert again.attrs[name] == ladder.attrs[name]
    assert "long_name" not in ladder.levels["energy"].attrs  # saving describes the file, not the ladder in memory
    assert list(tmp_path.iterdir()) == [path]


def test_a_stranger_reads_it_with_xarray_alone(ladder, tmp_path):
    path = ladder.save(tmp_path / "ladder.nc")
    code = """
import sys, xarray
tree = xarray.open_datatree(sys.argv[1])
assert not any(name.startswith(("quenchphys", "observables", "jax")) for name in sys.modules)
print(sorted(tree.children), tree["particles/energy"].dims, tree.attrs["seed"])
for node in tree.subtree:
    for variable in node.data_vars.values():
        assert variable.attrs["long_name"] and variable.attrs["units"], variable
"""
    done = run(code, path)
    assert done.returncode == 0, done.stderr
    assert "['configurations', 'levels', 'particles', 'prior'] ('replica', 'level', 'particle')" in done.stdout


def test_an_existing_file_is_kept_unless_asked(ladder, tmp_path):
    path = tmp_path / "ladder.nc"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ladder.save(path)
    assert path.read_bytes() == b"precious"
    ladder.save(path, overwrite=True)
    assert qp.load(path).tree.equals(ladder.tree)


KILLED = """
import os, signal, sys
from tests.support import synthetic
ladder = synthetic.ladder(synthetic.Chi2(), particles=40, replicas=2, seed=2)
if sys.argv[2] == "after writing":
    os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
else:
    import h5netcdf
    h5netcdf.File.close = lambda self: os.kill(os.getpid(), signal.SIGKILL)
ladder.save(sys.argv[1], overwrite=True)
"""


@pytest.mark.parametrize(
    ("moment", "existed"), [("while writing", True), ("after writing", True), ("after writing", False)]
)
def test_a_killed_save_leaves_the_old_file_or_none(ladder, tmp_path, moment, existed):
    path = tmp_path / "ladder.nc"
    if existed:
        ladder.save(path)
    done = run(KILLED, path, moment)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.exists() == existed
    if existed:
        assert qp.load(path).tree.equals(ladder.tree)
    ladder.save(path, overwrite=True)  # what was left over is in nobody's way
    assert qp.load(path).tree.equals(ladder.tree)


def test_what_is_no_ladder_is_named(ladder, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no ladder or walk"):
        qp.load(tmp_path / "nothing.nc")
    path = ladder.save(tmp_path / "ladder.nc")
    whole = path.read_bytes()
    for broken in (b"", b"not a file of this kind", whole[: len(whole) // 2]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="not a readable netCDF-4 file"):
            qp.load(path)
    xr.Dataset({"a": 1}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match="no group 'levels'"):
        qp.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "guess"}, "its method is 'guess'"),
        ({"outcome": "fine"}, "its outcome 'fine' is unknown"),
        ({"couplings": "__import__('os')"}, "'couplings' is not JSON"),
        ({"settings": "[1]"}, "'settings' is not a JSON object"),
    ],
)
def test_a_damaged_attribute_is_named(ladder, tmp_path, change, message):
    tree = ladder.tree.copy()
    tree.attrs = {**ladder.attrs, **change}
    path = qp.Ladder(tree).save(tmp_path / "ladder.nc")
    with pytest.raises(ValueError, match=message):
        qp.load(path)


def test_a_missing_variable_or_dimension_is_named(ladder, tmp_path):
    tree = ladder.tree.copy()
    tree["particles"].dataset = ladder.particles.drop_vars("log_weight")
    with pytest.raises(ValueError, match="particles/log_weight is missing"):
        qp.load(qp.Ladder(tree).save(tmp_path / "a.nc"))
    tree["particles"].dataset = ladder.particles.rename(particle="walker")
    with pytest.raises(ValueError, match="has the dimensions"):
        qp.load(qp.Ladder(tree).save(tmp_path / "b.nc"))


def test_where_a_file_cannot_be(ladder, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ladder.save(tmp_path / "nowhere" / "ladder.nc")
    with pytest.raises(IsADirectoryError, match="directory"):
        ladder.save(tmp_path)


def test_replicas_of_different_length(ladder, tmp_path):
    """Padding comes back as it was, and is not counted."""
    import observables

    tree = ladder.tree.copy()
    particles = ladder.particles.copy(deep=True)
    levels = ladder.levels.copy(deep=True)
    levels["level_count"][1] = 40
    levels["log_volume"][1, 40:] = np.nan
    for name in ("energy", "log_weight", "s1", "s2"):
        particles[name][1, 40:] = np.nan
    particles["parent"][1, 40:] = -1
    tree["levels"].dataset, tree["particles"].dataset = levels, particles
    again = qp.load(qp.Ladder(tree).save(tmp_path / "ladder.nc"))
    assert [len(r.level) for r in observables.Pool(again).replicas] == [ladder.levels.sizes["level"], 40]
    assert np.isfinite(observables.partition_function(again).log_z)


def test_a_file_that_was_changed_is_refused(ladder, tmp_path):
    path = ladder.save(tmp_path / "ladder.nc")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not as it was written"):
        qp.load(path)


@pytest.mark.parametrize("damage", ["zeroed", "cut", "longer"])
def test_a_damaged_seal_is_no_missing_seal(ladder, tmp_path, monkeypatch, damage):
    """Large variables stand last in a file: a tail of zeros takes their values and the seal together."""
    monkeypatch.setattr("quenchphys.storage.streaming.LARGE", 1000)
    path = ladder.save(tmp_path / "ladder.nc")
    content = path.read_bytes()
    path.write_bytes(
        {"zeroed": content[:-4000] + bytes(4000), "cut": content[:-10], "longer": content + b"more"}[damage]
    )
    with pytest.raises(ValueError, match="not as it was written"):
        qp.load(path)


def test_a_file_that_is_cut_while_it_is_written_is_not_sealed(ladder, tmp_path, monkeypatch):
    path = tmp_path / "ladder.nc"

    def cut(part):
        part.write_bytes(part.read_bytes()[:-100])
        seal(part)

    monkeypatch.setattr("quenchphys.storage.netcdf.seal", cut)
    with pytest.raises(OSError, match="cannot be written: another program changed the file while it was written"):
        ladder.save(path)
    assert list(tmp_path.iterdir()) == []


DATA = Path(__file__).parent / "data"


def test_a_ladder_written_by_an_earlier_version_is_read():
    """Written before files had a schema, when the format was called otherwise: gaussian(2), 2 x 20 particles, seed 5."""
    import observables

    ladder = qp.load(DATA / "ladder_before_the_schema.nc")
    assert isinstance(ladder, qp.Ladder)
    assert ladder.attrs["format"] == "quenchphys-ladder"
    assert ladder.outcome is qp.Outcome.CONVERGED and ladder.observables == ["r2"] and ladder.parameters == {"dim": 2}
    assert float(observables.partition_function(ladder, beta=[1.0]).log_z[0]) == pytest.approx(-1.5380, abs=1e-3)
    assert "converged" in ladder.report()


def test_a_file_of_a_later_format_is_refused(ladder, tmp_path):
    path = ladder.save(tmp_path / "ladder.nc")
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        later = tree.load()
    later.attrs["format"] = "quenchphys ladder 2"
    later.to_netcdf(tmp_path / "later.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"has the format 'quenchphys ladder 2', which this version .* cannot read"):
        qp.load(tmp_path / "later.nc")


def test_a_variable_of_another_type_is_named(ladder, tmp_path):
    tree = ladder.tree.copy()
    tree["particles"].dataset = ladder.particles.assign(parent=ladder.particles["parent"].astype(float))
    with pytest.raises(ValueError, match="particles/parent has the type float64, not int32"):
        qp.load(qp.Ladder(tree).save(tmp_path / "a.nc"))


def test_a_file_another_program_wrote_needs_no_seal_and_its_report_says_so(tmp_path):
    ours, theirs = DATA / "ladder_before_the_schema.nc", tmp_path / "theirs.nc"
    with xr.open_datatree(ours, engine="h5netcdf") as tree:
        tree.load().to_netcdf(theirs, engine="h5netcdf")
    assert qp.load(theirs).outcome is qp.load(ours).outcome
    assert "Not verified: another program wrote this file, without a checksum" in qp.load(theirs).report()
    again = qp.load(theirs).save(tmp_path / "again.nc")
    assert not any("Not verified" in qp.load(file).report() for file in (ours, again))
