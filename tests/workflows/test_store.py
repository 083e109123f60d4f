"""The files of a study: never another study's, never two studies at a time, and whole after a kill at any moment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import quenchphys as qp
import workflows
from quenchphys.storage.checkpoint import Unusable
from quenchphys.storage.lock import InUse, Lock
from tests.support import synthetic
from tests.support.mean_field_model import one_site
from workflows.command_line import main
from workflows.model_family import family_of
from workflows.store import Study, finished, request_of, with_checkpoint

ROOT = Path(__file__).resolve().parents[2]
REQUEST = request_of("test", {"model": "one site"}, {"seed": 0})
PROBLEM = one_site(4, 1.0)


class Sampling:
    """Settings whose ladders take no time, and are counted."""

    particles, replicas = 40, 2

    def __init__(self):
        self.ladders = 0

    def quench(self, problem, stop, progress, checkpoint):
        self.ladders += 1
        checkpoint.mkdir()
        return synthetic.ladder(synthetic.Chi2(), particles=self.particles, replicas=self.replicas, seed=self.ladders)


@pytest.fixture
def kept(tmp_path):
    """A study with one ladder, which ended before its result."""
    with Study(tmp_path / "run.nc", REQUEST) as study:
        study.ladder("pilot", PROBLEM, Sampling(), "pilot")
    return tmp_path / "run.nc"


def again(out, request=REQUEST, problem=PROBLEM, overwrite=False) -> int:
    """Run the study again; the number of ladders that were sampled."""
    sampling = Sampling()
    with Study(out, request, overwrite=overwrite) as study:
        study.ladder("pilot", problem, sampling, "pilot")
    return sampling.ladders


def test_the_same_request_samples_nothing_again(kept):
    assert again(kept) == 0


@pytest.mark.parametrize(("label", "lines"), [("chains", 1), ("", 0)])
def test_a_kept_walk_without_a_label_is_read_in_silence(tmp_path, monkeypatch, label, lines):
    walk = synthetic.walk({"energy": np.zeros((2, 16, 2))}, format="quenchphys walk 1", seed=0)
    made = qp.Walk(walk.data.assign(step_size=("group", np.ones(2)), scale=(("group", "coordinate"), np.ones((2, 1)))))
    said = []
    for _ in range(2):
        with Study(tmp_path / "run.nc", REQUEST) as study:
            monkeypatch.setattr(study.display, "message", said.append)
            study.walk("walk0", label, lambda: made, PROBLEM)
    assert len(said) == lines


def test_one_study_at_a_time(kept):
    with Study(kept, REQUEST), pytest.raises(InUse, match=r"Another study is writing to .*run.nc"):
        Study(kept, REQUEST | {"seed": 1}, overwrite=True)
    assert again(kept) == 0
    assert sorted(entry.name for entry in kept.parent.iterdir()) == ["run.ladders"]


def test_a_study_that_failed_leaves_no_lock(kept):
    with pytest.raises(ZeroDivisionError), Study(kept, REQUEST):
        raise ZeroDivisionError
    assert again(kept) == 0


def test_the_lock_of_a_killed_process_is_free(kept):
    program = (
        "import os, signal, sys\n"
        "from tests.workflows.test_store import REQUEST\n"
        "from workflows.store import Study\n"
        "study = Study(sys.argv[1], REQUEST)\n"
        "print('begun', flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(kept)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        with pytest.raises(InUse):
            Study(kept, REQUEST)
    finally:
        process.kill()
        process.communicate()
    assert again(kept) == 0


def test_a_lock_file_that_was_removed_locks_nothing(tmp_path, monkeypatch):
    """Whoever held the lock removes its file: one who had opened it just before must not believe to hold anything."""
    file, opened = tmp_path / "lock", []

    def open_then_lose(path):
        opened.append(open(path, "a"))  # noqa: SIM115
        if len(opened) == 1:
            path.unlink()
        return opened[-1]

    monkeypatch.setattr("quenchphys.storage.lock._open", open_then_lose)
    with Lock(file, "busy"), pytest.raises(InUse, match="busy"):
        Lock(file, "busy")
    assert not file.exists()


def test_a_second_command_ends_with_code_2_and_one_sentence(kept, capsys):
    command = ["zbeta", "--L", "4", "--set", "mu2=2.3", "--silent", "--overwrite", "--out", str(kept)]
    with Study(kept, REQUEST):
        assert main(command) == 2
    said = capsys.readouterr().err.strip()
    assert "Another study is writing to" in said and "\n" not in said


def test_a_folder_without_a_request_is_never_taken_up(kept):
    (kept.parent / "run.ladders/request.json").unlink()
    with pytest.raises(FileExistsError, match=r"run.ladders holds files but no request.json"):
        again(kept)
    assert again(kept, overwrite=True) == 1
    assert (kept.parent / "run.replaced-1.ladders/pilot.nc").exists()


def test_ladders_of_another_request_are_set_aside_and_can_be_used_again(kept):
    other = REQUEST | {"seed": 1}
    with pytest.raises(FileExistsError, match=r"another request \(seed was 0 and is now 1\).*set the folder aside"):
        again(kept, other)
    assert again(kept, other, overwrite=True) == 1
    assert again(kept.with_name("run.replaced-1.nc")) == 0  # the first request, under the name of its folder
    assert again(kept, overwrite=True) == 1
    assert again(kept.with_name("run.replaced-2.nc"), other) == 0
    assert sorted(entry.name for entry in kept.parent.iterdir()) == [
        "run.ladders",
        "run.replaced-1.ladders",
        "run.replaced-2.ladders",
    ]


def test_a_kill_after_the_folder_was_set_aside_leaves_nothing_to_take_up(kept, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("workflows.store.tempfile.mkdtemp", killed)
        with pytest.raises(KeyboardInterrupt):
            again(kept, REQUEST | {"seed": 1}, overwrite=True)
    assert not kept.with_suffix(".ladders").exists()
    assert again(kept, REQUEST | {"seed": 1}) == 1
    assert again(kept.with_name("run.replaced-1.nc")) == 0


def test_a_folder_appears_with_its_request(tmp_path, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("workflows.store.write_whole", killed)
        with pytest.raises(KeyboardInterrupt):
            again(tmp_path / "run.nc")
    assert not (tmp_path / "run.ladders").exists()
    assert again(tmp_path / "run.nc") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.ladders"]


def test_unfinished_files_of_a_killed_process_are_removed(kept):
    leftovers = [kept.parent / ".run.nc.abc.part", kept.parent / "run.ladders/.pilot.nc.abc.part"]
    other = kept.parent / ".another.nc.abc.part"
    for file in (*leftovers, other):
        file.write_text("half")
    assert again(kept) == 0
    assert [file.exists() for file in (*leftovers, other)] == [False, False, True]


def test_a_folder_may_be_a_link_to_another_disk(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run.ladders").symlink_to(tmp_path / "disk/run")
    assert again(tmp_path / "run.nc") == 1
    assert again(tmp_path / "run.nc") == 0
    assert again(tmp_path / "run.nc", REQUEST | {"seed": 1}, overwrite=True) == 1
    assert (tmp_path / "run.ladders").is_symlink() and (tmp_path / "disk/run/pilot.nc").exists()


def test_a_ladder_of_another_request_in_the_right_folder_is_not_used(kept, tmp_path):
    """As a second study left it that wrote to the same folder."""
    other = tmp_path / "other.nc"
    again(other, REQUEST | {"seed": 1})
    shutil.copy(other.with_suffix(".ladders") / "pilot.nc", kept.with_suffix(".ladders") / "pilot.nc")
    with pytest.raises(FileExistsError, match=r"pilot.nc cannot be used \(seed was 1 and is now 0\)"):
        again(kept)
    assert again(kept, overwrite=True) == 1
    assert again(kept) == 0
    assert (kept.with_suffix(".ladders") / "pilot.replaced-1.nc").exists()


def test_a_ladder_of_an_edited_model_is_not_used(kept):
    edited = one_site(4, 1.0, eta=0.6)
    with pytest.raises(FileExistsError, match=r"pilot.nc cannot be used \(eta was 0.5 and is now 0.6\)"):
        again(kept, problem=edited)
    assert again(kept, problem=edited, overwrite=True) == 1


def test_a_ladder_that_says_nothing_of_its_origin_is_not_used(kept):
    file = kept.with_suffix(".ladders") / "pilot.nc"
    synthetic.ladder(synthetic.Chi2(), particles=40, replicas=2, seed=1).save(file, overwrite=True)
    with pytest.raises(FileExistsError, match="what it was made for cannot be read"):
        again(kept)


def test_a_ladder_that_another_program_wrote_is_not_used(kept):
    """It has no checksum; `quenchphys.load` reads it."""
    file = kept.with_suffix(".ladders") / "pilot.nc"
    tree = qp.load(file).tree
    file.unlink()
    tree.to_netcdf(file, engine="h5netcdf")
    with pytest.raises(FileExistsError, match=r"pilot.nc cannot be used \(another program wrote it\)"):
        again(kept)
    qp.load(file).save(file, overwrite=True)
    assert again(kept) == 0


def test_a_damaged_ladder_is_sampled_again_only_if_asked(kept):
    file = kept.with_suffix(".ladders") / "pilot.nc"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(FileExistsError, match=r"not as it was written.*--overwrite"):
        again(kept)
    assert again(kept, overwrite=True) == 1


@pytest.mark.parametrize("fault", ["another run: seed was 3 and is now 0", "run.json cannot be read"])
def test_a_checkpoint_that_cannot_be_continued_is_set_aside_only_if_asked(fault, tmp_path):
    folder, runs = tmp_path / "ladder.checkpoint", []

    def run(checkpoint):
        runs.append(checkpoint.exists())
        if checkpoint.exists():
            raise Unusable(fault)
        return "ladder"

    folder.mkdir()
    with pytest.raises(ValueError, match=fault):
        with_checkpoint(run, folder, overwrite=False)
    assert with_checkpoint(run, folder, overwrite=True) == "ladder"
    assert runs == [True, True, False]
    assert [entry.name for entry in tmp_path.iterdir()] == ["ladder.replaced-1.checkpoint"]


def walk(problem, out, request=REQUEST, overwrite=False) -> int:
    """Take up or make a walk; how often it was made."""
    made = []
    dims = ("group", "sweep", "chain")
    data = xr.Dataset(
        {name: (dims, np.zeros((1, 2, 2), np.float32)) for name in ("energy", "q")}
        | {"log_w": (dims, np.zeros((1, 2, 2))), "prior_log_w": (("group", "draw"), np.zeros((1, 2)))}
        | {"last": (("group", "chain", "axis_0"), np.zeros((1, 2, 1), np.float32))}
        | {"step_size": ("group", np.ones(1, np.float32))}
        | {"scale": (("group", "coordinate"), np.ones((1, 1), np.float32))}
        | {name: ("node", np.arange(4.0)) for name in ("weight_energy", "weight_log")},
    )

    def make():
        made.append(True)
        return qp.Walk(data)

    with Study(out, request, overwrite=overwrite) as study:
        study.walk("walk0", "walk", make, problem)
    return len(made)


def test_a_walk_of_another_request_or_model_is_not_used(tmp_path):
    out = tmp_path / "run.nc"
    assert (walk(PROBLEM, out), walk(PROBLEM, out)) == (1, 0)
    with pytest.raises(FileExistsError, match=r"walk0.nc cannot be used \(mu2 was 1.0 and is now 1.1\)"):
        walk(one_site(4, 1.1), out)
    assert walk(one_site(4, 1.1), out, overwrite=True) == 1


def family(strength=1.0):
    """A user's own function; edited, it has the same name and arguments."""

    def own(L, mu2, lam=-1.0):
        return one_site(L, strength * mu2, lam)

    return family_of(own, "mu2", {}, L=4)


