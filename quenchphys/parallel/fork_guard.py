"""May this process compute?  Not if it was forked from one that had already: the device's threads stayed behind."""

from __future__ import annotations

import os
import sys

_first: int | None = None  # the process that computed first
_inherited = False  # whether JAX had found its devices before this process was forked


def check_not_forked() -> None:
    """Refuse to compute where the device would never answer."""
    global _first
    if _inherited or (_first is not None and _first != os.getpid()):
        raise RuntimeError(
            "This process was forked from one that had used JAX already, and would wait for ever; start workers with "
            'multiprocessing.get_context("spawn").'
        )
    _first = os.getpid()


def _remember() -> None:
    # JAX has no public way to ask; without this one, runs are still noticed, models built before a fork are not.
    global _inherited
    _inherited = _inherited or bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))


os.register_at_fork(after_in_child=_remember)
