"""What tests of several folders share."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest

# Most programs run for a second here, after ten of compilation: compile them in two thirds of the time, to code that is
# slower by a third.  Where what is compiled matters (devices, exports, the start of a process) tests leave it alone.
QUICK = "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1"
os.environ.setdefault("XLA_FLAGS", QUICK)


@pytest.fixture
def ctrl_c():
    """SIGINT as a terminal has it, wherever the tests are run: in the background it may be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


# Every compiled program takes some memory maps; a process that has no more of the 65530 that Linux allows dies at once.
MOST_MAPS = 25_000


@pytest.fixture(autouse=True, scope="module")
def few_memory_maps():
    """After the tests of a file, forget compiled programs if there are many: a worker runs hundreds of tests."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        import jax  # not before the options above are set

        jax.clear_caches()
        gc.collect()