def test_an_edited_function_is_another_request(tmp_path):
    before, edited = (request_of("coexistence", family(s).request(), {}) for s in (1.0, 1.5))
    assert family().request() == family().request()
    assert again(tmp_path / "run.nc", before) == 1
    with pytest.raises(FileExistsError, match="another request"):
        again(tmp_path / "run.nc", edited)
    assert again(tmp_path / "run.nc", edited, overwrite=True) == 1
    with Study(tmp_path / "size.nc", before) as study:
        study.finish(xr.Dataset(attrs={"workflow": "coexistence"}))
    assert finished(tmp_path / "size.nc", before) is not None
    assert finished(tmp_path / "size.nc", edited) is None
    (tmp_path / "size.nc").write_bytes((tmp_path / "size.nc").read_bytes()[:-9])
    with pytest.raises(FileExistsError, match=r"size.nc cannot be used .*not as it was written.*--overwrite"):
        finished(tmp_path / "size.nc", before)
    assert finished(tmp_path / "size.nc", before, overwrite=True) is None


def test_a_function_that_allows_few_values_still_has_a_request():
    def narrow(L, mu2):
        if not 2.2 < mu2 < 2.4:
            raise ValueError("mu2 must lie between 2.2 and 2.4")
        return one_site(L, mu2)

    assert family_of(narrow, "mu2", {}, L=4).request()["problem"] is None


