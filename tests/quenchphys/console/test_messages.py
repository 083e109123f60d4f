"""Error texts in one line."""

from __future__ import annotations

import pytest

from quenchphys.console.messages import one_line, one_sentence


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


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        (PermissionError(13, "Permission denied", "run.nc"), "run.nc cannot be used: permission denied."),
        (OSError(28, "No space left on device"), "A file cannot be used: no space left on device."),
        (
            MemoryError("Unable to allocate 74.5 GiB for an array with shape (100000, 100000) and data type float64"),
            "This needs an array of 74.5 GiB, more memory than there is; take a smaller lattice, or fewer samples.",
        ),
        (ValueError("L must be 2\n  or more"), "L must be 2 or more."),
        (ValueError("Whole already."), "Whole already."),
        (KeyError(), "It failed (KeyError)."),
    ],
)
def test_raw_errors_become_a_sentence(cause, sentence):
    assert one_sentence(cause) == sentence
