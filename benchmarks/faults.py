"""What does a user see when something goes wrong?  Each fault is made to happen; a table says what came of it.

    python benchmarks/faults.py [name ...]

A fault is passed when the user sees one sentence (an exception of Python or quenchphys with one line, or a report), when
nothing that was written before is lost, and when no number is wrong.  Faults that need a process of their own (signals,
limits, small file systems) run in one; those that need a mount are skipped where mounting is not permitted.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

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
    command = [sys.executable, __file__, "--child", words, str(place)]
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


# The model


@fault("energy NaN for some prior draws")
def _(place: Path) -> Verdict:
    model = spoiled(energy=lambda x: jnp.where(x[0] > 1, jnp.nan, jnp.sum(x * x)))
    ladder = qp.quench(model, **SMALL)
    return reported(ladder), ladder.outcome is qp.Outcome.UNDEFINED_ENERGY and not ladder.outcome.trusted


@fault("energy NaN only deep in the ladder")
def _(place: Path) -> Verdict:
    model = spoiled(energy=lambda x: jnp.where(jnp.sum(x * x) < 0.02, jnp.nan, jnp.sum(x * x)))
    ladder = qp.quench(model, **SMALL, stop=qp.ReachedEnergy(0.02) | qp.LevelLimit(400))
    return reported(ladder), not ladder.outcome.trusted


@fault("energy NaN for all")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=lambda x: jnp.sum(x) * jnp.nan), **SMALL))


@fault("energy +inf for some (a hard wall)")
def _(place: Path) -> Verdict:
    ladder = qp.quench(spoiled(energy=lambda x: jnp.where(x[0] > 1, jnp.inf, jnp.sum(x * x))), **SMALL)
    finite = bool(np.isfinite(ladder.levels.log_volume.values[0, : int(ladder.levels.level_count[0])]).all())
    return reported(ladder), finite and ladder.outcome.trusted


@fault("energy +inf for most")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=lambda x: jnp.where(x[0] > -1, jnp.inf, jnp.sum(x * x))), **SMALL))


@fault("energy -inf for some")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=lambda x: jnp.where(x[0] > 1, -jnp.inf, jnp.sum(x * x))), **SMALL))


def raising(*arguments: Any) -> Any:
    raise KeyError("no such coupling")


@fault("exception in an observable")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(observe=raising), **SMALL))


@fault("exception in the energy")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(energy=raising), **SMALL))


@fault("energy without a gradient (a while loop)")
def _(place: Path) -> Verdict:
    def energy(x):
        return jax.lax.while_loop(lambda v: v > 10, lambda v: v / 2, jnp.sum(x * x))

    return seen(lambda: qp.quench(spoiled(energy=energy), **SMALL))


@fault("exception on the host, in the middle of a run")
def _(place: Path) -> Verdict:
    calls = []

    def fail(x):
        calls.append(1)
        if len(calls) > 3:
            raise ValueError("the user's own function failed")
        return np.zeros(x.shape[:-1], np.float32)

    def observe(x):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return {"mine": jax.pure_callback(fail, shape, x, vmap_method="expand_dims")}

    return seen(lambda: qp.quench(spoiled(observe=observe), **SMALL))


@fault("observable of a wrong shape")
def _(place: Path) -> Verdict:
    return seen(lambda: qp.quench(spoiled(observe=lambda x: {"profile": x}), **SMALL))


# Files


def limited(bytes_: int) -> None:
    """No file may grow beyond this from now on."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def resumes(folder: Path) -> tuple[str, bool]:
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet):
        good = same(quench(), quench(checkpoint=folder))
    return ("; resumed: same numbers" if good else "; resumed: OTHER NUMBERS"), good


@fault("disk full (limit on files) during a checkpoint", alone=True)
def _(place: Path) -> Verdict:
    quench()
    spoil = Meter(lambda level: limited(2000) if level == 32 else None)
    what, good = seen(lambda: quench(checkpoint=qp.Checkpoint(place / "run", levels=16), progress=spoil))
    limited(resource.RLIM_INFINITY)
    more, again = resumes(place / "run")
    return what + more, good and again


@fault("disk full (small tmpfs) during a checkpoint", tmpfs="1200k")
def _(place: Path) -> Verdict:
    quench()
    filler = place / "small" / "filler"

    def fill(level: int) -> None:
        if level == 32:
            with contextlib.suppress(OSError), open(filler, "wb") as file:
                while True:
                    file.write(bytes(512))
                    file.flush()

    folder = place / "small" / "run"
    what, good = seen(lambda: quench(checkpoint=qp.Checkpoint(folder, levels=16), progress=Meter(fill)))
    filler.unlink(missing_ok=True)
    more, again = resumes(folder)
    return what + more, good and again


def save_fails(folder: Path, spoil: Callable[[], Any], mend: Callable[[], Any]) -> Verdict:
    """An older file is there; a save over it fails; it must still be whole, and nothing else left behind."""
    ladder, out = quench(), folder / "ladder.nc"
    ladder.save(out)
    before = out.read_bytes()
    spoil()
    what, good = seen(lambda: ladder.save(out, overwrite=True))
    mend()
    left = [entry.name for entry in folder.iterdir() if entry.suffix == ".part"]
    kept = out.read_bytes() == before and same(qp.load(out), ladder) and not left
    again = ladder.save(out, overwrite=True).exists()
    return what + ("; the older file is whole" if kept else "; the older file is LOST"), good and kept and again


