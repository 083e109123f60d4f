"""How a run is spread over devices: replicas side by side, each device with its share and nothing to say to another."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
from jax.sharding import Mesh, PartitionSpec

from quenchphys import transition
from quenchphys.caching import keep_compiled_programs
from quenchphys.transition import Plan, State

WARM_UP_ROUNDS = 40

SPLIT, WHOLE = PartitionSpec("replica"), PartitionSpec()


def mesh_for(replicas: int) -> Mesh:
    """As many devices as divide the replicas evenly."""
    devices = jax.devices()
    count = max(n for n in range(1, len(devices) + 1) if replicas % n == 0)
    return Mesh(devices[:count], ("replica",))


@cache
def programs(plan: Plan, mesh: Mesh) -> Programs:
    keep_compiled_programs()
    return Programs(plan, mesh)


class Programs:
    """The compiled programs of a plan on a mesh; made once, whatever the seed or the problem's couplings."""

    def __init__(self, plan: Plan, mesh: Mesh):
        state: Any = State(*(WHOLE if name in ("common", "level") else SPLIT for name in State._fields))  # type: ignore[arg-type]
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
