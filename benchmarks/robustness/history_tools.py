"""Part of `histories`: a command in a process of its own, a disk that can be full, and digests of files."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import xarray as xr

from benchmarks import harness
from quenchphys.storage.checksum import MARK, broken
from workflows.command_line import main as quenchphys

PATIENCE = 300.0  # seconds without any processor time after which a process counts as hung; the machine may be busy
TIME = re.compile(r"^(.*), [^,\n]* (?:s|min|h)$", re.MULTILINE)
AMPLE = 1 << 28  # bytes of a disk that is not full


class Alone(NamedTuple):
    """What a request prints and writes when nothing disturbs it."""

    table: str
    result: str
    files: dict[str, str]
    request: dict[str, Any]
    seconds: float


class Worker:
    """A process that runs one command after another, so that only the first of them has to trace and compile.

    It is forked after the imports.  A signal that ends it ends it for good, as it would end a command by itself.
    """

    def __init__(self, devices: int):
        self.devices = devices
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=_serve, args=(other, devices), daemon=True)
        self.process.start()
        other.close()


class Process:
    """A command that was started, and what was done to it: in a worker that is idle, or in a new interpreter."""

    idle: ClassVar[list[Worker]] = []
    imports = 0.0  # seconds before which a new interpreter cannot take signals in words

    def __init__(
        self,
        request: str,
        overwrite: bool,
        command: Sequence[str],
        devices: int = 1,
        new_interpreter: bool = False,
        largest_file: int = 0,
    ):
        self.request, self.overwrite = request, overwrite
        self.sent: set[int] = set()
        self.said = self.errors = ""
        self.code: int | None = None
        self.seconds = 0.0
        self._begun = time.monotonic()
        self._output = [tempfile.NamedTemporaryFile("r+") for _ in range(2)]  # noqa: SIM115
        self._ended = False
        self._worker: Worker | None = None
        if not new_interpreter:
            able = [worker for worker in self.idle if worker.devices == devices and worker.process.is_alive()]
            self._worker = able[0] if able else Worker(devices)
            self.idle[:] = [worker for worker in self.idle if worker is not self._worker]
            names = [file.name for file in self._output]
            self._worker.connection.send((list(command), names, largest_file))
            return
        self.imports = 6.0
        self._new = subprocess.Popen(
            [sys.executable, "-m", "quenchphys", *command],
            stdout=self._output[0],
            stderr=self._output[1],
            env=harness.environment(XLA_FLAGS=_flags(devices)),
            preexec_fn=lambda: _limit(largest_file),
        )

    def _poll(self) -> int | None:
        """The exit code, or None while the command runs."""
        if self._ended:
            return self.code
        if self._worker is None:
            code = self._new.poll()
        else:
            try:
                code = self._worker.connection.recv() if self._worker.connection.poll() else None
                if code is not None and not self.sent:
                    self.idle.append(self._worker)
                elif code is not None:  # a command that was interrupted leaves nothing behind: it ends with its process
                    self._worker.process.kill()
            except EOFError:  # the worker died
                self._worker.process.join()
                code = self._worker.process.exitcode
        if code is not None:
            self.code, self._ended, self.seconds = code, True, time.monotonic() - self._begun
        return code

    @property
    def _pid(self) -> int:
        return self._new.pid if self._worker is None else self._worker.process.pid or 0

    def _processor_seconds(self) -> float:
        try:
            fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended, or the system has no such file
            return time.monotonic()
        return float(int(fields[11]) + int(fields[12]))

    def send(self, number: int) -> None:
        if self._poll() is None:
            os.kill(self._pid, number)
            self.sent.add(number)

    def wait(self) -> int | None:
        """The exit code, once the command has ended; None if it does not end."""
        used, end = -1.0, 0.0
        while (code := self._poll()) is None:
            if (now := self._processor_seconds()) != used:
                used, end = now, time.monotonic() + PATIENCE
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        if code is None:
            self.send(signal.SIGKILL)
        said, self.errors = (Path(file.name).read_text() for file in self._output)
        self.said = TIME.sub(r"\1", said)  # the first line of a table ends with the time its study took
        return code


def _flags(devices: int) -> str:
    return f"--xla_force_host_platform_device_count={devices}"


def _limit(largest_file: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file or most, most))


def _serve(connection: Connection, devices: int) -> None:
    """Run every command that comes, and answer with its exit code."""
    os.environ["XLA_FLAGS"] = _flags(devices)
    while True:
        code = 1
        try:
            command, names, largest_file = connection.recv()
            for number, name in enumerate(names, start=1):
                file = os.open(name, os.O_WRONLY | os.O_APPEND)
                os.dup2(file, number)
                os.close(file)
            _limit(largest_file)
            code = quenchphys(command)
        except EOFError:
            return
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException as cause:  # what an interpreter does with it
            frames = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
            if isinstance(cause, KeyboardInterrupt) and "main" not in frames:  # the command had not begun
                print("Interrupted.", file=sys.stderr)
                code = 130
            else:
                traceback.print_exc()
        # A signal that comes this late has nothing left to stop.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
        _limit(0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout.flush()
        sys.stderr.flush()
        connection.send(int(code))
        for number, handler in before.items():
            signal.signal(number, handler)


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
    """Digest of everything in a file that is not a time.

    Without the configurations that a ladder keeps: on another number of devices they may be rounded differently.
    """
    try:
        with xr.open_datatree(file, engine="h5netcdf") as tree:
            seal = hashlib.sha256()
            for node in tree.subtree:
                for name in sorted(set(map(str, node.variables)) - {"field"}):
                    seal.update(f"{node.path}/{name}".encode() + node[name].values.tobytes())
            return seal.hexdigest()
    except Exception as cause:
        return f"unreadable: {type(cause).__name__}"


def intact(file: Path) -> bool:
    """Whether a file is there, whole and sealed."""
    return file.exists() and not broken(file) and MARK in file.read_bytes()[-200:]
