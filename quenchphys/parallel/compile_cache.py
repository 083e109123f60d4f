"""Compiled programs outlive the process: the next one that needs the same shapes starts sampling at once.

JAX keeps them in a folder, by default `quenchphys` in the user's cache folder ($XDG_CACHE_HOME or ~/.cache).  A folder that
was chosen for JAX already (JAX_COMPILATION_CACHE_DIR) is left as it is; QUENCHPHYS_CACHE=off keeps nothing.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

WORTH_KEEPING = 0.0  # seconds of compilation: dozens of small programs take as long to compile as a large one to load


@cache
def keep_compiled_programs() -> None:
    """Once a process: choose the folder, unless the user did or does not want one."""
    if (
        os.environ.get("QUENCHPHYS_CACHE", "").lower() == "off"
        or getattr(jax.config, "jax_compilation_cache_dir", None) is not None
    ):
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quenchphys"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to is no reason to stop
        return
    if not os.access(folder, os.W_OK):
        return
    # JAX decides at its first compilation whether it has a cache; it may have compiled something else before.
    compilation_cache.reset_cache()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