def test_z_beta_of_an_edited_model_does_not_use_old_ladders(tmp_path):
    """Same name, same parameters, another energy."""

    class Silent:
        name, parameters = "mine", {}

        def __init__(self, strength):
            self._strength = strength

        def sample_prior(self, key, n):
            return PROBLEM.sample_prior(key, n)

        def log_prior(self, x):
            return PROBLEM.log_prior(x)

        def energy(self, x):
            return self._strength * (x * x).sum()

    small = {"particles": 32, "replicas": 2, "progress": False, "out": tmp_path / "z.nc"}
    before = workflows.partition_function(Silent(1.0), 1.0, **small)
    with pytest.raises(FileExistsError, match="exists already"):
        workflows.partition_function(Silent(2.0), 1.0, **small)
    after = workflows.partition_function(Silent(2.0), 1.0, **small, overwrite=True)
    assert float(before.log_z[0]) == pytest.approx(-0.5 * np.log(3), abs=0.3)
    assert float(after.log_z[0]) == pytest.approx(-0.5 * np.log(5), abs=0.3)
    assert float(after.log_z[0]) < float(before.log_z[0]) - 0.1


@pytest.mark.parametrize(
    ("command", "name", "says"),
    [
        ("quench", "x.checkpoint", "its checkpoint is a folder of that name"),
        ("zbeta", "y.ladders", "its ladders are kept in a folder of that name"),
        ("quench", "dangling.nc", "a link to nowhere.nc, which does not exist"),
        ("zbeta", "dangling.nc", "a link to nowhere.nc, which does not exist"),
        ("quench", "pipe", "no ordinary file"),
    ],
)
def test_outputs_that_cannot_work_are_refused_before_sampling(command, name, says, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workflows.budget.LadderSettings, "quench", lambda *_: pytest.fail("sampled"))
    (tmp_path / "dangling.nc").symlink_to("nowhere.nc")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    assert main([command, "--L", "4", "--set", "mu2=2.3", "--silent", "--out", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err.strip()
    assert says in said and "\n" not in said
    assert sorted(tmp_path.iterdir()) == before


def test_a_pipe_is_not_read(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.nc")
    assert main(["show", str(tmp_path / "pipe.nc")]) == 2
    assert "no ordinary file" in capsys.readouterr().err


def test_numbers_of_numpy_make_the_same_request(tmp_path):
    assert again(tmp_path / "run.nc", REQUEST | {"beta": [1.0, 2.0], "seed": 3}) == 1
    other = REQUEST | {"beta": np.array([1.0, 2.0]), "seed": np.int64(3)}
    assert again(tmp_path / "run.nc", other) == 0
    assert json.loads((tmp_path / "run.ladders/request.json").read_text())["beta"] == [1.0, 2.0]
