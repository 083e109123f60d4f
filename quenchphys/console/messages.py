"""Texts of errors, reduced to the one line that tells the cause."""

from __future__ import annotations

import errno
import os
import re

# What the operating system says when nothing can be written; background writers bury it in longer texts.
CANNOT_WRITE = [os.strerror(number) for number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS, errno.EACCES)]


def one_line(cause: BaseException, limit: int = 200) -> str:
    """First non-empty line of an error's text, or the name of its type, without a full stop at the end."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (lines[0] if lines else type(cause).__name__)[:limit].rstrip(".")


def why_not_written(cause: BaseException) -> str:
    """Why a file could not be written, without the addresses and numbers that libraries put around it."""
    quoted = re.search("error message = '([^']+)'", str(cause))  # HDF5
    if quoted is not None:
        return quoted.group(1)
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    whole = one_line(cause, limit=10_000)  # the reason stands last, after long paths
    return next((words for words in CANNOT_WRITE if words in whole), one_line(cause))


def one_sentence(cause: BaseException) -> str:
    """What a user should read of an error: one line, without the numbers of the operating system and of numpy.

    Parameters
    ----------
    cause
        Any error.  One of ours is a sentence already.

    Returns
    -------
    str
        The sentence.
    """
    if isinstance(cause, OSError) and cause.strerror and str(cause).startswith("[Errno"):
        where = "A file" if cause.filename is None else os.fspath(cause.filename)
        return f"{where} cannot be used: {cause.strerror[0].lower()}{cause.strerror[1:]}."
    if isinstance(cause, MemoryError) and (size := re.match("Unable to allocate ([^ ]+ [^ ]+) for", str(cause))):
        return f"This needs an array of {size[1]}, more memory than there is; take a smaller lattice, or fewer samples."
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = " ".join(lines) if lines else f"It failed ({type(cause).__name__})"
    return text if text.endswith((".", "?", "!")) else f"{text}."


def last_error(cause: BaseException, limit: int = 300) -> str:
    """The last line that names an error, where a device repeats a whole traceback; else the first line."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    named = [line for line in lines[1:] if line.split(":")[0].endswith(("Error", "Exception"))]
    return named[-1][:limit].rstrip(".") if named else one_line(cause, limit)
