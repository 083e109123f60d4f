"""A run that is killed goes on to the same numbers, and a checkpoint that does not fit is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenchphys as qp
from quenchphys.console.interruption import interruptible
from quenchphys.problem import SiteBasis
from quenchphys.smc.evidence import Evidence
from quenchphys.smc.levels import SoftLevels

TARGET = qp.targets.gaussian(16)
SMALL = {"particles": 64, "replicas": 2, "seed": 3}


def assert_same(one: qp.Ladder, other: qp.Ladder) -> None:
    """Bit by bit, everything but when it was made and how long it took."""
    for group in ("levels", "particles", "prior", "configurations"):
        assert set(one.tree[group].data_vars) == set(other.tree[group].data_vars)
        for name in one.tree[group].data_vars:
            assert one.tree[group][name].values.tobytes() == other.tree[group][name].values.tobytes(), (group, name)
    times = ("created", "wall_time")
    assert {k: v for k, v in one.attrs.items() if k not in times} == {
        k: v for k, v in other.attrs.items() if k not in times
    }


@pytest.fixture(scope="module")
def whole():
    """The run that was never interrupted."""
    return qp.quench(TARGET, **SMALL)


@pytest.fixture
def kept(tmp_path):
    """A finished run with its checkpoint."""
    qp.quench(TARGET, **SMALL, checkpoint=qp.Checkpoint(tmp_path / "run", levels=16))
    return tmp_path / "run"


def generations(folder: Path) -> list[int]:
    return sorted(int(entry.name) for entry in (folder / "generations").iterdir() if entry.name.isdigit())


def test_keeping_checkpoints_changes_nothing(whole, kept):
    assert len(generations(kept)) == 2
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=kept))


def test_a_run_goes_on_from_the_generation_before(whole, kept):
    shutil.rmtree(kept / f"generations/{generations(kept)[-1]}")
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=kept))


@pytest.mark.parametrize("part", ["state", "host", "seal"])
def test_a_corrupted_generation_is_skipped(whole, kept, part, capsys):
    newest = kept / f"generations/{generations(kept)[-1]}" / part
    for file in [f for f in newest.rglob("*") if f.is_file() and f.stat().st_size]:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=kept))
    assert "Skipping the checkpoint after" in capsys.readouterr().err


def test_a_ladder_does_not_change_when_its_checkpoint_is_taken_up_again(whole, tmp_path):
    """Its arrays are mapped onto the record, which a later call cuts and extends."""
    first = qp.quench(TARGET, **SMALL, checkpoint=qp.Checkpoint(tmp_path / "run", levels=16))
    shutil.rmtree(tmp_path / f"run/generations/{generations(tmp_path / 'run')[-1]}")
    again = qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run")
    assert_same(whole, first)
    assert_same(whole, again)


@pytest.fixture
def failing(monkeypatch):
    """The writer says that the generation before failed, at the given calls of all those that there are."""
    import orbax.checkpoint as ocp

    save, called = ocp.CheckpointManager.save, []

    def sometimes(manager, level, **named):
        called.append(level)
        if len(called) in fails:
            raise TimeoutError("futures but timed out")
        return save(manager, level, **named)

    fails: set[int] = set()
    monkeypatch.setattr(ocp.CheckpointManager, "save", sometimes)
    return fails


@pytest.mark.parametrize("call", [1, 2])
def test_a_run_outlives_a_generation_that_failed(whole, tmp_path, failing, call):
    failing.add(call)
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=qp.Checkpoint(tmp_path / "run", levels=16)))
    assert generations(tmp_path / "run")[-1] == 32
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run"))


def test_a_run_that_can_keep_no_generation_ends_and_the_last_one_stays(whole, tmp_path, failing):
    failing.update({2, 3})
    checkpoint = qp.Checkpoint(tmp_path / "run", levels=16)
    with pytest.raises(OSError, match=r"The checkpoint in .*run cannot be written: futures but timed out"):
        qp.quench(TARGET, **SMALL, checkpoint=checkpoint)
    assert generations(tmp_path / "run") == [16]
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=checkpoint))


def test_a_run_may_be_stopped_for_days_while_a_generation_is_written(tmp_path, monkeypatch):
    """The writer's own patience ends after minutes, by the clock, whether the process runs or not."""
    import orbax.checkpoint as ocp

    waits = []
    options = ocp.AsyncOptions
    monkeypatch.setattr(ocp, "AsyncOptions", lambda timeout_secs: waits.append(timeout_secs) or options(timeout_secs))
    qp.quench(TARGET, **SMALL, checkpoint=qp.Checkpoint(tmp_path / "run", levels=16))
    assert min(waits) >= 3 * 24 * 3600


