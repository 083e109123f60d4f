"""Several processes, on one machine or many, that run one ladder together.

Every process runs the same script.  `join` makes them known to each other; from then on `jax.devices()` are those of all,
a ladder is spread over them, and every process gets the whole of it.  Files are written by the first process alone; those
of a checkpoint are read by all, so its folder must be one that all of them see.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

HEARTBEAT = 30  # seconds after which a process that says nothing is given up


class ProcessLost(RuntimeError):
    """Another process of the run ended before its time."""


def join(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> None:
    """Join the other processes of a run, before anything is computed.

    `coordinator` is host:port of the first process, `processes` how many there are and `process` which this is, from 0.
    On a TPU slice, under Slurm or Open MPI all three are found out and none need be given.
    """
    given = {"coordinator": coordinator, "processes": processes, "process": process}
    named = [name for name, value in given.items() if value is not None]
    if named and len(named) < 3:
        missing = ", ".join(name for name in given if name not in named)
        raise ValueError(
            f"to join other processes give coordinator, processes and process, or none; {missing} not given"
        )
    if processes is not None and process is not None and not 0 <= process < processes:
        raise ValueError(f"process is a number from 0 to {processes - 1}, below processes; {process} was given")
    if coordinator is not None and not coordinator.rpartition(":")[2].isdigit():
        raise ValueError(f"coordinator must be host:port, as in node1:1234; {coordinator!r} was given")
    try:
        jax.distributed.initialize(coordinator, processes, process, heartbeat_timeout_seconds=HEARTBEAT)
    except Exception as cause:
        words = str(cause).strip().splitlines()[0][:200]
        raise RuntimeError(f"the processes of this run could not be joined: {words}") from None


def first() -> bool:
    """Whether this process writes the files."""
    return jax.process_index() == 0


def several() -> bool:
    return jax.process_count() > 1


def to_host(tree: Any) -> Any:
    """The whole of every array, in every process."""
    if not all(getattr(leaf, "is_fully_addressable", True) for leaf in jax.tree.leaves(tree)):
        from jax.experimental.multihost_utils import process_allgather

        return jax.tree.map(np.array, process_allgather(tree, tiled=True))
    return jax.tree.map(np.array, tree)


def agreed(value: int) -> int:
    """What the first process says, in every process: for decisions that look at a clock or a file."""
    if not several():
        return value
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return int(broadcast_one_to_all(np.int32(value)))


def any_of(value: bool) -> bool:
    """Whether it is so in any process."""
    if not several():
        return value
    from jax.experimental.multihost_utils import process_allgather

    return bool(np.any(process_allgather(np.int32(value))))


def lost(cause: BaseException) -> bool:
    """Whether an error of a device call means that another process is gone."""
    words = str(cause).lower()
    return several() and any(
        word in words for word in ("gloo", "connection", "heartbeat", "unavailable", "peer", "timeout")
    )
