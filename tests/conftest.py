"""What tests of several folders share."""

from __future__ import annotations

import os
import signal

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
