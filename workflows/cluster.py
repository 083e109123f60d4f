"""Parts of a study as tasks of a cluster, by `dask.distributed`.

A task that a lost worker had begun is given to another one.  With an output on a file system that all workers share, it
continues from what was kept there.  Every task has the seeds that it has on a single machine, so the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

RETRIES = 3  # of a task whose worker was lost, before the study is given up


def run_all(client: Any, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The function called with each tuple of arguments: here, one after the other, or on a cluster.

    Parameters
    ----------
    client
        A `dask.distributed.Client`, or None.
    function
        What every task computes.  With its arguments it is sent to a worker, so both must be such that pickle takes them.
    calls
        Arguments of each task.

    Returns
    -------
    list
        What the calls returned, in their order.
    """
    if client is None:
        return [function(*call) for call in calls]
    from distributed.scheduler import KilledWorker

    futures = [client.submit(function, *call, pure=False, retries=RETRIES) for call in calls]
    try:
        return client.gather(futures)
    except KilledWorker as lost:
        raise RuntimeError(
            f"A task of this study was given up after its worker was lost {RETRIES + 1} times (the last was "
            f"{getattr(lost.last_worker, 'address', lost.last_worker)}); look at the log of that worker."
        ) from None
    finally:
        client.cancel([future for future in futures if not future.done()])


def connect(address: str | None) -> Any:
    """The client of a cluster, from the address of its scheduler; None without one.

    Parameters
    ----------
    address
        Such as tcp://head:8786, as --dask gives it.

    Returns
    -------
    distributed.Client or None
        Connected; refused in one sentence if nobody answers.
    """
    if address is None:
        return None
    try:
        from distributed import Client
    except ImportError as cause:
        raise ImportError(
            f"A cluster needs the library distributed, which cannot be imported ({cause}); it comes with the extra "
            "'cluster', pip install '.[cluster]'."
        ) from cause
    try:
        return Client(address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as cause:
        raise ValueError(
            f"No scheduler of dask answers at {address!r} ({type(cause).__name__}); start one with `dask scheduler`, and "
            "give the address that it prints, such as tcp://head:8786."
        ) from None
