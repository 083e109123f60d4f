"""What faults are made of: a register of them, a child process to have one in, a run and a model to be spoiled."""

import contextlib
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import quenchphys as qp  # noqa: E402

TARGET = qp.targets.gaussian(16)
SMALL: dict[str, Any] = {"particles": 64, "replicas": 2, "seed": 3}
Verdict = tuple[str, bool | None]
FAULTS: dict[str, Callable[[Path], Verdict]] = {}
CHILDREN: dict[str, Callable[[Path], Verdict]] = {}
PATIENCE = 240.0


def fault(words: str, *, alone: bool = False, tmpfs: str = "") -> Callable[[Callable[[Path], Verdict]], Any]:
    """Register a fault; `alone` runs it in a process of its own, `tmpfs` with a small file system at place/small."""

    def register(function: Callable[[Path], Verdict]) -> Callable[[Path], Verdict]:
        if alone or tmpfs:
            CHILDREN[words] = function
            FAULTS[words] = lambda place: in_child(words, place, tmpfs)
        else:
            FAULTS[words] = function
        return function

    return register


def in_child(words: str, place: Path, tmpfs: str) -> Verdict:
    command = [sys.executable, str(Path(__file__).with_name("faults.py")), "--child", words, str(place)]
    if tmpfs:
        (place / "small").mkdir()
        # The new name space, and the mount in it, end with the process.
        probe = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(place / "small")]
        if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True).returncode:
            return "mounting is not permitted here", None
        mount = f'mount -t tmpfs -o size={tmpfs} none "$0" && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", mount, str(place / "small"), *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"nothing for {PATIENCE:.0f} s", False
    told = [line for line in done.stdout.splitlines() if line.startswith('["')]
    if not told:
        return f"the process ended with {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}", False
    what, good = json.loads(told[-1])
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
    return " ".join(ladder.report().splitlines()[:2])


def quench(**more: Any) -> qp.Ladder:
    return qp.quench(TARGET, **SMALL | more)


def same(one: qp.Ladder, other: qp.Ladder) -> bool:
    return all(
        set(one.tree[g].data_vars) == set(other.tree[g].data_vars)
        and all(one.tree[g][n].values.tobytes() == other.tree[g][n].values.tobytes() for n in one.tree[g].data_vars)
        for g in ("levels", "particles", "prior", "configurations")
    )


def resumes(folder: Path) -> tuple[str, bool]:
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet):
        good = same(quench(), quench(checkpoint=folder))
    return ("; resumed: same numbers" if good else "; resumed: OTHER NUMBERS"), good


class Gaussian:
    """A user's model, to be spoiled."""

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
    return type("Spoiled", (Gaussian,), {name: staticmethod(made) for name, made in functions.items()})()
