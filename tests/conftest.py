"""What tests of several folders share."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture
def ctrl_c():
    """SIGINT as a terminal has it, wherever the tests are run: in the background it may be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)
