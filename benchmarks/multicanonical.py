"""Where does phi^6 coexist, by what an expert would run instead: multicanonical HMC in q = mean phi^2.

    python benchmarks/multicanonical.py --L 16
    python benchmarks/multicanonical.py --L 40 --seconds 2400 --out multicanonical_40.json --plot multicanonical_40.png

Chains sample exp(-S - B(q)).  B makes q flat between the two phases and is constant beyond them, so a chain walks from one
to the other; weights exp(B(q) - (mu2' - mu2) V q / 2) are exact at any mu2'.  mu2* is where half of the weight has q > 1.25.

The bias is learnt from the mean force,  F'(q) = < phi . grad S >_q / (2 q) - (V/2 - 1)/q,  F = -log P(q): first by chains
held at points along q, half of them pulled there from either phase, then by the same chains set free.  It is fixed before
anything is counted.  The mean force of the counted part, integrated, gives a second value of mu2* that knows nothing of how
often q was met.

The field moves on its sites: at L = 40 on a CPU a gradient there takes a quarter of the time of one in the mode basis.
Errors come from a jackknife over chains.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import lattices
from quenchphys.caching import keep_compiled_programs
from quenchphys.noise import normal

Array = jax.Array

REFERENCE = {8: (2.2948, 2e-4), 16: (2.28658, 6e-5), 24: (2.2846, 2e-4)}
CUT = 1.25
BRACKET = (2.2, 2.4)
RETURN = (0.3, 1.8)  # a round trip goes below the first and above the second
SITES_IN_CHUNK = 40_000  # configurations that go through a trajectory together, small enough for the cache
TABLE = (0.0, 2.8, 140)  # q of the first and last node of the bias, and its intervals
HOLD = 1.5  # stiffness of the springs that hold chains at a q, in units of V
INNER_KICK = 0.1931833  # Omelyan, Mryglod and Folk 2003: the fraction that makes the leading error smallest
EFFORT_PER_SITE = 0.03  # trajectories of a round while the bias is learnt
TRAJECTORIES = 200  # of a round while counting
FINE = 560  # bins in q of the mean force and of the printed distribution


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
    neighbours = sum(jnp.roll(x, step, axis) for axis in axes for step in (1, -1))
    free = model.stiffness * (2 * len(axes) * x - neighbours) + model.m0_sq * x
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
    """The bias that makes q flat between its two most likely values and leaves it alone beyond."""
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
    """The bias, from chains pulled to their places and held there, then from the same chains set free."""
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


def round_trips(q: np.ndarray) -> np.ndarray:
    """Of each chain, between q below the first and above the second of RETURN."""
    ends = np.where(q < RETURN[0], -1, np.where(q > RETURN[1], 1, 0))
    return np.array([np.count_nonzero(np.diff(chain[chain != 0])) // 2 for chain in ends.T])


def jackknife(value, parts: int) -> tuple[float, float]:
    """Value and error of a function of which chains are kept, a mask."""
    left_out = np.array([value(keep) for keep in ~np.eye(parts, dtype=bool)])
    return float(value(np.ones(parts, bool))), float(np.sqrt((parts - 1) * left_out.var()))


def by_weights(sampler: Sampler, spline: CubicSpline, q: np.ndarray) -> tuple[float, float]:
    """mu2* and its error, from exact weights of the samples q (trajectories, chains)."""
    mu2, half = float(sampler.model.mu2), sampler.sites / 2
    bias, ordered = spline(q), q > CUT
    bias -= bias.max()

    def sums(trial: float) -> np.ndarray:
        weight = np.exp(bias - (trial - mu2) * half * (q - CUT))
        return np.stack([(weight * ordered).sum(0), (weight * ~ordered).sum(0)])

    def log_odds(weights: np.ndarray) -> float:
        return float(np.log(weights[0].sum() / weights[1].sum()))

    star = brentq(lambda trial: log_odds(sums(trial)), *BRACKET, xtol=1e-7)
    slope = (log_odds(sums(star + 1e-5)) - log_odds(sums(star - 1e-5))) / 2e-5
    weights = sums(star)
    _, error = jackknife(lambda keep: log_odds(weights[:, keep]) / slope, q.shape[1])
    return star, error


def by_force(sampler: Sampler, q: np.ndarray, force: np.ndarray) -> tuple[float, float]:
    """mu2* and its error, from the mean force alone."""
    mu2, half = float(sampler.model.mu2), sampler.sites / 2
    edges = np.linspace(*TABLE[:2], FINE + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    count = np.stack([np.histogram(c, edges)[0] for c in q.T])
    total = np.stack([np.histogram(c, edges, weights=f)[0] for c, f in zip(q.T, force.T, strict=True)])

    def star(keep: np.ndarray) -> float:
        n, t = count[keep].sum(0), total[keep].sum(0)
        met = n > 0
        slope = np.interp(middle, middle[met], t[met] / n[met])
        log_p = (0.5 * slope - np.cumsum(slope)) * (edges[1] - edges[0])

        def odds(trial: float) -> float:
            shape = np.where(met, log_p - (trial - mu2) * half * middle, -np.inf)
            return np.logaddexp.reduce(shape[middle > CUT]) - np.logaddexp.reduce(shape[middle < CUT])

        return brentq(odds, *BRACKET, xtol=1e-7)

    return jackknife(star, q.shape[1])


def summary(sampler: Sampler, spline: CubicSpline, q: np.ndarray, force: np.ndarray) -> dict[str, Any]:
    """Every number of the report, from the counted part."""
    trips = round_trips(q)
    half = len(q) // 2
    parts = {"early": q[:half], "late": q[half:], "from disordered": q[:, ::2], "from ordered": q[:, 1::2]}
    mu2, error = by_weights(sampler, spline, q)
    shape = distribution(sampler, spline, q, mu2)
    # A walk with n round trips knows the log odds of its ends to sqrt(2/n).
    expected = np.sqrt(2 / max(trips.sum(), 1)) / (sampler.sites / 2 * (shape["peaks"][1] - shape["peaks"][0]))
    return {
        "mu2": mu2,
        "mu2_err": error,
        "mu2_by_force": by_force(sampler, q, force),
        "parts": {name: by_weights(sampler, spline, part) for name, part in parts.items()},
        "trajectories": len(q),
        "round_trips": trips.tolist(),
        "error_expected_of_round_trips": float(expected),
        "tau_q": float(len(q) * q.mean(0).var(ddof=1) / q.var()),
        "distribution": shape,
    }


def distribution(sampler: Sampler, spline: CubicSpline, q: np.ndarray, mu2: float) -> dict[str, Any]:
    """log P(q) at mu2, how often a bin was met relative to all, and the barrier."""
    edges = np.linspace(*TABLE[:2], FINE + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    log_weight = spline(q) - (mu2 - float(sampler.model.mu2)) * sampler.sites / 2 * q
    top = log_weight.max()
    count, _ = np.histogram(q, edges)
    weight, _ = np.histogram(q, edges, weights=np.exp(log_weight - top))
    met = count > 0
    log_p = np.log(weight[met] / weight.sum() / (edges[1] - edges[0]))
    x = middle[met]
    peaks = [x[side][np.argmax(log_p[side])] for side in (x < CUT, x > CUT)]
    between = (x > peaks[0]) & (x < peaks[1])
    heights = [log_p[x == peak][0] for peak in peaks]
    return {
        "q": x.tolist(),
        "log_p": log_p.tolist(),
        "met": (count[met] / count[met].mean()).tolist(),
        "peaks": [float(p) for p in peaks],
        "barrier": float(min(heights) - log_p[between].min()),
    }


def show(found: dict[str, Any]) -> None:
    trips = np.array(found["round_trips"])
    print(
        f"{found['seconds']:6.0f} s, {found['cpu_seconds']:6.0f} CPU s, {found['site_gradients']:.3g} site-gradients, "
        f"{found['trajectories']} trajectories: mu2* = {found['mu2']:.5f} +- {found['mu2_err']:.5f}, by force "
        f"{found['mu2_by_force'][0]:.5f} +- {found['mu2_by_force'][1]:.5f}, {trips.sum()} round trips",
        flush=True,
    )


def table(found: dict[str, Any]) -> None:
    trips = np.array(found["round_trips"])
    print(
        f"\nmulticanonical HMC, phi^6 L = {found['L']}, {found['chains']} chains of {found['trajectories']} trajectories"
    )
    rows = {"all": (found["mu2"], found["mu2_err"]), **found["parts"], "by mean force": found["mu2_by_force"]}
    for name, (value, error) in rows.items():
        print(f"    mu2*, {name:<16} {value:.5f} +- {error:.5f}")
    for one, other in (("early", "late"), ("from disordered", "from ordered")):
        (a, a_err), (b, b_err) = found["parts"][one], found["parts"][other]
        print(f"    {one} against {other}: {(a - b) / np.hypot(a_err, b_err):+.2f} standard errors")
    if found["L"] in REFERENCE:
        value, error = REFERENCE[found["L"]]
        z = (found["mu2"] - value) / np.hypot(found["mu2_err"], error)
        print(f"    reference {value} +- {error}: {z:+.2f} standard errors")
    print(f"    error expected of so many round trips {found['error_expected_of_round_trips']:.5f}")
    print(f"    round trips {trips.sum()}, of a chain {trips.min()} to {trips.max()}: {' '.join(map(str, trips))}")
    print(f"    autocorrelation of q {found['tau_q']:.0f} trajectories of {found['gradients']} gradients")
    barrier, peaks = found["distribution"]["barrier"], found["distribution"]["peaks"]
    print(f"    peaks of P(q) at {peaks[0]:.3f} and {peaks[1]:.3f}, barrier {barrier:.1f} nats")
    met = np.interp(np.arange(0.2, 1.9, 0.1), found["distribution"]["q"], found["distribution"]["met"])
    print(f"    visits at q = 0.2, 0.3, ... 1.8 relative to all: {' '.join(f'{m:.2f}' for m in met)}")
    print(
        f"    acceptance {found['acceptance']:.2f}, {found['site_gradients']:.3g} site-gradients in "
        f"{found['seconds']:.0f} s ({found['cpu_seconds']:.0f} CPU s), of which the bias took "
        f"{found['bias_site_gradients']:.3g} in {found['bias_seconds']:.0f} s"
    )


def draw(found: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    shape = found["distribution"]
    left.plot(shape["q"], shape["log_p"])
    left.set(xlabel="q", ylabel="log P(q)", title=f"L = {found['L']}, mu2 = {found['mu2']:.5f}")
    right.plot(shape["q"], shape["met"])
    right.set(xlabel="q", ylabel="visits relative to all", ylim=(0, None))
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--L", type=int, default=16)
    parser.add_argument(
        "--mu2", type=float, default=2.285, help="where the chains run; any value near coexistence will do"
    )
    parser.add_argument("--chains", type=int, default=48)
    parser.add_argument("--gradients", type=int, default=48, help="of a trajectory, on average")
    parser.add_argument("--effort", type=int, help="trajectories of a round while the bias is learnt")
    parser.add_argument("--seconds", type=float, default=120, help="wall time of the counted part")
    parser.add_argument("--error", type=float, default=0.0, help="stop early where this error of mu2* is reached")
    parser.add_argument("--every", type=float, default=20, help="seconds between reports")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("multicanonical.json"))
    parser.add_argument("--plot", type=Path)
    chosen = parser.parse_args()
    keep_compiled_programs()
    wall, cpu = time.perf_counter(), time.process_time()
    sampler = Sampler(chosen.L, chosen.mu2, chosen.chains, chosen.gradients, chosen.seed)
    spline = learn(sampler, chosen.effort or max(20, round(EFFORT_PER_SITE * sampler.sites)))
    learnt = {"bias_seconds": time.perf_counter() - wall, "bias_site_gradients": sampler.spent}
    print(f"bias learnt in {learnt['bias_seconds']:.0f} s, step size {sampler.step:.3f}", flush=True)

    rounds: list[tuple[np.ndarray, np.ndarray, float]] = []
    begun = told = time.perf_counter()
    while True:
        rounds.append(sampler.run(TRAJECTORIES))
        now = time.perf_counter()
        finished = now - begun > chosen.seconds
        if not finished and now - told < chosen.every:
            continue
        told = now
        q, force = (np.concatenate([r[i] for r in rounds]) for i in (0, 1))
        burn_in = len(q) // 10
        found = {
            "L": chosen.L,
            "chains": chosen.chains,
            "gradients": chosen.gradients,
            "seed": chosen.seed,
            "step_size": sampler.step,
            "acceptance": float(np.mean([r[2] for r in rounds])),
            "seconds": now - wall,
            "cpu_seconds": time.process_time() - cpu,
            "site_gradients": sampler.spent,
            **learnt,
            **summary(sampler, spline, q[burn_in:], force[burn_in:]),
        }
        chosen.out.write_text(json.dumps(found, indent=1))
        show(found)
        # Few round trips can agree by chance: both errors must be small.
        if finished or max(found["mu2_err"], found["error_expected_of_round_trips"]) <= chosen.error:
            break
    table(found)
    if chosen.plot:
        draw(found, chosen.plot)


if __name__ == "__main__":
    main()
