"""Error texts for people: what an exception says, in one line."""

from __future__ import annotations


def one_line(cause: BaseException, limit: int = 200) -> str:
    """The first line of an error that says something, without a full stop at its end; else the name of its type.

    Parameters
    ----------
    cause
        Any exception; those of libraries often have long texts of many lines.
    limit
        Most characters of the line.

    Returns
    -------
    str
        Ready to stand at the end of a sentence of ours.

    Examples
    --------
    >>> one_line(ValueError("shapes do not match.\\n  Traceback ..."))
    'shapes do not match'
    >>> one_line(KeyError())
    'KeyError'
    """
    lines = (line.strip() for line in str(cause).splitlines())
    return next((line for line in lines if line), type(cause).__name__)[:limit].rstrip(".")
