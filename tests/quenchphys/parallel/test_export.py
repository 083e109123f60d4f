"""The compiled programs lower for accelerators that are not here: single precision, no host callback, no foreign call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lattices
from quenchphys.problem import view
from quenchphys.settings import Settings, default_kernel
from quenchphys.smc.levels import SoftLevels
from quenchphys.smc.loop import contained, orders, plan_for
from quenchphys.smc.programs import programs_for
from quenchphys.smc.step import Thresholds

REPLICAS = 2


@dataclass(frozen=True)
class Rotor:
    """A user's model, with nothing but the three functions: a chain of angles in a field."""

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 12))

    def log_prior(self, x):
        return -0.5 * (x * x).sum()

    def energy(self, x):
        return -jnp.cos(x - jnp.roll(x, 1)).sum() - 0.3 * jnp.cos(x).sum()


def lowered(problem, softness: float, platform: str) -> dict[str, str]:
    """The text of every program of a quench, lowered for a platform."""
    settings = Settings(particles=64, replicas=REPLICAS, kernel=default_kernel(softness))
    plan, mesh = plan_for(settings, int(np.prod(view(problem).shape)))
    plan = replace(plan, replicas_together=None)  # as on an accelerator
    with contained(mesh):
        program, argument = programs_for(plan, mesh), view(problem).as_argument()
        family, thresholds = SoftLevels(np.float32(softness)), Thresholds(np.float32(0.95), np.float32(0.5))
        key = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), REPLICAS))
        common = jax.eval_shape(lambda: jax.random.key(0))
        _, draws, seen = jax.eval_shape(program.draw_prior, argument, key)
        begin = (argument, family, key, common, draws, seen, np.float32(np.nan))
        state, _, _ = jax.eval_shape(program.start, *begin)
        calls = {
            "draw_prior": (program.draw_prior, (argument, key)),
            "start": (program.start, begin),
            "descend": (program.descend, (argument, family, thresholds, state, orders(None, 0, 6))),
        }
        return {
            name: jax.export.export(function, platforms=[platform])(*arguments).mlir_module()
            for name, (function, arguments) in calls.items()
        }


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
@pytest.mark.parametrize("problem", [lattices.phi6(L=40, mu2=2.2838), Rotor()], ids=["phi6 L=40", "a user's model"])
def test_every_program_lowers(problem, platform):
    for name, text in lowered(problem, getattr(problem, "softness", 2.0), platform).items():
        assert "stablehlo" in text, name
        for forbidden in ("f64", "callback", "custom_call"):
            assert forbidden not in text, (name, forbidden)
