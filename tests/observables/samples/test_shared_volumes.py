"""Volumes that the groups of a bridge share: log Z without bias, errors that match the scatter of repeats."""

import json

import numpy as np
import xarray as xr

import observables
from observables.estimation.estimator import estimate
from observables.estimation.moments import Columns
from observables.estimation.targets import Targets
from quenchphys.ladder import Ladder

WIDTH = 3.0  # of U in the prior, N(0, WIDTH^2), so that log Z(beta) = (beta WIDTH)^2 / 2
BETAS = np.array([0.35, 0.7, 1.0])
GROUPS, SWEEPS, DRAWS = 16, 12, 12


def bridge(rng) -> Ladder:
    """Independent samples of every beta: U ~ N(-beta WIDTH^2, WIDTH^2), with X = U + noise beside it."""
    energy = rng.normal(-BETAS[None, :, None] * WIDTH**2, WIDTH, (GROUPS, len(BETAS), SWEEPS))
    draws = rng.normal(0, WIDTH, (GROUPS, DRAWS))
    log_volume = np.broadcast_to((BETAS * WIDTH) ** 2 / 2, (GROUPS, len(BETAS)))
    particle, level = ("replica", "level", "particle"), ("replica", "level")

    def noisy(value):
        return value + rng.normal(size=value.shape)

    tree = {
        "/": xr.Dataset(
            attrs={
                "format": "quenchphys ladder 1",
                "method": "bridge",
                "softness": np.nan,
                "outcome": "reached beta",
                "seed": 0,
                "problem": "normal",
                "parameters": "{}",
                "couplings": json.dumps({"c": [1.0, "x", 0.1]}),
                "phases": "{}",
            }
        ),
        "levels": xr.Dataset(
            {
                "beta": (level, np.broadcast_to(BETAS, (GROUPS, len(BETAS))).copy()),
                "log_volume": (level, log_volume.copy()),
                "level_count": ("replica", np.full(GROUPS, len(BETAS))),
            }
        ),
        "particles": xr.Dataset(
            {
                "energy": (particle, energy),
                "log_weight": (particle, np.full(energy.shape, -np.log(SWEEPS))),
                "x": (particle, noisy(energy)),
            }
        ),
        "prior": xr.Dataset({"energy": (("replica", "draw"), draws), "x": (("replica", "draw"), noisy(draws))}),
    }
    return Ladder(xr.DataTree.from_dict(tree))


def test_log_z_and_averages_over_many_repeats():
    """z of log Z and of <x> have mean 0 and unit variance, at the coupling of the run and at another one."""
    rng, scores = np.random.default_rng(5), []
    shift = 0.05  # of c: U' = U + 0.1 shift x, in which x = U + noise of unit variance
    tilt = 0.1 * shift
    exact_z = ((1 + tilt) * WIDTH) ** 2 / 2 + tilt**2 / 2
    exact_x = -(1 + tilt) * WIDTH**2 - tilt
    for _ in range(40):
        ladder = bridge(rng)
        found = observables.partition_function(ladder)
        moved = observables.partition_function(ladder, c=1.0 + shift)
        average = observables.order_parameters(ladder, c=1.0 + shift)
        scores.append(
            [
                (float(found.log_z) - WIDTH**2 / 2) / float(found.log_z_err),
                (float(moved.log_z) - exact_z) / float(moved.log_z_err),
                (float(average.x) - exact_x) / float(average.x_err),
            ]
        )
    z = np.array(scores)
    assert np.all(np.abs(z.mean(axis=0)) < 3 / np.sqrt(len(z)))
    assert np.all(np.abs(z.std(axis=0) - 1) < 3 / np.sqrt(2 * len(z)))


def test_leaving_a_group_out_is_the_answer_of_the_others():
    """The first-order change of the volumes against WHAM without the group."""
    ladder = bridge(np.random.default_rng(8))

    def answers(run):
        pool = observables.Pool(run)
        return estimate(pool, Targets.grid(pool, 1.0, {}), lambda samples, energy: Columns([samples.observable("x")]))

    whole = answers(ladder)
    others = {"/": xr.Dataset(attrs=ladder.tree.attrs)}
    others |= {name: group.to_dataset().isel(replica=slice(1, None)) for name, group in ladder.tree.children.items()}
    rest = answers(Ladder(xr.DataTree.from_dict(others)))
    (log_z, mean), (exact_log_z, exact_mean) = whole.without(0), rest.pooled()
    change = abs(float(whole.pooled()[0][0] - exact_log_z[0]))
    assert abs(float(log_z[0] - exact_log_z[0])) < 0.05 * change
    assert abs(float(mean[0, 0] - exact_mean[0, 0])) < 0.1 * abs(float(whole.pooled()[1][0, 0] - exact_mean[0, 0]))
