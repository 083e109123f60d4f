"""How often must walkers cross before the error of their odds is honest?  Walkers on a line, where the odds are known.

    python benchmarks/accuracy/few_crossings.py          about a minute on one core

Groups of walkers step at random on a line of sites, with one phase at either end, until their groups have crossed so often
on average (and each at least a quarter of that), as in `workflows.walkers`; the first fifth is not counted.  Odds come from
all of them together, their error from a jackknife over the groups.  The table tells by how many errors the log odds are
off on average, the standard deviation of that, which should be 1, and the error itself, for a weight that is

    right              and walkers that start where it has them
    wrong by 0.5       nats from end to end, as after it was improved from few crossings; they start as if it was right
    right, late        but walkers start where a weight that was wrong by one nat had them
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SITES, GROUPS, WALKERS = 48, 16, 8
PEAK, WIDTH = 6.0, 2.0  # of the phase at the left; the other one is its mirror image
ARRIVED = 9  # sites from either end: a walker is in a phase
STEPS = 100  # between two looks at the crossings
FORGETTING = 0.2
REPEATS = 400

Array = np.ndarray


def line(tilt: float) -> Array:
    """How often sites are met in the end, with a weight that is wrong by so many nats from end to end."""
    met = np.exp(tilt * np.linspace(-0.5, 0.5, SITES))
    return met / met.sum()


def walk(met: Array, begun: Array, enough: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Log odds of the two phases minus what they should be, and the stated errors, of many runs."""
    site = np.arange(SITES)
    left = np.exp(-0.5 * ((site - PEAK) / WIDTH) ** 2)
    weights = np.stack([left, left[::-1]]) / met
    up, down = np.append(met[1:] / met[:-1], 0), np.append(0, met[:-1] / met[1:])
    # Every group has a comb over all sites.
    comb = np.interp((np.arange(GROUPS * WALKERS) + 0.5) / (GROUPS * WALKERS), np.cumsum(begun), site).round().astype(int)
    place = np.tile(comb.reshape(WALKERS, GROUPS).T, (REPEATS, 1, 1))
    phase = np.zeros_like(place)
    found, errors = np.full(REPEATS, np.nan), np.full(REPEATS, np.nan)
    sums, crossed = [], []
    while np.isnan(found).any():
        part, times = np.zeros((2, REPEATS, GROUPS)), np.zeros((REPEATS, GROUPS), int)
        for _ in range(STEPS):
            chance = 2 * rng.random(place.shape, dtype=np.float32)
            place = np.where(chance < 1, place + (chance < up[place]), place - (chance - 1 < down[place]))
            part += weights[:, place].sum(axis=-1)
            here = np.where(place < ARRIVED, -1, np.where(place >= SITES - ARRIVED, 1, 0))
            times += (here * phase == -1).sum(axis=-1)
            phase = np.where(here != 0, here, phase)
        sums.append(part)
        crossed.append(times)
        first = int(FORGETTING * len(sums))
        times = np.sum(crossed[first:], axis=0)
        done = np.isnan(found) & (times.mean(axis=1) >= enough) & (times.min(axis=1) >= enough / 4)
        phases = np.sum(sums[first:], axis=0)[:, done]
        whole = phases.sum(axis=-1, keepdims=True)
        found[done] = np.log(whole[1] / whole[0])[:, 0]
        without = np.log((whole - phases)[1] / (whole - phases)[0])
        errors[done] = np.sqrt((GROUPS - 1) * without.var(axis=-1))
    return found, errors


def main() -> None:
    rng = np.random.default_rng(0)
    cases = {
        "right": (line(0.0), line(0.0)),
        "wrong by 0.5": (line(0.5), line(0.0)),
        "right, late": (line(0.0), line(1.0)),
    }
    rows = []
    print("weight         crossings of a group   mean z    sd of z   error of log odds")
    for name, (met, begun) in cases.items():
        for enough in (1, 2, 4, 8, 16):
            found, errors = walk(met, begun, enough, rng)
            z = found / errors
            rows.append({"weight": name, "crossings": enough, "mean": z.mean(), "sd": z.std(), "error": errors.mean()})
            print(f"{name:14s} {enough:20d} {z.mean():+8.2f} {z.std():10.2f} {errors.mean():19.3f}", flush=True)
    out = Path("out/few_crossings.json")
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
