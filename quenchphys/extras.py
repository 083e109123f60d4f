"""Libraries that only some functions need: imported on use, and asked for in one sentence where they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(library: str, purpose: str, extra: str) -> Any:
    """The module of a library that is not a dependency of its own.

    Parameters
    ----------
    library
        Name of the module, such as "blackjax".
    purpose
        What needs it, the beginning of the sentence that refuses to go on without.
    extra
        Name of the extra that installs it.

    Returns
    -------
    module
        The imported module.

    Examples
    --------
    >>> optional("blackjax", "qp.nested", "rivals").nss
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as missing:
        if missing.name != library.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{purpose} needs the library {missing.name}, which is not installed; install the extra {extra!r}: "
            f"pip install 'quenchphys[{extra}]'",
            name=missing.name,
        ) from None
