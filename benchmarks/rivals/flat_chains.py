"""HMC chains in a bias that makes P(q), q = mean phi^2, flat between two phases, and how that bias is learnt.

The mean force  F'(q) = < phi . grad S >_q / (2 q) - (V/2 - 1)/q,  F = -log P(q), is measured first by chains held at points
along q, half of them pulled there from either phase, then by the same chains without constraint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline

import lattices
from quenchphys.parallel.random_numbers import normal

Array = jax.Array

CUT = 1.25
SITES_IN_CHUNK = 40_000  # configurations that go through a trajectory together, small enough for the cache
TABLE = (0.0, 2.8, 140)  # q of the first and last node of the bias, and its intervals
HOLD = 1.5  # stiffness of the springs that hold chains at a q, in units of V
INNER_KICK = 0.1931833  # Omelyan, Mryglod and Folk 2003: the fraction that makes the leading error smallest


@dataclass(frozen=True)
class Bias:
    """B(q), a cubic spline, and a spring to `centre` for chains that are held."""

    coefficients: Any
    centre: Any
    spring: Any

    def __call__(self, q: Array) -> tuple[Array, Array]:
        low, high, intervals = TABLE
        place = (q - low) * (intervals / (high - low))
        interval = jnp.clip(jnp.floor(place), 0, intervals - 1)
        u = (place - interval)[:, None]
        a, b, c, d = jnp.moveaxis(self.coefficients[interval.astype(int)], -1, 0)[..., None]
        away = q - self.centre
        value = (((a * u + b) * u + c) * u + d)[:, 0] + 0.5 * self.spring * away**2
        slope = ((3 * a * u + 2 * b) * u + c)[:, 0] * (intervals / (high - low)) + self.spring * away
        return value, slope


jax.tree_util.register_dataclass(Bias, data_fields=["coefficients", "centre", "spring"], meta_fields=[])


@dataclass(frozen=True)
class State:
    """Chains, with what is known where they are."""

    x: Any
    force: Any
    action: Any
    q: Any
    virial: Any
    """phi . grad S, without the bias"""


jax.tree_util.register_dataclass(State, data_fields=["x", "force", "action", "q", "virial"], meta_fields=[])


def evaluate(model, bias: Bias, x: Array) -> State:
    axes = tuple(range(1, x.ndim))
    sites = model.lattice.sites
    energy, gradient = model.energy_and_grad(x)
    free = model.stiffness * model.lattice.laplacian(x) + model.m0_sq * x
    q = (x * x).mean(axes)
    value, slope = bias(q)
    action = energy + 0.5 * (x * free).sum(axes) + value
    virial = (x * (gradient + free)).sum(axes)
    pull = (2 / sites * slope).reshape(-1, *(1,) * len(axes))
    return State(x, -(gradient + free) - pull * x, action, q, virial)


def trajectory(model, bias: Bias, state: State, key: Array, step: Array, gradients: int) -> tuple[State, Array]:
    """One trajectory of `gradients` gradients on average, two in each step of the minimum norm integrator."""
    momentum_key, accept_key, length_key = jax.random.split(key, 3)
    x = state.x
    axes = tuple(range(1, x.ndim))
    start = normal(momentum_key, (x.shape[0], model.lattice.sites)).reshape(x.shape)
    shortest = (gradients // 2 + 1) // 2
    length = jax.random.randint(length_key, (), shortest, gradients - shortest + 1)

    def force(x):
        return evaluate(model, bias, x).force

    def leap(_, carry):
        x, p = carry
        x = x + 0.5 * step * p
        p = p + (1 - 2 * INNER_KICK) * step * force(x)
        x = x + 0.5 * step * p
        return x, p + 2 * INNER_KICK * step * force(x)

    x, p = jax.lax.fori_loop(1, length, leap, (x, start + INNER_KICK * step * state.force))
    x = x + 0.5 * step * p
    p = p + (1 - 2 * INNER_KICK) * step * force(x)
    end = evaluate(model, bias, x + 0.5 * step * p)
    p = p + INNER_KICK * step * end.force
    change = state.action - end.action + 0.5 * ((start - p) * (start + p)).sum(axes)
    accepted = jnp.log(jax.random.uniform(accept_key, change.shape)) < change

    def choose(new, old):
        return jnp.where(accepted.reshape(-1, *(1,) * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, end, state), accepted


@partial(jax.jit, static_argnames=("trajectories", "gradients", "chunks"))
def advance(model, bias: Bias, x: Array, key: Array, step: Array, trajectories: int, gradients: int, chunks: int):
    """Chains x after so many trajectories; q and the virial after each, (trajectories, chains), and the acceptance."""

    def one_chunk(arguments):
        x, centre, key = arguments
        here = replace(bias, centre=centre)

        def one(state, key):
            state, accepted = trajectory(model, here, state, key, step, gradients)
            return state, (state.q, state.virial, accepted.mean())

        state, recorded = jax.lax.scan(one, evaluate(model, here, x), jax.random.split(key, trajectories))
        return state.x, recorded

    split = x.reshape(chunks, -1, *x.shape[1:]), bias.centre.reshape(chunks, -1), jax.random.split(key, chunks)
    x_new, (q, virial, accepted) = jax.lax.map(one_chunk, split)
    rows = [jnp.moveaxis(a, 0, 1).reshape(trajectories, -1) for a in (q, virial)]
    return x_new.reshape(x.shape), *rows, accepted.mean()


class Sampler:
    """The chains, their bias and their clocks."""

    def __init__(self, L: int, mu2: float, chains: int, gradients: int, seed: int) -> None:
        self.model = lattices.phi6(L=L, mu2=mu2)
        self.sites = self.model.lattice.sites
        self.gradients = gradients
        per_chunk = max(1, SITES_IN_CHUNK // self.sites)
        self.chunks = min(n for n in range(1, chains + 1) if chains % n == 0 and chains // n <= per_chunk)
        self.key = jax.random.key(seed)
        self.step = 1.3 / self.sites**0.25
        self.spent = 0
        mean_field = self.model.mean_field
        self.begin = np.where(np.arange(chains) % 2, mean_field.ordered.q, mean_field.disordered.q)
        noise = 0.5 * self.model.sample_prior(self._next_key(), chains)
        ordered = (np.arange(chains) % 2)[:, None, None]
        self.x = jnp.asarray(ordered * mean_field.ordered.abs_m + noise, jnp.float32)
        self.bias = Bias(jnp.zeros((TABLE[2], 4), jnp.float32), jnp.asarray(self.begin, jnp.float32), np.float32(0))

    def run(self, trajectories: int, tune: bool = False) -> tuple[np.ndarray, np.ndarray, float]:
        """q and the mean force after each trajectory, (trajectories, chains), and the acceptance."""
        self.x, q, virial, accepted = advance(
            self.model,
            self.bias,
            self.x,
            self._next_key(),
            np.float32(self.step),
            trajectories,
            self.gradients,
            self.chunks,
        )
        self.spent += trajectories * len(self.begin) * self.gradients * self.sites
        if tune:
            self.step *= np.exp(0.5 * (float(accepted) - 0.8))
        q64 = np.asarray(q, float)
        return q64, np.asarray(virial, float) / (2 * q64) - (self.sites / 2 - 1) / q64, float(accepted)

    def hold(self, centre: np.ndarray) -> None:
        self.bias = replace(self.bias, centre=jnp.asarray(centre, jnp.float32), spring=np.float32(HOLD * self.sites))

    def free(self, spline: CubicSpline) -> None:
        width = (TABLE[1] - TABLE[0]) / TABLE[2]
        coefficients = spline.c.T * width ** np.arange(3, -1, -1)
        self.bias = Bias(jnp.asarray(coefficients, jnp.float32), jnp.zeros(len(self.begin)), np.float32(0))

    def _next_key(self) -> jax.Array:
        self.key, key = jax.random.split(self.key)
        return key


def flattening(samples: list[tuple[np.ndarray, np.ndarray]]) -> CubicSpline:
    """The bias that makes P(q) flat between its two peaks and is constant beyond them."""
    nodes = np.linspace(*TABLE[:2], TABLE[2] + 1)
    q, force = (np.concatenate([s[i].ravel() for s in samples]) for i in (0, 1))
    # The mean force is the slope between two nodes.
    count, _ = np.histogram(q, nodes)
    total, _ = np.histogram(q, nodes, weights=force)
    middle = 0.5 * (nodes[1:] + nodes[:-1])
    met = count >= max(4, 0.02 * count[count > 0].mean())
    slope = np.interp(middle, middle[met], total[met] / count[met])
    potential = np.append(0, np.cumsum(slope * np.diff(nodes)))
    inside = np.flatnonzero(met)
    low, high = inside[0], inside[-1] + 1
    cut = np.searchsorted(nodes, CUT)
    bottoms = low + np.argmin(potential[low:cut]), cut + np.argmin(potential[cut : high + 1])
    return CubicSpline(nodes, -potential[np.clip(np.arange(len(nodes)), *bottoms)], bc_type="clamped")


def learn(sampler: Sampler, effort: int) -> CubicSpline:
    """The bias, from chains pulled to points along q and held there, then from the same chains without constraint."""
    chains = len(sampler.begin)
    goal = np.linspace(0.6 * sampler.begin.min(), 1.05 * sampler.begin.max(), chains)
    for part in np.linspace(0, 1, 40):
        sampler.hold(sampler.begin + part * (goal - sampler.begin))
        sampler.run(effort, tune=True)
    samples = [sampler.run(effort, tune=True)[:2] for _ in range(20)]
    spline = flattening(samples)
    rounds = 60
    for i in range(rounds):
        sampler.free(spline)
        samples.append(sampler.run(effort, tune=i < rounds // 2)[:2])
        spline = flattening(samples[len(samples) // 2 :])
    sampler.free(spline)
    return spline
