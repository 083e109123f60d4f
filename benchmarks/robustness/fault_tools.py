"""Tools for faults: their register, the child process some of them need, a small run, and a model with faulty parts."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import quenchphys as qp
from benchmarks import harness

TARGET = qp.targets.gaussian(16)
SMALL: dict[str, Any] = {"particles": 64, "replicas": 2, "seed": 3}
Verdict = tuple[str, bool | None]
FAULTS: dict[str, Callable[[Path], Verdict]] = {}
CHILDREN: dict[str, Callable[[Path], Verdict]] = {}
PATIENCE = 240.0  # seconds after which a child process counts as hung


def fault(words: str, *, alone: bool = False, tmpfs: str = "") -> Callable[[Callable[[Path], Verdict]], Any]:
    """Register a fault, which returns (what the user sees, whether that is good); None: it could not be tried.

    `alone` runs it in a process of its own, `tmpfs` with a small file system at place/small.
    """

    def register(function: Callable[[Path], Verdict]) -> Callable[[Path], Verdict]:
        if alone or tmpfs:
            CHILDREN[words] = function
            FAULTS[words] = lambda place: in_child(words, place, tmpfs)
        else:
            FAULTS[words] = function
        return function

    return register


def in_child(words: str, place: Path, tmpfs: str) -> Verdict:
    """The verdict on a fault that happens in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.robustness.faults", "--child", words, str(place)]
    if tmpfs:
        (place / "small").mkdir()
        # The new name space ends with the process, and the mount with it.
        probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(place / "small")]
        if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True).returncode:
            return "mounting is not permitted here", None
        mount = f'mount -t tmpfs -o size={tmpfs} none "$0" && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", mount, str(place / "small"), *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=harness.environment())
    except subprocess.TimeoutExpired:
        return f"nothing for {PATIENCE:.0f} s", False
    verdicts = [line for line in done.stdout.splitlines() if line.startswith('["')]
    if not verdicts:
        return f"the process ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}", False
    what, good = json.loads(verdicts[-1])
    return what, good


def seen(call: Callable[[], Any]) -> Verdict:
    """The exception of a call as the user sees it, and whether it is one plain sentence."""
    try:
        result = call()
    except BaseException as error:
        home = type(error).__module__.split(".")[0]
        plain = home in ("builtins", "quenchphys") and len(str(error).splitlines()) == 1
        return f"{type(error).__name__}: {error}", plain
    return f"no error: {result!r:.80}", False


def reported(ladder: qp.Ladder) -> str:
    """The first two lines of the report."""
    return " ".join(ladder.report().splitlines()[:2])


def quench(**more: Any) -> qp.Ladder:
    """A small run that takes a second."""
    return qp.quench(TARGET, **SMALL | more)


def same(one: qp.Ladder, other: qp.Ladder) -> bool:
    """Whether two ladders are equal to the last bit."""
    return all(
        set(one.tree[g].data_vars) == set(other.tree[g].data_vars)
        and all(one.tree[g][n].values.tobytes() == other.tree[g][n].values.tobytes() for n in one.tree[g].data_vars)
        for g in ("levels", "particles", "prior", "configurations")
    )


def resumes(folder: Path) -> tuple[str, bool]:
    """Whether the run in a folder goes on to the numbers of an undisturbed one."""
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet):
        good = same(quench(), quench(checkpoint=folder))
    return ("; resumed: same numbers" if good else "; resumed: OTHER NUMBERS"), good


class Gaussian:
    """A model as a user would write it."""

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 3))

    def log_prior(self, x):
        return -0.5 * jnp.sum(x * x)

    def energy(self, x):
        return jnp.sum(x * x)


class Meter:
    """Calls a function after each block of levels."""

    def __init__(self, call: Callable[[int], Any]):
        self._call = call

    def update(self, level: int, *rest: float) -> None:
        self._call(level)

    def close(self) -> None:
        pass


def spoiled(**functions: Callable[..., Any]) -> Any:
    """The model with some of its functions replaced by faulty ones."""
    return type("Spoiled", (Gaussian,), {name: staticmethod(made) for name, made in functions.items()})()