@fault("disk full (limit on files) during ladder.save", alone=True)
def _(place: Path) -> Verdict:
    return save_fails(place, lambda: limited(30_000), lambda: limited(resource.RLIM_INFINITY))


@fault("disk full (small tmpfs) during ladder.save", tmpfs="1200k")
def _(place: Path) -> Verdict:
    filler = place / "small" / "filler"

    def fill() -> None:
        with contextlib.suppress(OSError), open(filler, "wb") as file:
            while True:
                file.write(bytes(512))
                file.flush()

    return save_fails(place / "small", fill, filler.unlink)


@fault("output folder read-only", tmpfs="1200k")
def _(place: Path) -> Verdict:
    subprocess.run(["mount", "-o", "remount,ro", str(place / "small")], check=True)
    return seen(lambda: quench().save(place / "small" / "ladder.nc"))


@fault("checkpoint folder read-only", tmpfs="1200k")
def _(place: Path) -> Verdict:
    subprocess.run(["mount", "-o", "remount,ro", str(place / "small")], check=True)
    return seen(lambda: quench(checkpoint=place / "small" / "run"))


@fault("output exists already")
def _(place: Path) -> Verdict:
    (place / "ladder.nc").write_text("a year of work")
    what, good = seen(lambda: quench().save(place / "ladder.nc"))
    return what, good and (place / "ladder.nc").read_text() == "a year of work"


