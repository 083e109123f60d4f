"""Coexistence of phi^6 by parallel tempering with HMC: what an expert might try first.

    python -m benchmarks.rivals.parallel_tempering --L 16 --seconds 120

Chains at betas between the prior (0) and a little beyond the model itself (1) exchange configurations with their
neighbours after every trajectory; the betas are placed so that a short run finds every exchange equally likely.  At
beta = 1 the share of the ordered phase gives mu2*, by reweighting; neighbours give ratios of Z, and so log Z.  Half of the
chains start ordered.  Errors come from independent sets of chains.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

import lattices
from benchmarks import harness
from quenchphys.kernels import HMC
from quenchphys.parallel.compile_cache import keep_compiled_programs
from quenchphys.parallel.random_numbers import Stream, split
from quenchphys.problem import ProblemView, view
from quenchphys.smc.density import Density, Point, configurations, evaluate, positions, prior_scale
from quenchphys.smc.levels import Temperatures

CUT = 1.25
HOTTEST, COLDEST = 0.0, 1.1
ROUND = 100  # sweeps in one device call
KERNEL = HMC(leapfrogs=6)


@partial(jax.jit, static_argnames="sweeps")
def advance(
    model: ProblemView, betas: jax.Array, point: Point, step: jax.Array, key: jax.Array, sweeps: int
) -> tuple[Point, tuple[jax.Array, ...]]:
    """Chains (set, beta) after so many sweeps; U and q after each, acceptances of moves and of exchanges."""
    scale = prior_scale(model, point.position.shape[-1])
    sets, rungs = point.energy.shape

    def move(point, key):
        own, shared = split(key)

        def at(beta, point, step, key):
            return KERNEL.transition(
                Stream(key), shared, point, Density(model, Temperatures(jnp.float32(COLDEST)), beta), step, scale
            )

        return jax.vmap(at, in_axes=(0, 1, 0, 0), out_axes=1)(betas, point, step, split(own, rungs))

    def sweep(carry, key):
        point, parity = carry
        move_key, swap_key = split(key)
        point, moves = move(point, move_key)
        # Neighbours (0,1), (2,3), ... or (1,2), (3,4), ...: accepted with min(1, exp((b - b') (U - U'))).
        gain = (betas[1:] - betas[:-1]) * (point.energy[:, 1:] - point.energy[:, :-1])
        mine = jnp.arange(rungs - 1) % 2 == parity
        swap = mine & (jnp.log(jax.random.uniform(swap_key, gain.shape)) < gain)
        place = jnp.broadcast_to(jnp.arange(rungs), (sets, rungs))
        place = place.at[:, :-1].add(swap).at[:, 1:].add(-swap.astype(int))
        point = jax.tree.map(lambda a: jax.vmap(lambda row, to: row[to])(a, place), point)
        x = configurations(model, point.position)
        q = (x * x).mean(axis=(-2, -1))
        exchanged = jnp.where(mine, jnp.minimum(1.0, jnp.exp(gain)).mean(0), jnp.nan)
        return (point, 1 - parity), (point.energy, q, moves.acceptance.mean(0), exchanged)

    (point, _), seen = jax.lax.scan(sweep, (point, jnp.int32(0)), split(key, sweeps))
    return point, seen


class Chains:
    """Sets of chains, one at each beta, with their step sizes."""

    def __init__(self, L: int, mu2: float, rungs: int, sets: int, seed: int) -> None:
        model = lattices.phi6(L=L, mu2=mu2)
        self.model = view(model)
        self.betas = np.linspace(HOTTEST, COLDEST, rungs)
        self.key = jax.random.key(seed)
        x = model.sample_prior(self._next(), sets * rungs).reshape(sets, rungs, L, L)
        ordered = (np.arange(rungs) % 2).astype(np.float32)[:, None, None] * model.mean_field.ordered.abs_m
        self.point = evaluate(self.model, positions(self.model, 0.3 * x + ordered))
        self.step = np.full(rungs, 1.5 / np.sqrt(L))
        self.spent = 0

    def run(self, tune: bool = False) -> tuple[np.ndarray, ...]:
        arguments = jnp.asarray(self.betas, jnp.float32), self.point, jnp.asarray(self.step, jnp.float32)
        self.point, seen = advance(self.model, *arguments, self._next(), ROUND)
        energy, q, accepted, exchanged = (np.asarray(a, float) for a in seen)
        self.spent += int(ROUND * self.point.position.size * KERNEL.gradients())
        if tune:
            self.step *= np.exp(accepted.mean(0) - KERNEL.target_acceptance)
        return energy, q, accepted, np.nanmean(exchanged, axis=0)

    def place(self, exchanged: np.ndarray) -> None:
        """Betas at equal steps of the length along which exchanges are refused."""
        length = np.append(0, np.cumsum(np.sqrt(-np.log(np.clip(exchanged, 0.01, 0.99)))))
        even = np.linspace(0, length[-1], len(length))
        self.betas = np.interp(even, length, self.betas)
        nearest = np.argmin(abs(self.betas - 1))
        self.betas[nearest] = 1.0

    def _next(self) -> jax.Array:
        self.key, key = split(self.key)
        return key


def coexistence(q: np.ndarray, mu2: float, sites: int) -> float:
    """mu2 at which half of the reweighted samples are ordered; NaN if one phase was not met."""
    ordered = q > CUT
    if ordered.all() or not ordered.any():
        return np.nan

    def odds(trial: float) -> float:
        log_weight = -(trial - mu2) * sites / 2 * q
        return np.logaddexp.reduce(log_weight[ordered]) - np.logaddexp.reduce(log_weight[~ordered])

    return brentq(odds, mu2 - 0.1, mu2 + 0.1)


def steps(energy: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """log Z(b')/Z(b) of neighbours, (set, step), each by way of the temperature between them:

    Z(b')/Z(b) = <exp(-d U/2)>_b / <exp(d U/2)>_b',  d = b' - b.
    """
    half = 0.5 * np.diff(betas)
    there = np.logaddexp.reduce(-half * energy[:, :, :-1], axis=0)
    return there - np.logaddexp.reduce(half * energy[:, :, 1:], axis=0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--L", type=int, default=16)
    parser.add_argument("--mu2", type=float, default=2.2866)
    parser.add_argument("--rungs", type=int, help="number of betas; default 2 L")
    parser.add_argument("--sets", type=int, default=8, help="independent sets of chains")
    parser.add_argument("--seconds", type=float, default=120, help="wall time of the counted part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/parallel_tempering.json"))
    chosen = parser.parse_args(arguments)
    keep_compiled_programs()
    timer = harness.Timer()
    chains = Chains(chosen.L, chosen.mu2, chosen.rungs or 2 * chosen.L, chosen.sets, chosen.seed)
    for number in range(20):
        *_, exchanged = chains.run(tune=True)
        if number % 4 == 3 and number < 16:
            chains.place(exchanged)
    rounds, begun = [], timer.wall
    while timer.wall - begun < chosen.seconds:
        rounds.append(chains.run())
    energy, q = (np.concatenate([r[i] for r in rounds[len(rounds) // 10 :]]) for i in (0, 1))
    exchanged = np.mean([r[3] for r in rounds], axis=0)
    cold, sites = int(np.argmin(abs(chains.betas - 1))), chosen.L**2
    stars = np.array([coexistence(q[:, s, cold], chosen.mu2, sites) for s in range(chosen.sets)])
    phase = q[:, :, cold] > CUT
    log_z = steps(energy[:, :, : cold + 1], chains.betas[: cold + 1]).sum(-1)
    found = {
        "L": chosen.L,
        "mu2": float(np.nanmean(stars)) if np.isfinite(stars).any() else None,
        "mu2_err": float(np.nanstd(stars, ddof=1) / np.sqrt(chosen.sets)) if np.isfinite(stars).sum() > 1 else None,
        "sets_with_both_phases": int(np.isfinite(stars).sum()),
        "log_z": float(log_z.mean()),
        "log_z_err": float(log_z.std(ddof=1) / np.sqrt(chosen.sets)),
        "crossings": int(np.count_nonzero(np.diff(phase, axis=0))),
        "smallest_exchange": float(exchanged.min()),
        "sweeps": len(q),
        "site_gradients": chains.spent,
        **timer.costs(),
    }
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(found, indent=1))
    for name, value in found.items():
        print(f"{name:24s} {value:.6g}" if isinstance(value, float) else f"{name:24s} {value}")


if __name__ == "__main__":
    main()
