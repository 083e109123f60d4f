"""Profile of a level: where its time goes, and how far that is from the limits of the machine.

    python -m benchmarks.speed.level_profile

phi^6 at L = 40, on one core.  First the parts of a gradient, each compiled for itself on the arrays of one tile and timed in
turn; then a whole level, of which what does not grow with the number of trajectories is everything between two mutations
(choosing the level, branching, resampling, copying, observables, records).  The limits are a large matrix product and a
long sum of two vectors on the same core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import lattices
import quenchphys as qp
from benchmarks import harness
from quenchphys.parallel.random_numbers import Stream, fold, normal
from quenchphys.parallel.sharding import tile_size
from quenchphys.problem import view
from quenchphys.smc.density import Density, evaluate, positions, prior_scale
from quenchphys.smc.levels import SoftLevels

L, PARTICLES, SOFTNESS, LEAPFROGS = 40, 400, 311.0, 6
REPEAT, ROUNDS = 40, 7


def repeated(function: Callable, *arguments: Any) -> Callable[[], Any]:
    """Many calls in one compiled loop that the compiler cannot shorten."""

    @jax.jit
    def many(x, *rest):
        return jax.lax.fori_loop(0, REPEAT, lambda i, x: jax.lax.optimization_barrier(function(x, *rest)), x)

    return lambda: jax.block_until_ready(many(*arguments))


def seconds_of(parts: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Processor time of one call of each part, the shortest of several rounds."""
    return {name: best / REPEAT for name, best in harness.fastest(parts, ROUNDS, time.process_time).items()}


def gradient_parts(model: Any) -> tuple[dict[str, float], int]:
    """Nanoseconds per site and gradient of what a trajectory consists of."""
    tile = tile_size(PARTICLES, L * L)
    x = model.sample_prior(jax.random.key(0), tile)
    problem = view(model)
    y = positions(problem, x)
    density = Density(problem, SoftLevels(jnp.float32(SOFTNESS)), jnp.float32(600.0))
    kernel, scale = qp.HMC(trajectories=1, leapfrogs=LEAPFROGS), prior_scale(problem, y.shape[-1])

    def trajectory(point, key):
        return kernel.transition(Stream(key), fold(key, 1), point, density, jnp.float32(0.05), scale)[0]

    key = jax.random.key(1)
    seconds = seconds_of(
        {
            "one transform": repeated(lambda y: model.basis.to_modes(model.basis.from_modes(y)), y),
            "energy and its gradient on the sites": repeated(lambda x: model.energy_and_grad(x)[1], x),
            "random numbers of a trajectory": repeated(lambda z: normal(fold(key, 2), z.shape) + 0 * z, y),
            "a whole trajectory": repeated(trajectory, evaluate(problem, y), key),
        }
    )
    per = {name: 1e9 * value / y.size for name, value in seconds.items()}
    whole = per.pop("a whole trajectory") / LEAPFROGS
    parts = {
        "transforms to the sites and back": per["one transform"],
        "energy and its gradient on the sites": per["energy and its gradient on the sites"],
        "random numbers": per["random numbers of a trajectory"] / LEAPFROGS,
    }
    return parts | {"leapfrog, Metropolis and the rest": whole - sum(parts.values()), "whole": whole}, tile


def level_parts(model: Any) -> tuple[float, float]:
    """Milliseconds of processor of a level of 2 x 400 particles: per trajectory, and all that is not mutation."""
    counts, spent = (1, 5), {}

    def ladder(trajectories: int, levels: int) -> float:
        timer = harness.Timer()
        qp.quench(
            model,
            particles=PARTICLES,
            replicas=2,
            softness=SOFTNESS,
            kernel=qp.HMC(trajectories=trajectories, leapfrogs=LEAPFROGS),
            stop=qp.LevelLimit(levels),
            progress=False,
        )
        return timer.processor

    for count in counts:
        ladder(count, 16)
        spent[count] = min((ladder(count, 48) - ladder(count, 16)) / 32 for _ in range(2))
    each = (spent[5] - spent[1]) / 4
    return 1e3 * each, 1e3 * (spent[1] - each)


def limits() -> tuple[float, float]:
    """Gflop/s of a matrix product, and GB/s of a long sum of two vectors."""
    a, v = jnp.ones((768, 768)) / 768, jnp.ones(1 << 25)
    seconds = seconds_of({"product": repeated(lambda x: x @ a, a), "sum": repeated(lambda x: x + 1.0, v)})
    return 2e-9 * 768**3 / seconds["product"], 2e-9 * v.nbytes / seconds["sum"]


def main(arguments: Sequence[str] | None = None) -> None:
    harness.parser(__doc__).parse_args(arguments)
    harness.use_one_core()
    model = lattices.phi6(L=L, mu2=2.2838)
    parts, tile = gradient_parts(model)
    print(f"one gradient, tile of {tile} particles of {L} x {L} sites, nanoseconds of one core per site")
    for name, value in parts.items():
        print(f"    {name:40s} {value:6.2f}   {100 * value / parts['whole']:4.0f}%")
    flops, bandwidth = limits()
    used = 2 * 2 * 2 * L / parts["transforms to the sites and back"]
    print(f"transforms run at {used:.0f} Gflop/s; a large matrix product at {flops:.0f} Gflop/s")
    # Position, momentum and gradient, read and written once in each gradient.
    print(f"position, momentum and force from memory would take {6 * 4 / bandwidth:.2f} ns ({bandwidth:.1f} GB/s)")
    each, rest = level_parts(model)
    print(f"a level of 2 x {PARTICLES} particles: {each:.0f} ms for every trajectory, {rest:.0f} ms for all else")
    found = {"ns": parts, "gflops": [used, flops], "gbytes": bandwidth, "level_ms": [each, rest], "tile": tile}
    harness.save("level_profile", found)


if __name__ == "__main__":
    main()
