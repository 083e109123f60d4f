"""Guard against computing in a process forked from one that had used JAX: the threads of its devices are not forked.

Anything computed there would wait for ever for a thread that does not exist.  So a forked process gets, in place of the
devices it inherited, something that refuses to be used, and forgets every compiled program, because those know their
devices.  Arrays that were computed before the fork can still be read.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import jax

REFUSAL = (
    "This process was forked from one that had already used JAX, so its devices would never answer; start workers with "
    'multiprocessing.get_context("spawn").'
)

_first: int | None = None  # id of the process that computed first
_inherited = False  # whether JAX had initialised its devices before this process was forked


def check_not_forked() -> None:
    """Refuse to compute in a process whose devices would never answer."""
    global _first
    if _inherited or (_first is not None and _first != os.getpid()):
        raise RuntimeError(REFUSAL)
    _first = os.getpid()


class NoDevices(dict):
    """The devices of a forked process: whoever asks for them is told why there are none."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(REFUSAL)

    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    get = keys = values = items = _refuse


def _after_fork() -> None:
    # JAX has no public way to ask, or to refuse.  Where its names have changed, only our own samplers refuse.
    global _inherited
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    devices = getattr(bridge, "_backends", None)
    if isinstance(devices, NoDevices) or not devices:
        return
    _inherited = True
    with suppress(Exception):
        jax.clear_caches()
        bridge._backends, bridge._default_backend = NoDevices(), None


os.register_at_fork(after_in_child=_after_fork)
