"""How a run is spread over devices: replicas side by side, each device with its share and nothing to say to another.

On a CPU every core is made a device, if JAX has not been used yet in the process; set JAX_NUM_CPU_DEVICES, or use JAX
before the first ladder, to decide otherwise.
"""

from __future__ import annotations

import os
from functools import cache, partial
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from quenchphys import transition
from quenchphys.transition import Plan, Rung, State

SPLIT, WHOLE = PartitionSpec("replica"), PartitionSpec()


def use_all_cores() -> None:
    """Make each CPU core a device, where that is still possible and nobody decided otherwise."""
    if "JAX_NUM_CPU_DEVICES" in os.environ or jax.config.jax_num_cpu_devices > 0:
        return
    try:
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    except RuntimeError:
        pass  # JAX is in use already: its devices are what they are


def mesh_for(replicas: int) -> Mesh:
    """As many devices as divide the replicas evenly."""
    devices = jax.devices()
    count = max(n for n in range(1, len(devices) + 1) if replicas % n == 0)
    return Mesh(devices[:count], ("replica",))


@cache
def programs(plan: Plan, mesh: Mesh) -> "Programs":
    return Programs(plan, mesh)


class Programs:
    """The compiled programs of a plan on a mesh; made once, whatever the seed, the couplings or the problem's numbers."""

    def __init__(self, plan: Plan, mesh: Mesh):
        state = State(**{name: WHOLE if name in ("common", "level") else SPLIT for name in State._fields})
        rung = PartitionSpec(None, "replica")

        def spread(function: Any, ins: tuple, outs: Any) -> Any:
            return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False))

        self.draw_prior = spread(
            lambda problem, key: transition.draw_prior(problem, plan, key), (WHOLE, SPLIT), (SPLIT, SPLIT, SPLIT)
        )
        self.start = spread(
            lambda problem, family, key, common, draws, first: transition.start(
                problem, plan, family, key, common, draws, first
            ),
            (WHOLE, WHOLE, SPLIT, WHOLE, SPLIT, WHOLE),
            (state, SPLIT, SPLIT),
        )
        self.warm_up = spread(
            lambda problem, family, state: transition.warm_up(problem, plan, family, state, WARM_UP_ROUNDS),
            (WHOLE, WHOLE, state),
            state,
        )
        self.descend = spread(
            lambda problem, family, rates, state, schedule: transition.descend(
                problem, plan, family, rates, state, schedule
            ),
            (WHOLE, WHOLE, WHOLE, state, WHOLE),
            (state, rung),
        )


WARM_UP_ROUNDS = 40
