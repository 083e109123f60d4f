"""The compiled programs of a ladder: prior draws, the first level, a block of levels."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
from jax.sharding import Mesh, PartitionSpec

from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.sharding import AXIS
from quenchphys.smc import step
from quenchphys.smc.density import configurations
from quenchphys.smc.plan import Plan, Work
from quenchphys.smc.step import Rung, State

WHOLE, REPLICAS, PARTICLES = PartitionSpec(), PartitionSpec("replica"), PartitionSpec("replica", AXIS)


@cache
def programs_for(plan: Plan, mesh: Mesh) -> Programs:
    """The programs of a plan on a mesh, made once in a process."""
    keep_compiled_programs()
    return Programs(plan, mesh)


class Programs:
    """The compiled programs of a plan on a mesh: the same for every seed and every value of the problem's couplings."""

    def __init__(self, plan: Plan, mesh: Mesh):
        state: Any = dict.fromkeys(State._fields, REPLICAS) | {"common": WHOLE, "level": WHOLE}
        state |= {"point": PARTICLES, "seen": PARTICLES}
        state = State(**state)
        rung: Any = dict.fromkeys(Rung._fields, PartitionSpec(None, "replica"))
        rung = Rung(**(rung | dict.fromkeys(("energy", "observables"), PartitionSpec(None, "replica", AXIS))))

        def compiled(function: Any, ins: tuple, outs: Any, options: dict[str, bool] | None = None) -> Any:
            on_mesh = jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)
            return jax.jit(on_mesh, compiler_options=options)

        # Programs that run once are compiled to slower code, which takes a third less time to compile.
        once = {"xla_cpu_use_fusion_emitters": False} if mesh.devices.flat[0].platform == "cpu" else None

        self.draw_prior = compiled(
            lambda problem, key: step.draw_prior(problem, plan, key),
            (WHOLE, REPLICAS),
            (PARTICLES, PARTICLES, PARTICLES),
            once,
        )
        self.pick_draws = compiled(
            lambda problem, position, which: configurations(
                problem, jax.vmap(lambda here: plan.sharding.pick(here, which))(position)
            ),
            (WHOLE, PARTICLES, WHOLE),
            REPLICAS,
            once,
        )
        self.start = compiled(
            lambda problem, family, key, common, draws, seen, top: step.start(
                Work(problem, plan, family), key, common, draws, seen, top
            ),
            (WHOLE, WHOLE, REPLICAS, WHOLE, PARTICLES, PARTICLES, WHOLE),
            (state, REPLICAS, REPLICAS),
            once,
        )
        self.descend = compiled(
            lambda problem, family, thresholds, state, orders: step.descend(
                Work(problem, plan, family), thresholds, state, orders
            ),
            (WHOLE, WHOLE, WHOLE, state, WHOLE),
            (state, rung),
        )
