"""Compilation for programs that run once: to slower code, in a fraction of the time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax

# Options of the compiler for a processor; other backends have none of them.
QUICKLY: dict[str, Any] = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}


def quickly_compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function, compiled when it is first called, as `jax.jit` would with these options."""

    @cache  # the backend is not known before the first call
    def compiled(backend: str) -> Callable[..., Any]:
        return jax.jit(function, compiler_options=QUICKLY if backend == "cpu" else None, **options)

    def call(*arguments: Any, **named: Any) -> Any:
        return compiled(jax.default_backend())(*arguments, **named)

    return call
