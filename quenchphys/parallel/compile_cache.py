"""Cache of compiled programs on disk, so that the next process with the same shapes does not compile again.

JAX keeps the programs in a folder, by default `quenchphys` in the user's cache folder ($XDG_CACHE_HOME or ~/.cache).  A
folder already chosen for JAX (JAX_COMPILATION_CACHE_DIR) is used as it is; QUENCHPHYS_CACHE=off turns the cache off.

The entries are machine code that will be executed, so the folder is readable and writable for its owner alone, and one that
belongs to somebody else is not used.  An entry that cannot be read is removed, and then compiled and written again.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

# Every program is kept, however short its compilation: dozens of small ones take as long as a large one takes to load.
LEAST_COMPILE_SECONDS = 0.0


@cache
def keep_compiled_programs() -> None:
    """Turn the cache on, once in a process, unless the user chose another folder or wants none."""
    if (
        os.environ.get("QUENCHPHYS_CACHE", "").lower() == "off"
        or getattr(jax.config, "jax_compilation_cache_dir", None) is not None
    ):
        return
    folder = _own_folder()
    if folder is None:
        return
    # JAX decides at its first compilation whether it has a cache, and may have compiled something before.
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_COMPILE_SECONDS)
    _replace_damaged_entries(folder)


def _own_folder() -> Path | None:
    """The folder, ours and closed to others; None where there can be none, and programs are compiled again."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quenchphys"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
        if found.st_uid != os.geteuid():
            warnings.warn(
                f"The cache of compiled programs {folder} belongs to another user, so it is not used; XDG_CACHE_HOME "
                "chooses another place.",
                RuntimeWarning,
                stacklevel=3,
            )
            return None
        if stat.S_IMODE(found.st_mode) & 0o077:
            folder.chmod(0o700)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    return folder if os.access(folder, os.W_OK) else None


def _replace_damaged_entries(folder: Path) -> None:
    """Remove an entry that cannot be read, because JAX never writes over one that is there."""
    # JAX has no public way to do this.  Where its names have changed, it warns and compiles as before.
    cache: Any = sys.modules.get("jax._src.compilation_cache")
    read = getattr(cache, "get_executable_and_time", None)
    if read is None:
        return

    def read_or_remove(cache_key: str, *rest: Any, **named: Any) -> Any:
        try:
            return read(cache_key, *rest, **named)
        except Exception:  # the reader's own exceptions are many
            with suppress(OSError):
                (folder / f"{cache_key}-cache").unlink(missing_ok=True)
            return None, None

    cache.get_executable_and_time = read_or_remove
