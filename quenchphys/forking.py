"""May this process compute?  Not if it was forked from one that had already: the device's threads stayed behind."""

from __future__ import annotations

import os

_first: int | None = None  # the process that computed first


def check_not_forked() -> None:
    """Refuse to compute where the device would never answer."""
    global _first
    if _first is None:
        _first = os.getpid()
    elif _first != os.getpid():
        raise RuntimeError(
            "This process was forked from one that had run a ladder already, and would wait for ever; start workers with "
            'multiprocessing.get_context("spawn").'
        )
