"""Guard against computing in a process forked from one that had used JAX: the threads of its devices are not forked."""

from __future__ import annotations

import os
import sys

_first: int | None = None  # id of the process that computed first
_inherited = False  # whether JAX had initialised its devices before this process was forked


def check_not_forked() -> None:
    """Refuse to compute in a process whose devices would never answer."""
    global _first
    if _inherited or (_first is not None and _first != os.getpid()):
        raise RuntimeError(
            "This process was forked from one that had already used JAX, so its devices would never answer; start workers "
            'with multiprocessing.get_context("spawn").'
        )
    _first = os.getpid()


def _remember() -> None:
    # JAX has no public way to ask.  Without this one only runs before the fork are noticed, not models built there.
    global _inherited
    _inherited = _inherited or bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))


os.register_at_fork(after_in_child=_remember)
