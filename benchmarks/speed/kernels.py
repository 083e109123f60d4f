"""Our kernels against blackjax's on the same level: time of one level's mutation, side by side in one process.

    python -m benchmarks.speed.kernels

Ours carry U and grad U apart from the level and take the problem's fused energy and gradient in the basis where the
prior is diagonal; blackjax differentiates the log density of the level as it stands and evaluates it once more on
entering a level.  Numbers are the best of several rounds, in nanoseconds per gradient and coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

import lattices
import quenchphys as qp
from benchmarks import harness
from quenchphys.parallel.random_numbers import Stream
from quenchphys.problem import view
from quenchphys.smc.density import Density, configurations, evaluate, positions, prior_scale
from quenchphys.smc.levels import SoftLevels

PARTICLES, ROUNDS = 400, 7


def log_density(problem, softness, level, y):
    """log of the level's density of one particle, as a user of blackjax would write it."""
    x = configurations(problem, y)
    slack = level - problem.energy(x)
    return -0.5 * jnp.sum(problem.basis.precision * y * y) + softness * jnp.log(slack)


def ours(kernel, transitions, problem, softness, level, step, scale, y, key):
    density = Density(problem, SoftLevels(softness), level)

    def one(point, key):
        return kernel.transition(Stream(key), jax.random.fold_in(key, 1), point, density, step, scale)

    return jax.lax.scan(one, evaluate(problem, y), jax.random.split(key, transitions))[0].position


def theirs(name, leapfrogs, transitions, problem, softness, level, step, scale, y, key):
    target = partial(log_density, problem, softness, level)
    if name == "mala":
        # blackjax's MALA has no metric: sample y/scale instead.
        algorithm = blackjax.mala(lambda z: target(z * scale), 0.5 * step**2)
        start = y / scale
    else:
        algorithm = blackjax.hmc(target, step, scale**2, leapfrogs)
        start = y

    def one(state, key):
        return jax.vmap(algorithm.step)(jax.random.split(key, len(y)), state)[0], None

    state = jax.lax.scan(one, jax.vmap(algorithm.init)(start), jax.random.split(key, transitions))[0]
    return state.position


def waited_for(run, *arguments):
    return jax.block_until_ready(run(*arguments))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args(arguments).rounds
    print("nanoseconds per gradient and coordinate")
    table = harness.Table({"problem": "14s", "kernel": "s", "ours": "8.2f", "blackjax": "8.2f", "ratio": "6.2f"})
    problems = {
        "gaussian(1000)": (qp.targets.gaussian(1000), 2.0),
        "phi6 L=16": (lattices.phi6(L=16, mu2=2.2866), 32.0),
        "phi6 L=40": (lattices.phi6(L=40, mu2=2.2838), 64.0),
    }
    for label, (model, softness) in problems.items():
        problem = view(model)
        x = problem.sample_prior(jax.random.key(0), PARTICLES)
        y = positions(problem, x)
        energy = np.asarray(jax.vmap(problem.energy)(x))
        level = jnp.float32(energy.max() + 3 * energy.std())
        scale = prior_scale(problem, y.shape[-1])
        for name, leapfrogs, transitions in (("mala", 1, 12), ("hmc", 6, 4)):
            kernel = qp.MALA() if name == "mala" else qp.HMC(leapfrogs=leapfrogs)
            step = jnp.float32(0.05)
            level_and_start = (problem, jnp.float32(softness), level, step, scale, y)
            runs = {
                "ours": jax.jit(partial(ours, kernel, transitions)),
                "blackjax": jax.jit(partial(theirs, name, leapfrogs, transitions)),
            }
            key = jax.random.key(0)
            waiting = {which: partial(waited_for, run, *level_and_start, key) for which, run in runs.items()}
            best = harness.fastest(waiting, rounds)
            own, other = (1e9 * best[which] / (y.size * transitions * leapfrogs) for which in ("ours", "blackjax"))
            table.add(label, name, own, other, other / own)


if __name__ == "__main__":
    main()