def test_a_torn_record_is_found(kept):
    """Shorter than any generation says: the run begins again rather than go on from what is not there."""
    column = next((kept / "record").glob("column-*.bin"))
    os.truncate(column, 8)
    with pytest.raises(ValueError, match="shorter than its checkpoint says"):
        qp.quench(TARGET, **SMALL, checkpoint=kept)


def damage(file: Path, begin: float, end: float) -> None:
    """Zeros in a part of a file."""
    content = bytearray(file.read_bytes())
    first, last = int(begin * len(content)), int(end * len(content))
    content[first:last] = bytes(last - first)
    file.write_bytes(content)


def column(folder: Path, name: str) -> Path:
    names = list(json.loads((folder / "record/columns.json").read_text()))
    return folder / f"record/column-{names.index(name):03d}.bin"


def test_a_record_that_was_changed_is_not_continued(kept):
    """A quarter of the energies zeroed: a run that continued would give another log Z."""
    damage(column(kept, "energy"), 0.0, 0.25)
    with pytest.raises(ValueError, match=r"No checkpoint in .* can be read \(.*energy was changed\)"):
        qp.quench(TARGET, **SMALL, checkpoint=kept)


def test_a_record_that_was_changed_is_continued_from_before_the_change(whole, kept, capsys):
    damage(column(kept, "energy"), 0.5, 0.6)  # after level 16 of 44, before level 32
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=kept))
    assert "energy was changed" in capsys.readouterr().err


def test_a_record_that_was_continued_has_the_digest_of_all_of_it(whole, kept, capsys):
    shutil.rmtree(kept / f"generations/{generations(kept)[-1]}")
    qp.quench(TARGET, **SMALL, checkpoint=qp.Checkpoint(kept, levels=16))
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=kept))
    assert "Skipping" not in capsys.readouterr().err


def test_prior_draws_of_another_run_are_not_used(kept, tmp_path):
    qp.quench(TARGET, **SMALL | {"seed": 4}, checkpoint=tmp_path / "other")
    shutil.copy(tmp_path / "other/prior.npz", kept / "prior.npz")
    with pytest.raises(ValueError, match="the prior draws beside it are not as they were written"):
        qp.quench(TARGET, **SMALL, checkpoint=kept)


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"energy": 3}'])
def test_a_torn_list_of_columns_is_put_into_words(kept, text):
    (kept / "record/columns.json").write_text(text)
    with pytest.raises(ValueError, match=r"columns.json cannot be read") as refused:
        qp.quench(TARGET, **SMALL, checkpoint=kept)
    assert "\n" not in str(refused.value)


def test_unfinished_files_of_a_killed_process_are_removed(kept):
    leftovers = [kept / ".prior.npz.abc.part", kept / "record/.columns.json.abc.part"]
    for file in leftovers:
        file.write_text("half")
    qp.quench(TARGET, **SMALL, checkpoint=kept)
    assert not any(file.exists() for file in leftovers)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"seed": 4}, "seed was 3 and is now 4"),
        ({"particles": 65}, "particles was 64 and is now 65"),
        ({"stop": qp.ReachedEnergy(3.0)}, "stop was"),
        ({"softness": 3.0}, "family was"),
    ],
)
def test_another_request_is_refused(kept, changed, says):
    with pytest.raises(ValueError, match=f"belongs to another run: {says}"):
        qp.quench(TARGET, **SMALL | changed, checkpoint=kept)


