"""`quenchphys quench`: one ladder, written to a file."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from workflows.commands import Command, Exit, arguments
from workflows.defaults import QUENCH_PARTICLES, QUENCH_REPLICAS, QUICK_LADDER


def add_arguments(parser: ArgumentParser) -> None:
    arguments.add_lattice(parser)
    arguments.add_ladder(parser, QUENCH_PARTICLES, QUENCH_REPLICAS)
    arguments.add_run(parser, f"{QUICK_LADDER['replicas']} x {QUICK_LADDER['particles']} particles")
    arguments.add_output(parser, required=True, plot=False)


def run(chosen: Namespace) -> Exit:
    import observables
    from quenchphys.parallel.processes import first
    from quenchphys.storage.atomic_files import check_writable
    from workflows.budget import LadderSettings
    from workflows.commands.output import trust
    from workflows.store import with_checkpoint

    problem = arguments.problem(chosen)
    usual = {"particles": QUENCH_PARTICLES, "replicas": QUENCH_REPLICAS}
    quick = QUICK_LADDER if chosen.quick else {}
    settings = LadderSettings(**usual | quick | arguments.given(chosen, "particles", "replicas"))
    checkpoint = chosen.out.with_suffix(".checkpoint")
    if checkpoint == chosen.out:
        raise ValueError(f"The ladder cannot be called {chosen.out}, because its checkpoint is a folder of that name.")
    with _alone(chosen.out, checkpoint):
        check_writable(chosen.out, overwrite=chosen.overwrite)
        run = partial(settings.quench, problem, None, chosen.progress)
        ladder = with_checkpoint(run, checkpoint, chosen.overwrite)
        ladder.save(chosen.out, overwrite=chosen.overwrite)
        if first():
            shutil.rmtree(checkpoint)
    print(observables.report(ladder))
    print(f"written to {chosen.out}")
    return trust(ladder)


def _alone(out: Path, checkpoint: Path) -> AbstractContextManager[object]:
    """The lock of the output, until the ladder is written and its checkpoint removed."""
    from quenchphys.parallel.processes import first
    from quenchphys.storage.atomic_files import check_writable, remove_leftovers
    from quenchphys.storage.lock import Lock, beside

    if not first():
        return nullcontext()
    check_writable(out, overwrite=True)
    lock = Lock(beside(checkpoint), f"Another run is writing to {out}; wait until it has ended, or choose another output.")
    remove_leftovers(out.parent, of=f"{out.name}.")
    return lock


COMMAND = Command(
    "quench",
    "Run one ladder and write it to a file",
    add_arguments,
    run,
    examples=("quench --L 16 --set mu2=2.286 --out ladder.nc",),
)
