"""The settings of JAX that the engine computes with, whatever they are elsewhere in the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import numpy as np


@contextmanager
def own_settings() -> Iterator[None]:
    """Single precision, the usual promotion of types, and transfers between host and device allowed.

    NetKet, for one, sets double precision for the whole process when it is imported.
    """
    with jax.numpy_dtype_promotion("standard"), jax.transfer_guard("allow"), jax.enable_x64(False):
        if isinstance(jax.device_put(np.float32(0)), jax.core.Tracer):  # nothing is compiled for it, as for jnp.zeros
            raise RuntimeError(
                "A sampler decides on the host when it ends, so it cannot run inside jit, scan or any other function that "
                "JAX traces; call it outside of them."
            )
        yield
