"""When something goes wrong the user sees one sentence, and what was written before is whole."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenchphys as qp
from quenchphys.console import memory
from quenchphys.console.memory import check_memory, in_words
from quenchphys.console.messages import last_error, one_line, why_not_written
from quenchphys.ladder import described
from quenchphys.parallel import fork_guard
from quenchphys.settings import Settings
from quenchphys.storage import streaming
from quenchphys.storage.record import Record, blanked
from quenchphys.storage.schema import LADDER_GROUPS

TARGET = qp.targets.gaussian(16)
SMALL = {"particles": 64, "replicas": 2, "seed": 3}


@pytest.fixture(scope="module")
def ladder():
    return qp.quench(TARGET, **SMALL)


@pytest.fixture
def small_files():
    """No file may grow beyond a number of bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Watch:
    def __init__(self, call):
        self._call = call

    def update(self, level, *rest):
        self._call(level)

    def close(self):
        pass


def equal(one: qp.Ladder, other: qp.Ladder) -> bool:
    return all(one.tree[g].to_dataset().identical(other.tree[g].to_dataset()) for g in LADDER_GROUPS)


def test_a_full_disk_leaves_the_older_file(ladder, tmp_path, small_files):
    out = ladder.save(tmp_path / "ladder.nc")
    before = out.read_bytes()
    small_files(30_000)
    with pytest.raises(OSError, match=r"ladder.nc cannot be written: File too large\.$"):
        ladder.save(out, overwrite=True)
    assert out.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["ladder.nc"]


def test_a_full_disk_in_the_middle_of_a_run_loses_no_checkpoint(ladder, tmp_path, small_files):
    spoil = Watch(lambda level: small_files(2000) if level == 32 else None)
    with pytest.raises(OSError, match=r"run.* cannot be written: File too large\.$"):
        qp.quench(TARGET, **SMALL, checkpoint=qp.Checkpoint(tmp_path / "run", levels=16), progress=spoil)
    small_files(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    assert equal(ladder, qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run"))


def test_checkpoints_that_cannot_be_read_are_left_where_they_are(tmp_path):
    folder = tmp_path / "run"
    qp.quench(TARGET, **SMALL, checkpoint=qp.Checkpoint(folder, levels=16))
    for file in [f for f in (folder / "generations").rglob("*") if f.is_file()]:
        os.truncate(file, file.stat().st_size // 2)
    before = sorted(f for f in folder.rglob("*") if f.is_file())
    with pytest.raises(ValueError, match=r"No checkpoint in .* can be read"):
        qp.quench(TARGET, **SMALL, checkpoint=folder)
    assert sorted(f for f in folder.rglob("*") if f.is_file()) == before


@pytest.mark.parametrize("jump", [-86400.0, 86400.0])
def test_the_wall_clock_decides_nothing(ladder, monkeypatch, jump):
    real, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    rule = qp.RemainingEvidence(-3) | qp.WallTime(3000)
    found = qp.quench(TARGET, **SMALL, stop=rule, progress=Watch(lambda level: ahead.append(ahead.pop() + jump)))
    assert found.outcome is ladder.outcome
    assert 0 <= found.attrs["wall_time"] < 3000
    assert equal(ladder, found)


def test_a_run_that_cannot_fit_is_refused_before_it_begins():
    with pytest.raises(MemoryError, match=r"does not fit into memory: .* GB; lower particles \(50000000\), replicas"):
        qp.quench(TARGET, particles=50_000_000, replicas=4)


def test_a_limit_on_the_process_counts(monkeypatch):
    settings = Settings(particles=1000, replicas=4, draws_per_particle=10)  # 4.8 MB for ten numbers a configuration
    monkeypatch.setattr(memory, "host_memory", lambda: 4.9e6)
    check_memory(settings, 10)
    monkeypatch.setattr(memory, "host_memory", lambda: 4.7e6)
    with pytest.raises(MemoryError):
        check_memory(settings, 10)


@pytest.mark.parametrize(
    ("raised", "kind", "says"),
    [
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nallocating 7 bytes"),
            MemoryError,
            "lower particles",
        ),
        (MemoryError("Unable to allocate 5 GiB"), MemoryError, "draws_per_particle"),
        (
            jax.errors.JaxRuntimeError("INTERNAL: lost\nTraceback\nValueError: mine\n"),
            RuntimeError,
            "failed: ValueError: mine.",
        ),
        (jax.errors.JaxRuntimeError("UNAVAILABLE: the link is down"), RuntimeError, "UNAVAILABLE: the link is down."),
    ],
)
def test_a_device_that_fails_is_put_into_words(raised, kind, says):
    with pytest.raises(kind, match=says) as found, in_words(Settings()):
        raise raised
    assert len(str(found.value).splitlines()) == 1
    assert found.value.__suppress_context__


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (ValueError("\n\n  first.  \nsecond"), "first"),
        (ValueError(), "ValueError"),
        (ValueError("x" * 300), "x" * 200),
    ],
)
def test_an_error_is_told_in_one_line(cause, says):
    assert one_line(cause) == says


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (OSError(28, "No space left on device", "/tmp/a"), "No space left on device"),
        (RuntimeError("errno = 27, error message = 'File too large', buf = 0x55"), "File too large"),
        (ValueError("ZARR: error writing /tmp/x: Read-only file system [code 3]\nmore"), "Read-only file system"),
        (TimeoutError("futures but timed out"), "futures but timed out"),
    ],
)
def test_why_a_file_could_not_be_written(cause, says):
    assert why_not_written(cause) == says


