"""Errors of the log odds of two phases after few crossings, from random walks on a line whose odds are known.

    python -m benchmarks.accuracy.few_crossings [--repeats 400]          about a minute on one core

Groups of chains step at random on a line of sites, with one phase at either end, until they have crossed so often on average
(and each group at least a quarter of that), as the multicanonical chains of `workflows.coexistence` do; the first fifth is
burn-in.  The odds come from all groups together, their error from a jackknife over the groups.  The table has the mean of
z = (log odds - exact)/error, its standard deviation, which should be 1, and the error itself, for a weight that is

    right              and chains that start from its own distribution
    wrong by 0.5       nats from end to end, as after an improvement from few crossings; chains start as if it was right
    right, late        but chains start from the distribution of a weight that was wrong by one nat
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks import harness

SITES, GROUPS, CHAINS = 48, 16, 8
PEAK, WIDTH = 6.0, 2.0  # of the phase at the left; the other one is its mirror image
ARRIVED = 9  # a chain this many sites from an end, or fewer, is in the phase there
STEPS = 100  # between two checks of the number of crossings
BURN_IN = 0.2  # share of a run that is not counted

Array = np.ndarray


def line(tilt: float) -> Array:
    """Stationary distribution over the sites, with a weight that is wrong by `tilt` nats from end to end."""
    visited = np.exp(tilt * np.linspace(-0.5, 0.5, SITES))
    return visited / visited.sum()


def walk(visited: Array, begun: Array, enough: float, repeats: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Log odds of the two phases minus their exact value, and the stated errors, of many independent runs."""
    site = np.arange(SITES)
    left = np.exp(-0.5 * ((site - PEAK) / WIDTH) ** 2)
    weights = np.stack([left, left[::-1]]) / visited
    up, down = np.append(visited[1:] / visited[:-1], 0), np.append(0, visited[:-1] / visited[1:])
    # Chains start at equal quantiles of the first distribution, dealt out so that every group covers all sites.
    quantile = (np.arange(GROUPS * CHAINS) + 0.5) / (GROUPS * CHAINS)
    start = np.interp(quantile, np.cumsum(begun), site).round().astype(int)
    place = np.tile(start.reshape(CHAINS, GROUPS).T, (repeats, 1, 1))
    phase = np.zeros_like(place)
    found, errors = np.full(repeats, np.nan), np.full(repeats, np.nan)
    sums, crossed = [], []
    while np.isnan(found).any():
        part, times = np.zeros((2, repeats, GROUPS)), np.zeros((repeats, GROUPS), int)
        for _ in range(STEPS):
            chance = 2 * rng.random(place.shape, dtype=np.float32)
            place = np.where(chance < 1, place + (chance < up[place]), place - (chance - 1 < down[place]))
            part += weights[:, place].sum(axis=-1)
            here = np.where(place < ARRIVED, -1, np.where(place >= SITES - ARRIVED, 1, 0))
            times += (here * phase == -1).sum(axis=-1)
            phase = np.where(here != 0, here, phase)
        sums.append(part)
        crossed.append(times)
        first = int(BURN_IN * len(sums))
        times = np.sum(crossed[first:], axis=0)
        done = np.isnan(found) & (times.mean(axis=1) >= enough) & (times.min(axis=1) >= enough / 4)
        phases = np.sum(sums[first:], axis=0)[:, done]
        whole = phases.sum(axis=-1, keepdims=True)
        found[done] = np.log(whole[1] / whole[0])[:, 0]
        without = np.log((whole - phases)[1] / (whole - phases)[0])
        errors[done] = np.sqrt((GROUPS - 1) * without.var(axis=-1))
    return found, errors


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=400, help="independent runs of every row")
    repeats = parser.parse_args(arguments).repeats
    rng = np.random.default_rng(0)
    cases = {
        "right": (line(0.0), line(0.0)),
        "wrong by 0.5": (line(0.5), line(0.0)),
        "right, late": (line(0.0), line(1.0)),
    }
    columns = {"weight": "14s", "crossings of a group": "d", "mean z": "+.2f", "sd of z": ".2f", "error of log odds": ".3f"}
    table = harness.Table(columns)
    for name, (visited, begun) in cases.items():
        for enough in (1, 2, 4, 8, 16):
            found, errors = walk(visited, begun, enough, repeats, rng)
            z = found / errors
            table.add(name, enough, z.mean(), z.std(), errors.mean())
    harness.save("few_crossings", table.rows)


if __name__ == "__main__":
    main()
