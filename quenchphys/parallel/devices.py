"""How a run is spread over devices: replicas side by side without a word between them, then the particles of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from quenchphys.parallel.sharding import AXIS


def use_all_cores() -> None:
    """Make a JAX device of each processor core, as long as JAX has not started and nobody chose their number.

    One thread with a chunk of particles in its cache is faster than all threads sharing every operation
    (`benchmarks/speed/throughput.py`).  Cores beyond 16 are left to the threads of a device.
    """
    chosen = getattr(jax.config, "jax_num_cpu_devices", -1) > 0 or "host_platform_device_count" in os.environ.get(
        "XLA_FLAGS", ""
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if chosen or cores == 1:
        return
    try:
        jax.config.update("jax_num_cpu_devices", min(cores, 16))
    except RuntimeError:  # JAX has started with the devices it has
        return


def mesh_for(sets: int, tiles: int, devices: int | Sequence[Any] | None = None) -> Mesh:
    """As many devices as can share sets of replicas and tiles of particles evenly.

    Replicas are parted before particles, which have to communicate.  Several processes take equal parts; work too small to
    give each of them some is done by every process for itself, which gives all of them the same numbers.
    """
    available = _available(devices)
    owners = sorted({device.process_index for device in available})
    shapes = [
        (r, p)
        for r in range(1, min(sets, len(available)) + 1)
        for p in range(1, min(tiles, len(available) // r) + 1)
        if sets % r == 0 and tiles % p == 0
    ]
    if len(owners) > 1:
        shapes = [(r, p) for r, p in shapes if r * p % len(owners) == 0]
        if not shapes:
            return mesh_for(sets, tiles, jax.local_devices())
    r, p = max(shapes, key=lambda shape: (shape[0] * shape[1], shape[0]))
    each = r * p // len(owners)
    chosen = [device for owner in owners for device in [d for d in available if d.process_index == owner][:each]]
    return Mesh(np.array(chosen).reshape(r, p), ("replica", AXIS))


def _available(devices: int | Sequence[Any] | None) -> list[Any]:
    present = jax.devices()
    if devices is None:
        return present
    if isinstance(devices, int | np.integer) and not isinstance(devices, bool):
        if not 1 <= devices <= len(present):
            raise ValueError(f"devices must be a number from 1 to {len(present)}, those present; {devices} was given")
        return present[:devices]
    chosen = list(devices) if isinstance(devices, Sequence) and not isinstance(devices, str) else []
    if not chosen or any(device not in present for device in chosen) or len(set(chosen)) < len(chosen):
        raise ValueError(f"devices must be a number or a list of different devices of {present}; {devices!r} was given")
    return chosen