def test_the_error_of_a_traceback_is_its_last():
    assert last_error(ValueError("INTERNAL: a\nTraceback\nKeyError: 1\nValueError: mine.")) == "ValueError: mine"


def test_an_energy_without_a_gradient_is_refused():
    class Looping:
        def sample_prior(self, key, n):
            return jax.random.normal(key, (n, 3))

        def log_prior(self, x):
            return -0.5 * (x * x).sum()

        def energy(self, x):
            return jax.lax.while_loop(lambda v: v > 10, lambda v: v / 2, jnp.sum(x * x))

    with pytest.raises(ValueError, match="the gradient of energy of this Looping fails"):
        qp.quench(Looping(), **SMALL)


def _forked(out):
    try:
        fork_guard.check_not_forked()
        out.put("went on")
    except RuntimeError as refused:
        out.put(str(refused))


def test_a_forked_worker_is_refused_rather_than_hanging():
    """In a fresh process, because a test runner has threads of its own."""
    program = (
        "import multiprocessing, sys\n"
        "from quenchphys.parallel import fork_guard\n"
        "from tests.quenchphys.test_faults import _forked\n"
        "if len(sys.argv) > 1: fork_guard.check_not_forked()\n"
        "context = multiprocessing.get_context('fork')\n"
        "out = context.Queue()\n"
        "worker = context.Process(target=_forked, args=(out,)); worker.start(); print(out.get()); worker.join()\n"
    )
    root = Path(__file__).resolve().parents[2]
    where = os.environ | {"PYTHONPATH": f"{root}{os.pathsep}{Path(__file__).parent}"}

    def said(*arguments: str) -> str:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=where, timeout=120).stdout

    assert "spawn" in said("computed before")
    assert "went on" in said()


def test_rows_behind_the_end_of_a_replica_are_blank():
    rows = {"real": np.ones((4, 2, 3), np.float32), "whole": np.ones((4, 2), np.int32), "flag": np.ones((4, 2), bool)}
    found = blanked(rows, begin=16, count=np.array([18, 40]))
    assert (
        np.isnan(found["real"][2:, 0]).all() and (found["real"][:2, 0] == 1).all() and (found["real"][:, 1] == 1).all()
    )
    assert found["whole"].T.tolist() == [[1, 1, -1, -1], [1, 1, 1, 1]]
    assert found["flag"].T.tolist() == [[True, True, False, False], [True] * 4]
    assert (blanked({"all": np.ones((4, 1))}, begin=16, count=np.array([3]))["all"] != 1).all()


@pytest.mark.parametrize("mapped", [False, True])
def test_large_variables_are_written_by_blocks_as_small_ones_are(ladder, tmp_path, monkeypatch, mapped):
    if mapped:
        ladder = qp.quench(TARGET, **SMALL, checkpoint=tmp_path / "run")
    ladder.save(tmp_path / "at once.nc")
    monkeypatch.setattr(streaming, "LARGE", 1000)
    monkeypatch.setattr(streaming.blocks, "__defaults__", (5000,))
    assert len(list(streaming.blocks(ladder.particles["energy"].values))) > 3
    assert len(streaming.without_large(ladder.tree)[1]) >= 3
    ladder.save(tmp_path / "by blocks.nc")
    one, other = qp.load(tmp_path / "at once.nc"), qp.load(tmp_path / "by blocks.nc")
    assert equal(one, other)
    for name in ("energy", "parent"):
        assert one.tree["particles"][name].encoding["dtype"] == other.tree["particles"][name].encoding["dtype"]
    assert equal(qp.load(tmp_path / "by blocks.nc"), qp.Ladder(described(ladder.tree)))


@pytest.mark.parametrize("limit", [10, 1 << 20], ids=["mapped", "in memory"])
def test_a_finished_record_is_given_back_and_read_again(tmp_path, limit):
    record = Record(limit, tmp_path)
    values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    record.extend(x=values)
    array = record.finish(4)["x"]
    assert not array.flags.writeable
    streaming.release(array)
    np.testing.assert_array_equal(array, values.swapaxes(0, 1))


def test_a_record_that_was_changed_during_the_run_does_not_become_a_ladder(tmp_path):
    """Its files are mapped, so a change would be read back as if it had been sampled."""
    record = Record(folder=tmp_path)
    record.extend(x=np.ones((4, 2), np.float32), y=np.ones((4, 2), np.float32))
    (tmp_path / "column-000.bin").unlink()  # what is open stays as it is
    record.flush()
    assert (record.finish(4)["x"] == 1).all()
    with open(tmp_path / "column-001.bin", "r+b") as file:
        file.write(b"2")
    with pytest.raises(ValueError, match=r"The record in .* was changed while the run was writing to it \(y\)"):
        record.finish(4)