class Quadratic:
    """A model that says nothing about itself."""

    def __init__(self, strength=1.0, far=0.0, prior=0.5, density=1.0, seen=None):
        self.strength, self.far, self.prior, self.density = strength, far, prior, density
        self.seen = {"r2": 1.0} if seen is None else seen
        self.basis = SiteBasis((3,), np.full(3, 2 * prior, np.float32))

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 3)) / np.sqrt(2 * self.prior)

    def log_prior(self, x):
        return -self.density * self.prior * jnp.sum(x * x)

    def energy(self, x):
        r2 = jnp.sum(x * x)
        return self.strength * r2 + self.far * jnp.maximum(r2 - 15.0, 0.0)  # no prior draw is likely to be out there

    def observe(self, x):
        return {name: factor * jnp.sum(x * x) for name, factor in self.seen.items()}


@pytest.fixture(scope="module")
def quadratic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quadratic") / "run"
    qp.quench(Quadratic(), **SMALL, checkpoint=folder)
    return folder


@pytest.mark.parametrize(
    ("edited", "says"),
    [
        (Quadratic(strength=2.0), "the energy of the problem has other values than before"),
        (Quadratic(far=1.0), "the energy of the problem has other values than before"),
        (Quadratic(prior=0.6), "the energy of the problem has other values than before"),  # on other draws
        # So little that the prior still agrees with its draws.
        (Quadratic(density=1.001), "the log prior of the problem has other values than before"),
        (Quadratic(seen={"r2": 2.0}), "the observable r2 of the problem has other values than before"),
        (Quadratic(seen={"r2": 1.0, "s2": 1.0}), "the problem has an observable 's2' that it did not have before"),
        (Quadratic(seen={}), "the problem no longer has the observable 'r2'"),
    ],
)
def test_an_edited_model_is_refused_even_if_it_says_nothing_about_itself(quadratic, edited, says):
    with pytest.raises(ValueError, match=f"belongs to another run: {says}; give another folder") as refused:
        qp.quench(edited, **SMALL, checkpoint=quadratic)
    assert "\n" not in str(refused.value)


def test_the_same_model_continues(quadratic):
    qp.quench(Quadratic(), **SMALL, checkpoint=quadratic)


@pytest.mark.parametrize(("number", "version"), [(3, "an earlier"), (99, "a later")])
def test_a_checkpoint_of_another_version_is_refused(kept, number, version):
    run = json.loads((kept / "run.json").read_text())
    now = run["format"]
    (kept / "run.json").write_text(json.dumps(run | {"format": number, "energies": ["0x1.0p+0"]}))
    expected = (
        f"The checkpoint in {kept} was written by {version} version of quenchphys (format {number}, this one is {now}): "
        "finish it with that version or give another folder."
    )
    with pytest.raises(ValueError) as refused:
        qp.quench(TARGET, **SMALL, checkpoint=kept)
    assert str(refused.value) == expected


def test_outcomes_are_kept_by_name():
    def begin() -> Evidence:
        return Evidence(SoftLevels(np.float32(2)), np.zeros(3), np.zeros((3, 5)), qp.LevelLimit(3), adaptive=True)

    evidence, again = begin(), begin()
    evidence.outcomes = [None, qp.Outcome.FROZEN, qp.Outcome.CONVERGED]
    state = evidence.state()
    assert b"frozen" in state["outcomes"].tobytes()
    again.resume(state)
    assert again.outcomes == evidence.outcomes


