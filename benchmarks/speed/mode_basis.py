"""Gain of the mode basis: the cost of the transforms, and effective samples per second with it and without.

    python -m benchmarks.speed.mode_basis            both tables, about two minutes on two CPU cores
    python -m benchmarks.speed.mode_basis transforms
    python -m benchmarks.speed.mode_basis sampling

Table 1 decides between matrix products and FFT (`lattices.torus.LONGEST_MATRIX_AXIS`).  Table 2 runs the same HMC with
the same tuning at a fixed level of phi^6, once in the modes and once on the sites, in one process; either basis has its own
best number of leapfrogs, so the best are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import lattices
import quenchphys as qp
from benchmarks import harness
from lattices.torus import Torus, periodic
from quenchphys.parallel.random_numbers import Stream
from quenchphys.problem import ProblemView, view
from quenchphys.smc.density import Density, configurations, evaluate, positions, prior_scale
from quenchphys.smc.levels import SoftLevels
from quenchphys.tuning.scale import combine_scale, score_statistics, track

SHAPES = [(16,), (256,), (8, 8), (16, 16), (32, 32), (40, 40), (48, 48), (64, 64), (96, 96), (256, 256), (8, 8, 8)]
SITES_IN_BATCH = 500_000
LEAPFROGS = (3, 6, 12)


def waited_for(function, *arguments):
    return jax.block_until_ready(function(*arguments))


def transforms() -> None:
    print("nanoseconds a site for one round trip, field -> modes -> field")
    table = harness.Table({"shape": "12s", "matrix": "8.2f", "fft": "8.2f", "fft/matrix": ".2f", "chosen": "s"})
    for shape in SHAPES:
        batch = max(1, SITES_IN_BATCH // int(np.prod(shape)))
        x = jax.random.normal(jax.random.key(0), (batch, *shape))
        runs = {}
        for transform in ("matrix", "fft"):
            lattice = Torus(shape, transform)
            # The factor keeps the compiler from merging the two halves.
            there_and_back = jax.jit(lambda x, lattice=lattice: lattice.from_modes(1.01 * lattice.to_modes(x)))
            runs[transform] = partial(waited_for, there_and_back, x)
        matrix, fft = (1e9 * seconds / x.size for seconds in harness.fastest(runs, 5).values())
        table.add(" x ".join(map(str, shape)), matrix, fft, fft / matrix, periodic(shape).transform)


def without_basis(model: lattices.ScalarField) -> ProblemView:
    """The same problem with the sites as coordinates: its prior is the gradient of `log_prior`, as JAX differentiates it."""
    return view(
        SimpleNamespace(
            sample_prior=model.sample_prior,
            log_prior=model.log_prior,
            energy_and_grad=model.energy_and_grad,
            observe=model.observe,
        )
    )


def autocorrelation_time(series: np.ndarray) -> float:
    """Integrated autocorrelation time of chains (time, chain) in transitions; the window is five times itself."""
    centred = series - series.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(series), axis=0)) ** 2
    correlation = np.fft.irfft(spectrum, axis=0)[: len(series)].mean(axis=1) / np.arange(len(series), 0, -1)
    times = 2 * np.cumsum(correlation / correlation[0]) - 1
    window = np.argmax(np.arange(len(times)) > 5 * times)
    return float(max(times[window], 1.0))


def sample_level(
    problem: ProblemView, x, energy: float, softness: float, leapfrogs: int, burn_in=200, transitions=600, seed=0
) -> dict[str, float]:
    """Effective samples of q and U per second and per gradient at one level, tuned as a ladder tunes."""
    kernel = qp.HMC(leapfrogs=leapfrogs)
    density = Density(problem, SoftLevels(jnp.float32(softness)), jnp.float32(energy))
    uniform = jnp.full(len(x), -jnp.log(len(x)))

    def scale_of(point):
        norm, direction, weight = score_statistics(density.score(point), jnp.exp(uniform))
        precision = prior_scale(problem, direction.shape[-1]) ** -2
        return combine_scale(direction / weight, jnp.nanmedian(norm), precision)

    def move(carry, key, adapt):
        point, step_size, scale = carry
        own, shared = jax.random.split(key)
        point, moves = kernel.transition(Stream(own), shared, point, density, step_size, scale)
        if adapt:
            scale = 0.8 * scale + 0.2 * scale_of(point)
            step_size = track(step_size, moves.acceptance.mean(), kernel.target_acceptance)
        seen = jax.vmap(problem.observe)(configurations(problem, point.position))
        return (point, step_size, scale), (seen["q"], point.energy, moves.acceptance.mean())

    @partial(jax.jit, static_argnames=("steps", "adapt"))
    def run(carry, key, steps, adapt):
        return jax.lax.scan(partial(move, adapt=adapt), carry, jax.random.split(key, steps))

    point = evaluate(problem, positions(problem, x))
    start = (point, jnp.float32(kernel.first_step_size(point.position.shape[-1])), scale_of(point))
    tuned, _ = run(start, jax.random.key(seed), burn_in, True)
    key = jax.random.key(seed + 1)
    seconds = harness.fastest({"level": partial(waited_for, run, tuned, key, transitions, False)}, 2)["level"]
    _, (q, u, acceptance) = jax.tree.map(np.asarray, run(tuned, key, transitions, False))
    samples = q.size
    length = float(tuned[1]) * leapfrogs  # of a trajectory, where a Gaussian in its own scale turns once in 2 pi
    result = {"length": length, "acceptance": float(acceptance.mean())}
    result |= {"q mean": float(q.mean()), "U mean": float(u.mean())}
    for name, series in (("q", q), ("U", u)):
        result[f"tau {name}"] = autocorrelation_time(series)
        result[f"{name}/s"] = samples / result[f"tau {name}"] / seconds
        result[f"{name}/gradient"] = 1 / (result[f"tau {name}"] * kernel.gradients())
    return result


def sampling(L: int = 16, mu2: float = 2.2866, chains: int = 100) -> None:
    model = lattices.phi6(L=L, mu2=mu2)
    nu = model.softness
    noise = model.sample_prior(jax.random.key(3), chains)
    mean_field = model.mean_field
    levels = {
        "disordered": (0.3 * noise, mean_field.disordered.energy + nu + 1),
        "ordered": (mean_field.ordered.abs_m + 0.3 * noise, mean_field.ordered.energy + nu + 1),
    }
    print(f"phi^6 L={L} mu2={mu2}, level of softness {nu:g}, {chains} chains: effective samples of q and U")
    columns = ("acceptance", "length", "tau q", "tau U", "q/s", "U/s")
    header = " ".join(f"{c:>10}" for c in columns)
    print(f"{'level':>12} {'basis':>6} {'leapfrogs':>9} {header} {'<q>':>8} {'<U>':>9}")
    for name, (x, energy) in levels.items():
        best = {}
        for basis, problem in (("modes", view(model)), ("sites", without_basis(model))):
            runs = []
            for leapfrogs in LEAPFROGS:
                runs.append(sample_level(problem, x, energy, nu, leapfrogs))
                numbers = " ".join(f"{runs[-1][c]:10.3g}" for c in columns)
                means = f"{runs[-1]['q mean']:8.4f} {runs[-1]['U mean']:9.2f}"
                print(f"{name:>12} {basis:>6} {leapfrogs:9d} {numbers} {means}", flush=True)
            best[basis] = {k: max(r[k] for r in runs) for k in ("q/s", "U/s", "q/gradient", "U/gradient")}
        for what in ("q", "U"):
            by_time, by_work = (best["modes"][k] / best["sites"][k] for k in (f"{what}/s", f"{what}/gradient"))
            print(f"{name:>12} modes/sites, best of each, {what}: {by_time:.2f} per second, {by_work:.2f} per gradient")


TABLES = {"transforms": transforms, "sampling": sampling}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("tables", nargs="*", help=f"any of {', '.join(TABLES)}; default: both")
    for table in parser.parse_args(arguments).tables or TABLES:
        TABLES[table]()


if __name__ == "__main__":
    main()
