"""Several processes, on one machine or many, that run one ladder together.

Every process runs the same script.  `join` connects them; from then on `jax.devices()` lists the devices of all processes,
a ladder is distributed over them, and every process gets the whole ladder.  Files are written by the first process alone;
a checkpoint is read by all, so its folder must be visible to all of them.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from quenchphys.console.messages import one_line

HEARTBEAT = 30  # seconds without a sign of life after which a process is given up


class ProcessLost(RuntimeError):
    """Another process of the run has ended, so this one cannot go on.

    With a checkpoint, start all processes again with the same call, and the run goes on.

    Examples
    --------
    >>> try:
    ...     ladder = qp.quench(model, checkpoint="run")
    ... except qp.ProcessLost as lost:
    ...     sys.exit(str(lost))
    """


def join(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> None:
    """Connect this process to the other processes of a run; call it before anything is computed.

    On a TPU slice, under Slurm and under Open MPI all three arguments are detected, and none need be given.

    Parameters
    ----------
    coordinator
        host:port of the first process, reachable from all others.
    processes
        Number of processes.
    process
        Number of this process, from 0.

    Raises
    ------
    RuntimeError
        If the processes cannot be connected.

    Examples
    --------
    The same script on two machines, each with its own `number`:
    >>> import quenchphys as qp
    >>> qp.join("node1:1234", processes=2, process=number)
    >>> ladder = qp.quench(model)
    """
    given = {"coordinator": coordinator, "processes": processes, "process": process}
    named = [name for name, value in given.items() if value is not None]
    if named and len(named) < 3:
        missing = ", ".join(name for name in given if name not in named)
        raise ValueError(
            f"to join other processes give coordinator, processes and process, or none of them; {missing} not given"
        )
    if processes is not None and process is not None and not 0 <= process < processes:
        raise ValueError(
            f"process must be a number from 0 to {processes - 1}, one below processes; {process} was given"
        )
    if coordinator is not None and not coordinator.rpartition(":")[2].isdigit():
        raise ValueError(f"coordinator must be host:port, as in node1:1234; {coordinator!r} was given")
    try:
        jax.distributed.initialize(coordinator, processes, process, heartbeat_timeout_seconds=HEARTBEAT)
    except Exception as cause:
        raise RuntimeError(f"the processes of this run could not be joined: {one_line(cause)}") from None


def first() -> bool:
    """Whether this is the first process, the one that writes files."""
    return jax.process_index() == 0


def several() -> bool:
    """Whether the run has more than one process."""
    return jax.process_count() > 1


def to_host(tree: Any) -> Any:
    """Every array of a tree as a whole, as numpy, in every process."""
    if not all(getattr(leaf, "is_fully_addressable", True) for leaf in jax.tree.leaves(tree)):
        from jax.experimental.multihost_utils import process_allgather

        return jax.tree.map(np.array, process_allgather(tree, tiled=True))
    return jax.tree.map(np.array, tree)


def agreed(value: int) -> int:
    """The value of the first process, in every process: for decisions that depend on a clock or a file."""
    if not several():
        return value
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return int(broadcast_one_to_all(np.int32(value)))


def any_of(value: bool) -> bool:
    """Whether the value is true in any process."""
    if not several():
        return value
    from jax.experimental.multihost_utils import process_allgather

    return bool(np.any(process_allgather(np.int32(value))))


def lost(cause: BaseException) -> bool:
    """Whether an error of a device call means that another process has ended."""
    text = str(cause).lower()
    return several() and any(
        word in text for word in ("gloo", "connection", "heartbeat", "unavailable", "peer", "timeout")
    )
