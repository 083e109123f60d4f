"""The devices of a run: replicas are distributed first, because they do not communicate, then the particles of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from quenchphys.parallel.sharding import AXIS


def use_all_cores() -> None:
    """Make each processor core a JAX device, unless JAX has started or the user chose the number of devices.

    One thread with a tile of particles in its cache is faster than all threads sharing every operation
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
    """A mesh of as many devices as can share sets of replicas and tiles of particles evenly.

    Parameters
    ----------
    sets
        Number of sets of replicas, which do not communicate and are distributed first.
    tiles
        Number of tiles of particles of each replica.
    devices
        How many of JAX's devices to use, or a list of them.  Default: all.

    Returns
    -------
    Mesh
        With the axes "replica" and "particle".  Several processes take equal parts; a run too small for that is done by
        every process for itself, which gives all of them the same numbers.
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
    per_process = r * p // len(owners)
    chosen = [d for owner in owners for d in [d for d in available if d.process_index == owner][:per_process]]
    return Mesh(np.array(chosen).reshape(r, p), ("replica", AXIS))


def _available(devices: int | Sequence[Any] | None) -> list[Any]:
    present = jax.devices()
    if devices is None:
        return present
    if isinstance(devices, int | np.integer) and not isinstance(devices, bool):
        if not 1 <= devices <= len(present):
            raise ValueError(
                f"devices must be a number from 1 to {len(present)}, all that JAX has; {devices} was given"
            )
        return present[:devices]
    chosen = list(devices) if isinstance(devices, Sequence) and not isinstance(devices, str) else []
    if not chosen or any(device not in present for device in chosen) or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"devices must be a number or a list of different devices out of {present}; {devices!r} was given"
        )
    return chosen
