"""Samples of walkers, drawn exactly, asked like a ladder: known odds, a known log Z, and questions they cannot answer."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import observables
import quenchphys as qp
from observables.walks import anchored, crossings, log_z_above, log_z_error, spread_starts

D, SIGMA = 4, 0.5
GROUPS, SWEEPS, WALKERS = 16, 50, 40


@pytest.fixture(scope="module")
def ladder():
    return qp.quench(qp.targets.gaussian(D), particles=400, seed=1, progress=False)


@pytest.fixture(scope="module")
def walk():
    """Independent draws of pi(x) w(U), w = exp(-U/2): each coordinate is normal with precision 1 + 0.5/sigma^2."""
    x = np.random.default_rng(2).standard_normal((GROUPS, SWEEPS, WALKERS, D)) / np.sqrt(1 + 0.5 / SIGMA**2)
    r2 = (x**2).sum(axis=-1)
    dims = ("replica", "sweep", "walker")
    energy = r2 / (2 * SIGMA**2)
    return xr.Dataset({"energy": (dims, energy), "r2": (dims, r2), "log_w": (dims, -0.5 * energy + 7.0)})


def test_log_z_follows_from_the_part_above_an_energy(ladder, walk):
    """Anchored by the ladder at U > 1, the walkers know Z of both sides of a cut, with the errors they state."""
    pool = observables.walked(ladder, [walk.isel(sweep=slice(0, 20)), walk.isel(sweep=slice(20, None))])
    exact = qp.targets.gaussian(D).log_z
    log_a, log_a_err = log_z_above(ladder, 1.0)
    held = anchored(pool, log_a, 1.0)
    assert log_z_above(held, 1.0)[0] == pytest.approx(log_a)
    found = observables.partition_function(held, beta=1.0)
    cut = 0.5
    errors = np.hypot(log_z_error(held, 1.0, "r2", cut), log_a_err)
    assert abs(float(found.log_z.squeeze()) - exact) < 4 * errors.max()
    assert (errors < 0.1).all()
    phases = observables.phase_averages(held, by="r2", cut=cut)
    assert np.logaddexp.reduce(phases.log_z.values) == pytest.approx(float(found.log_z.squeeze()), abs=2e-3)
    # Only the ratio matters: an anchor as large as the phase itself leaves no error of the walkers.
    assert log_z_error(held, -1.0, "r2", 1e9)[0] < 1e-12


def test_averages_are_those_of_any_target(ladder, walk):
    found = observables.order_parameters(observables.walked(ladder, [walk]), beta=[0.25, 1.0])
    exact = D / (1 + np.array([0.25, 1.0]) / SIGMA**2)
    assert (np.abs(found.r2 - exact) < 4 * found.r2_err).all()
    assert (found.r2_err < 0.05 * exact).all()


def test_crossings_are_counted_between_the_phases_only():
    q = xr.DataArray(np.array([[[0.0], [0.5], [1.0], [0.5], [1.0], [0.4], [0.0]]]), dims=("replica", "sweep", "walker"))
    assert crossings([xr.Dataset({"q": q})], "q", (0.2, 0.8)).tolist() == [2]


def test_starts_lie_between_the_energies_and_spread_over_the_levels(ladder):
    low, high = 1.0, 6.0
    start = spread_starts(ladder, low, high, groups=4, walkers=25)
    energy = (start**2).sum(axis=-1) / (2 * SIGMA**2)
    assert start.shape == (4, 25, D)
    assert ((energy > low) & (energy < high)).all()
    assert (energy.max(axis=1) > 1.5 * energy.min(axis=1)).all()
    with pytest.raises(ValueError, match="no configuration with an energy between 900 and 901"):
        spread_starts(ladder, 900, 901, 2, 2)


def test_what_only_ladders_know_is_refused(ladder, walk):
    pool = observables.walked(ladder, [walk])
    for question in (
        observables.diagnostics,
        observables.quadrature,
        observables.level_marginal,
        observables.posterior,
    ):
        with pytest.raises(TypeError, match="walkers have no levels"):
            question(pool)
    with pytest.raises(TypeError, match="walkers have no ancestors"):
        observables.partition_function(pool, errors="genealogy")