@fault("malformed ladder files (text, cut short, one bit flipped)")
def _(place: Path) -> Verdict:
    content = quench().save(place / "ladder.nc").read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    said = []
    for name, data in (("text", b"not a ladder"), ("cut", content[: len(content) // 2]), ("flipped", bytes(flipped))):
        (place / name).write_bytes(data)
        said.append(seen(lambda name=name: qp.load(place / name)))
    return " | ".join(what for what, _ in said), all(good for _, good in said)


# Checkpoints


def kept(place: Path) -> Path:
    quench(checkpoint=qp.Checkpoint(place / "run", levels=16))
    return place / "run"


def tear(folder: Path, how_many: int) -> None:
    """Damage the newest generations: every file of the state cut in half."""
    steps = sorted((e for e in (folder / "generations").iterdir() if e.name.isdigit()), key=lambda e: -int(e.name))
    for step in steps[:how_many]:
        for file in [f for f in (step / "state").rglob("*") if f.is_file()]:
            os.truncate(file, file.stat().st_size // 2)


def talks(call: Callable[[], Any]) -> tuple[Any, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        result = call()
    return result, " ".join(said.getvalue().split())


@fault("newest checkpoint torn")
def _(place: Path) -> Verdict:
    folder = kept(place)
    tear(folder, 1)
    ladder, said = talks(lambda: quench(checkpoint=folder))
    good = same(ladder, quench())
    return said + ("; same numbers" if good else "; OTHER NUMBERS"), good and "passed over" in said


@fault("both checkpoints torn")
def _(place: Path) -> Verdict:
    folder = kept(place)
    tear(folder, 2)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    (what, good), _ = talks(lambda: seen(lambda: quench(checkpoint=folder)))
    untouched = size == sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return what, good and untouched


@fault("resumed with other settings")
def _(place: Path) -> Verdict:
    folder = kept(place)
    what, good = seen(lambda: quench(checkpoint=folder, particles=128))
    more, again = resumes(folder)
    return what + more, good and again


@fault("resumed with another model")
def _(place: Path) -> Verdict:
    qp.quench(Gaussian(), **SMALL, checkpoint=place / "run")
    return seen(lambda: qp.quench(spoiled(energy=lambda x: 2 * jnp.sum(x * x)), **SMALL, checkpoint=place / "run"))


@fault("resumed with another version of quenchphys")
def _(place: Path) -> Verdict:
    folder = kept(place)
    now = qp.__version__
    qp.__version__ = "99.0"
    try:
        return seen(lambda: quench(checkpoint=folder))
    finally:
        qp.__version__ = now


@fault("checkpoint folder is a file")
def _(place: Path) -> Verdict:
    (place / "run").write_text("a file")
    what, good = seen(lambda: quench(checkpoint=place / "run"))
    return what, good and (place / "run").read_text() == "a file"


@fault("checkpoint folder holds something else")
def _(place: Path) -> Verdict:
    (place / "thesis.tex").write_text("ten years of work")
    what, good = seen(lambda: quench(checkpoint=place))
    return what, good and [e.name for e in place.iterdir() if e.name != "lock"] == ["thesis.tex"]


SLOW = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
import quenchphys as qp
class Slow:
    def update(self, level, *rest):
        print("level", level, flush=True)
        time.sleep(0.5)
    def close(self):
        pass
qp.quench(qp.targets.gaussian(16), particles=64, replicas=2, seed=3, checkpoint=sys.argv[1], progress=Slow())
"""


def slow_run(folder: Path) -> subprocess.Popen[str]:
    """A run in another process, after its first block of levels."""
    command = [sys.executable, "-c", SLOW, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@fault("two runs on one checkpoint folder")
def _(place: Path) -> Verdict:
    other = slow_run(place / "run")
    what, good = seen(lambda: quench(checkpoint=place / "run"))
    other.communicate()
    more, again = resumes(place / "run")
    return what + more, good and again and other.returncode == 0


def signalled(place: Path, number: int) -> Verdict:
    process = slow_run(place / "run")
    process.send_signal(number)
    _, errors = process.communicate()
    what = errors.strip().splitlines()[-1] if errors.strip() else "nothing"
    more, again = resumes(place / "run")
    return what + more, process.returncode != 0 and "the same call goes on" in what and again


@fault("SIGTERM")
def _(place: Path) -> Verdict:
    return signalled(place, signal.SIGTERM)


@fault("Ctrl-C")
def _(place: Path) -> Verdict:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child inherits a signal that is ignored
    try:
        return signalled(place, signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


# Clocks, processes, memory


def with_clock(jump: float) -> Verdict:
    """The wall clock jumps after every block of levels; rules of time must not notice."""
    real, offset = time.time, [0.0]

    def leap(level: int) -> None:
        offset[0] += jump

    whole = quench()
    time.time = lambda: real() + offset[0]
    try:
        with tempfile.TemporaryDirectory() as place:
            rule = qp.RemainingEvidence(-3) | qp.WallTime(3000)
            folder = Path(place) / "run"
            ladder = quench(stop=rule, progress=Meter(leap), checkpoint=qp.Checkpoint(folder, minutes=30))
            written = len(list((folder / "generations").iterdir())) if (folder / "generations").exists() else 0
    finally:
        time.time = real
    good = same(whole, ladder) and ladder.outcome.trusted and not written and 0 <= ladder.attrs["wall_time"] < 3000
    return f"{reported(ladder)}; same numbers, wall time {ladder.attrs['wall_time']:.1f} s", good


@fault("clock jumps back by a day in every block")
def _(place: Path) -> Verdict:
    return with_clock(-86400)


@fault("clock jumps forwards by a day in every block")
def _(place: Path) -> Verdict:
    return with_clock(86400)


def work(out: Any) -> None:
    try:
        out.put(float(quench().levels.log_volume[0, 20]))
    except BaseException as error:
        out.put(f"{type(error).__name__}: {error}")


def worker(method: str) -> Any:
    context: Any = multiprocessing.get_context(method)
    out = context.Queue()
    process = context.Process(target=work, args=(out,))
    process.start()
    try:
        return out.get(timeout=120)
    except Exception:
        return "nothing for 120 s"
    finally:
        process.kill()
        process.join()


@fault("worker by spawn")
def _(place: Path) -> Verdict:
    expected, found = float(quench().levels.log_volume[0, 20]), worker("spawn")
    return f"log G {found} in the worker, {expected} here", found == expected


@fault("worker by fork after a run", alone=True)
def _(place: Path) -> Verdict:
    quench()
    found = worker("fork")
    return str(found), isinstance(found, str) and "spawn" in found


@fault("memory: more than the machine has")
def _(place: Path) -> Verdict:
    what, good = seen(lambda: qp.quench(TARGET, particles=50_000_000, replicas=4))
    return what, good and "lower particles" in what


@fault("memory: runs out in the middle (limit on the process)", alone=True)
def _(place: Path) -> Verdict:
    quench()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + (1 << 30), resource.RLIM_INFINITY))
    # 0.8 GB of draws by the estimate, and 1 GB is left: the run may just fit, or say that it does not.
    try:
        ladder = qp.quench(TARGET, particles=200_000, replicas=2, stop=qp.LevelLimit(16))
    except Exception as error:
        return f"{type(error).__name__}: {error}", isinstance(error, MemoryError) and "lower particles" in str(error)
    return f"it fitted: {ladder.outcome.value} after {int(ladder.levels.level_count.max())} levels", True


def main(names: list[str]) -> int:
    # JAX warns of forking itself; what counts is whether the worker hangs.
    chosen = [words for words in FAULTS if not names or any(name in words for name in names)]
    bad = 0
    print("| fault | what the user sees | verdict |\n|---|---|---|", flush=True)
    for words in chosen:
        with tempfile.TemporaryDirectory() as place:
            try:
                what, good = FAULTS[words](Path(place))
            except BaseException as error:
                what, good = f"UNEXPECTED {type(error).__name__}: {str(error).strip().splitlines()[:1]}", False
            what = what.replace(place, "PLACE").replace("|", "/").replace("\n", " // ")
        bad += good is False
        print(f"| {words} | {what} | {'not tried' if good is None else 'good' if good else 'BAD'} |", flush=True)
    print(f"\n{len(chosen)} faults, {bad} bad")
    return int(bad > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(CHILDREN[sys.argv[2]](Path(sys.argv[3]))), flush=True)
        os._exit(0)
    raise SystemExit(main(sys.argv[1:]))
