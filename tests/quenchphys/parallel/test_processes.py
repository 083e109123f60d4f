"""Several processes, one ladder: the same numbers, and a clear end when one of them is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quenchphys as qp


def quench(**more) -> qp.Ladder:
    settings = {"particles": 800, "replicas": 1, "seed": 5, "kernel": qp.MALA(steps=8), "stop": qp.LevelLimit(64)}
    return qp.quench(qp.targets.gaussian(40), **settings, **more)


def end_of(ladder: qp.Ladder) -> str:
    return float(ladder.levels.log_volume[0, -1]).hex()


def one_of_two(port: str, process: str, folder: str) -> None:
    qp.join(f"localhost:{port}", 2, int(process))
    try:
        ladder = quench(checkpoint=qp.Checkpoint(folder, levels=16))
    except qp.ProcessLost as gone:
        print("LOST", gone, flush=True)
        os._exit(1)
    print("DONE", ladder.attrs["devices"], end_of(ladder), flush=True)


def start_two(folder: Path) -> list[subprocess.Popen]:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, __file__, str(port), str(number), str(folder)],
            env=os.environ | {"JAX_NUM_CPU_DEVICES": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number in range(2)
    ]


def said(process: subprocess.Popen, word: str) -> list[str]:
    lines = [line for line in process.communicate(timeout=300)[0].splitlines() if line.startswith(word)]
    assert len(lines) == 1
    return lines[0].split()


def test_one_of_two_is_killed_and_others_go_on_to_the_same_numbers(tmp_path):
    """The particles of one replica on two processes, twice, and the whole on one device."""
    folder = tmp_path / "checkpoint"
    two = start_two(folder)
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
    alone = quench(devices=1)
    for process in start_two(folder):
        assert said(process, "DONE") == ["DONE", "1", "x", "2", end_of(alone)]


def test_what_joining_asks_for():
    with pytest.raises(ValueError, match="processes, process not given"):
        qp.join("localhost:1234")
    with pytest.raises(ValueError, match="a number from 0 to 1"):
        qp.join("localhost:1234", 2, 2)
    with pytest.raises(ValueError, match="host:port"):
        qp.join("localhost", 2, 0)


if __name__ == "__main__":
    one_of_two(*sys.argv[1:])