def test_two_runs_cannot_share_a_folder(kept):
    import fcntl

    with open(kept / "lock", "a+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match="Another run is using the checkpoint folder"):
            qp.quench(TARGET, **SMALL, checkpoint=kept)


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("ten years of work")
    with pytest.raises(FileExistsError, match="holds other files"):
        qp.quench(TARGET, **SMALL, checkpoint=tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "ten years of work"


def test_ctrl_c_keeps_the_state_and_says_how_to_go_on(whole, tmp_path, ctrl_c):
    class Impatient:
        """A meter that presses Ctrl-C after some levels."""

        def update(self, level, parameter, acceptance, log_volume, remaining):
            if level == 16:
                os.kill(os.getpid(), signal.SIGINT)

        def close(self):
            pass

    with pytest.raises(qp.Interrupted, match="run the same call again to continue from"):
        qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run", progress=Impatient())
    assert signal.getsignal(signal.SIGINT) is ctrl_c
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run"))


class Presses:
    """A meter that presses Ctrl-C, or another key, after some levels or at the end."""

    def __init__(self, number=signal.SIGINT, at=None):
        self._number, self._at = number, at

    def update(self, level, *numbers):
        if self._at == level:
            os.kill(os.getpid(), self._number)

    def close(self):
        if self._at is None:
            os.kill(os.getpid(), self._number)


@pytest.mark.parametrize("at", ["last block", None])  # of levels, and after it
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_very_end_still_stops(whole, tmp_path, ctrl_c, number, at):
    at = whole.levels.sizes["level"] if at else None
    with pytest.raises(qp.Interrupted, match="run the same call again to continue"):
        qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run", progress=Presses(number, at))
    assert_same(whole, qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_without_a_checkpoint_a_signal_stops_after_the_block(ctrl_c, number):
    with pytest.raises(qp.Interrupted, match="after 16 levels; nothing is kept without a checkpoint"):
        qp.quench(TARGET, **SMALL, progress=Presses(number, 16))


def test_a_second_ctrl_c_stops_at_once(tmp_path, ctrl_c):
    class Twice:
        def update(self, *numbers):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("went on")

        def close(self):
            pass

    with pytest.raises(KeyboardInterrupt, match="Interrupted at once"):
        qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run", progress=Twice())
    assert signal.getsignal(signal.SIGINT) is ctrl_c


def test_a_late_request_passes_to_the_context_around(ctrl_c):
    with pytest.raises(qp.Interrupted), interruptible() as outer:
        with interruptible():
            os.kill(os.getpid(), signal.SIGTERM)
        assert outer


PROGRAM = """
import sys, quenchphys as qp
class Slow:
    def update(self, *numbers):
        print("level", numbers[0], flush=True)
    def close(self):
        pass
ladder = qp.quench(qp.targets.gaussian(16), particles=64, replicas=2, seed=3, progress=Slow(),
                   checkpoint=qp.Checkpoint(sys.argv[1], levels=16))
ladder.save(sys.argv[2])
"""


def test_killed_at_some_moment_it_ends_at_the_same_numbers(whole, tmp_path):
    """Once, at a random moment; `benchmarks/robustness/kill_and_resume.py` does it many times."""
    out = tmp_path / "ladder.nc"
    process = _start(tmp_path, out)
    assert process.stdout is not None
    process.stdout.readline()  # the first block is done: from here on it may end at any moment
    time.sleep(random.Random(7).uniform(0, 0.2))
    process.kill()
    process.communicate()
    _, errors = _start(tmp_path, out).communicate()
    assert out.exists(), errors
    assert_same(whole, qp.load(out))


def _start(folder: Path, out: Path) -> subprocess.Popen:
    out.unlink(missing_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(folder / "run"), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )


def test_outside_the_main_thread_a_checkpoint_is_kept_as_well(whole, tmp_path):
    found = []
    run = threading.Thread(target=lambda: found.append(qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run")))
    run.start()
    run.join()
    assert_same(whole, found[0])


def test_a_record_on_disk_becomes_the_same_file(tmp_path):
    """What benchmarks/speed/record_memory.py does with 20,000 levels, in the small."""
    from benchmarks.speed.record_memory import make, unlike

    make(tmp_path, 48, 50, 2)
    assert unlike(tmp_path / "ladder.nc", 48, 50, 2) == []
