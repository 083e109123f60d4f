"""Part of `histories`: a command in a process of its own, a disk that can be full, and digests of files."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import xarray as xr

from benchmarks import harness
from quenchphys.storage.checksum import MARK, broken
from workflows.command_line import main as quenchphys

PATIENCE = 300.0  # seconds after which a process counts as hung
AMPLE = 1 << 28  # bytes of a disk that is not full


class Alone(NamedTuple):
    """What a request prints and writes when nothing disturbs it."""

    table: str
    result: str
    files: dict[str, str]
    seconds: float


class Process:
    """A command that was started, and what was done to it.

    A forked process begins after the imports, which take half of the time of a small study; a new interpreter is what a
    user has.
    """

    imports = 0.0  # seconds before which a process cannot take signals in words

    def __init__(
        self,
        request: str,
        overwrite: bool,
        command: Sequence[str],
        devices: int = 1,
        forked: bool = True,
        largest_file: int = 0,
    ):
        self.request, self.overwrite = request, overwrite
        self.sent: set[int] = set()
        self.said = self.errors = ""
        self.code: int | None = None
        self._begun = time.monotonic()
        self._output = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        flags = f"--xla_force_host_platform_device_count={devices}"
        self._new: subprocess.Popen[str] | None = None
        if forked:
            arguments = (list(command), flags, largest_file, [file.fileno() for file in self._output])
            self._forked = multiprocessing.get_context("fork").Process(target=_run, args=arguments)
            self._forked.start()
            return
        self.imports = 6.0
        self._new = subprocess.Popen(
            [sys.executable, "-m", "quenchphys", *command],
            stdout=self._output[0],
            stderr=self._output[1],
            env=harness.environment(XLA_FLAGS=flags),
            preexec_fn=lambda: _limit(largest_file),
        )

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def _poll(self) -> int | None:
        return self._forked.exitcode if self._new is None else self._new.poll()

    def send(self, number: int) -> None:
        if self._poll() is None:
            os.kill(self._forked.pid or 0 if self._new is None else self._new.pid, number)
            self.sent.add(number)

    def wait(self) -> int | None:
        """The exit code, once the process has ended; None if it does not end."""
        end = time.monotonic() + PATIENCE
        while (code := self._poll()) is None and time.monotonic() < end:
            time.sleep(0.02)
        if code is None:
            self.send(signal.SIGKILL)
        self.code = code
        if not self.said:
            for file in self._output:
                file.seek(0)
            self.said, self.errors = (file.read() for file in self._output)
        return code


def _limit(largest_file: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))


def _run(command: list[str], flags: str, largest_file: int, output: list[int]) -> None:
    """The command in a forked process."""
    _limit(largest_file)
    os.environ["XLA_FLAGS"] = flags
    for number, file in enumerate(output, start=1):
        os.dup2(file, number)
    sys.exit(quenchphys(command))


class Disk:
    """A folder on a disk of its own, where the system lets us mount one."""

    def __enter__(self) -> Disk:
        self.folder = Path(tempfile.mkdtemp(prefix="history-"))
        self.largest_file = 0  # above 0 where files may not grow beyond
        self._mounted = self._mount(f"size={AMPLE}")
        return self

    def _mount(self, how: str) -> bool:
        mount = ["mount", "-t", "tmpfs", "-o", how, "tmpfs", str(self.folder)]
        return os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0

    @contextmanager
    def full(self, room: int) -> Iterator[None]:
        """With so many bytes left, or with files no larger than that."""
        if self._mounted:
            found = os.statvfs(self.folder)
            used = (found.f_blocks - found.f_bfree) * found.f_frsize
            self._mount(f"remount,size={used + room}")
        else:
            self.largest_file = max(room, 1000)
        yield
        self.largest_file = 0
        if self._mounted:
            self._mount(f"remount,size={AMPLE}")

    def __exit__(self, *_: object) -> None:
        if self._mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def contents(file: Path) -> str:
    """Digest of everything in a file that is not a time."""
    try:
        with xr.open_datatree(file, engine="h5netcdf") as tree:
            seal = hashlib.sha256()
            for node in tree.subtree:
                for name in sorted(map(str, node.variables)):
                    seal.update(f"{node.path}/{name}".encode() + node[name].values.tobytes())
            return seal.hexdigest()
    except Exception as cause:
        return f"unreadable: {type(cause).__name__}"


def intact(file: Path) -> bool:
    """Whether a file is there, whole and sealed."""
    return file.exists() and not broken(file) and MARK in file.read_bytes()[-200:]
