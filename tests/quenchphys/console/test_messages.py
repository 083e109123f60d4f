"""Error texts in one line."""

from __future__ import annotations

import pytest

from quenchphys.console.messages import one_line


@pytest.mark.parametrize(
    ("cause", "line"),
    [
        (ValueError("shapes do not match.\n  Traceback ..."), "shapes do not match"),
        (ValueError("\n\n  indented \nsecond"), "indented"),
        (KeyError(), "KeyError"),
        (OSError("  "), "OSError"),
        (RuntimeError("x" * 500), "x" * 200),
    ],
)
def test_an_exception_is_told_in_one_line(cause, line):
    assert one_line(cause) == line


def test_the_limit_counts_characters():
    assert one_line(ValueError("abcdef"), limit=3) == "abc"
