"""Several processes, one ladder: the same numbers, and a clear end when one of them is killed."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quenchphys as qp

RUN = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", 1)
import quenchphys as qp
port, processes, process, folder = sys.argv[1:]
if processes != "1":
    qp.join(f"localhost:{port}", int(processes), int(process))
try:
    ladder = qp.quench(
        qp.targets.gaussian(40), particles=800, replicas=2, seed=5, stop=qp.LevelLimit(32),
        kernel=qp.MALA(steps=8), checkpoint=qp.Checkpoint(folder, levels=16),
    )
except qp.ProcessLost as gone:
    print("LOST", gone, flush=True)
    import os
    os._exit(1)
print("DONE", ladder.attrs["devices"], float(ladder.levels.log_volume[0, -1]).hex(), flush=True)
"""


def start(processes: int, folder: Path) -> list[subprocess.Popen]:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(port), str(processes), str(number), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number in range(processes)
    ]


def said(process: subprocess.Popen, word: str) -> list[str]:
    lines = [line for line in process.communicate(timeout=300)[0].splitlines() if line.startswith(word)]
    assert len(lines) == 1
    return lines[0].split()


def test_one_of_two_is_killed_and_four_go_on_to_the_same_numbers(tmp_path):
    folder = tmp_path / "checkpoint"
    two = start(2, folder)
    try:
        deadline = time.monotonic() + 240
        while not any((folder / "generations").glob("*/_CHECKPOINT_METADATA")):
            assert time.monotonic() < deadline, "no checkpoint was written"
            assert two[0].poll() is None
            time.sleep(0.02)
        two[1].send_signal(signal.SIGKILL)
        left = said(two[0], "LOST")
        assert "Another process of this run has ended" in " ".join(left)
        assert two[0].returncode == 1
    finally:
        for process in two:
            process.kill()
    four = start(4, folder)
    ends = [said(process, "DONE") for process in four]
    alone = said(*start(1, tmp_path / "alone"), "DONE")
    assert alone[1:4] == ["1", "x", "1"]
    for end in ends:
        assert end[1:4] == ["2", "x", "2"]
        assert end[4] == alone[4]


def test_what_joining_asks_for():
    with pytest.raises(ValueError, match="processes, process not given"):
        qp.join("localhost:1234")
    with pytest.raises(ValueError, match="a number from 0 to 1"):
        qp.join("localhost:1234", 2, 2)
    with pytest.raises(ValueError, match="host:port"):
        qp.join("localhost", 2, 0)
