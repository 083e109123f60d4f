"""Cache of compiled programs on disk, so that the next process with the same shapes does not compile again.

JAX keeps the programs in a folder, by default `quenchphys` in the user's cache folder ($XDG_CACHE_HOME or ~/.cache).  A
folder already chosen for JAX (JAX_COMPILATION_CACHE_DIR) is used as it is; QUENCHPHYS_CACHE=off turns the cache off.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

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
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quenchphys"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # without a folder to write to, programs are compiled again
        return
    if not os.access(folder, os.W_OK):
        return
    # JAX decides at its first compilation whether it has a cache, and may have compiled something before.
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_COMPILE_SECONDS)
