"""Phases that canonical chains hold: the line they follow, where they are cut, their numbers, and one small run."""

from __future__ import annotations

import numpy as np
import pytest

import lattices
from workflows.budget import WalkSettings
from workflows.model_family import family_of
from workflows.store import Study
from workflows.tricritical.held_phases import (
    Known,
    Sums,
    doubts,
    errors_of,
    followed,
    halfway,
    held_point,
    numbers,
    starts,
)

SITES = 100


def test_a_line_of_third_order_is_followed_exactly() -> None:
    """mu2 = lam^3 - 4 lam, from the nearest of three points."""
    line = {lam: Known(lam**3 - 4 * lam, 0.0, 3 * lam**2 - 4, 0.0) for lam in (-1.0, -0.95, -0.9)}
    assert followed(-0.87, line)[0] == pytest.approx(-(0.87**3) + 4 * 0.87, abs=1e-12)


def test_the_nearest_point_is_not_the_one_looked_for() -> None:
    line = {-0.9: Known(2.0, 1e-3, -4.0, 0.01), -0.8: Known(np.nan, 0.0, -4.0, 0.0)}
    assert followed(-0.8, line)[0] == pytest.approx(1.6)


def test_errors_add_up_along_the_line() -> None:
    assert followed(-0.8, {-0.9: Known(2.0, 3e-3, -4.0, 0.04)})[1] == pytest.approx(5e-3)


def _samples(seed: int, chains: int = 64, sweeps: int = 32) -> list[dict[str, np.ndarray]]:
    """Two phases of independent samples of correlated sums."""
    rng = np.random.default_rng(seed)
    found = []
    for level in (25.0, 130.0):
        phi2 = level + 8 * rng.normal(size=(chains, sweeps))
        phi4 = 0.02 * phi2**2 + rng.normal(size=phi2.shape)
        found.append({"phi2": phi2, "phi4": phi4, "energy": 0.7 * phi2 - 0.9 * phi4})
    return found


def _sums(values: dict[str, np.ndarray]) -> Sums:
    observed = [values[name] for name in ("phi2", "phi4", "energy")]
    columns = [np.ones_like(values["phi2"]), *observed, *(x * values["phi2"] for x in observed)]
    sums = np.stack([column.sum(axis=1) for column in columns], axis=1)
    return Sums(sums, sums, 0.0, 0.0)


def test_numbers_at_a_shifted_mu2_are_those_of_reweighted_samples() -> None:
    phases, shift = _samples(0), 1e-3
    found = numbers(*(_sums(values).columns.sum(axis=0) for values in phases), shift=shift, sites=SITES)
    means = []
    for values in phases:
        weight = np.exp(-0.5 * shift * (values["phi2"] - values["phi2"].mean()))
        energy = values["energy"] + 0.5 * shift * values["phi2"]
        means.append([np.average(x, weights=weight) for x in (values["phi2"], values["phi4"], energy)])
    jump = np.subtract(means[1], means[0])
    assert found["q_1"] * SITES == pytest.approx(means[1][0], abs=2e-4)
    assert found["latent_heat"] == pytest.approx(-jump[2], rel=1e-6)
    assert found["slope"] == pytest.approx(-2 * jump[1] / jump[0], rel=1e-6)


def test_errors_are_the_scatter_of_many_runs() -> None:
    runs = [[_sums(values) for values in _samples(seed)] for seed in range(60)]
    found = [numbers(*(side.columns.sum(axis=0) for side in run), shift=0.0, sites=SITES) for run in runs]
    for name in ("q_1", "slope", "latent_heat"):
        stated = np.mean([errors_of(run, 0.0, SITES)[name] for run in runs[:10]])
        assert stated == pytest.approx(np.std([one[name] for one in found]), rel=0.35)


def test_what_lies_halfway_is_in_the_error() -> None:
    """A thousand chains without any scatter, and 2% of the samples of each that are left out between the phases."""
    sides = []
    for level, halfway_there in ((20.0, 60.0), (120.0, 80.0)):
        phi2 = np.full((1000, 100), level)
        phi2[:, :2] = halfway_there
        outer = np.where(phi2 == level, 1.0, 0.0)
        columns = [np.ones_like(phi2), phi2, phi2, phi2, phi2**2, phi2**2, phi2**2]
        rows = [np.stack([(part * column).sum(axis=1) for column in columns], axis=1) for part in (1.0, outer)]
        sides.append(Sums(*rows, 0.0, 0.0))
    error = errors_of(sides, 0.0, 1)
    assert error["q_0"] == pytest.approx(0.4) and error["latent_heat"] == pytest.approx(0.8)


def test_the_jump_does_not_change_with_the_cut_halfway() -> None:
    """A wide and a narrow peak with tails that meet."""
    rng = np.random.default_rng(0)
    q = np.concatenate([0.28 + rng.exponential(0.12, 40000), 1.3 - rng.exponential(0.18, 40000)])
    cut = halfway(q, q)

    def jump(at: float) -> float:
        return float(q[q >= at].mean() - q[q < at].mean())

    assert 0.7 < cut < 0.9
    assert jump(cut) > jump(cut - 0.1) and jump(cut) > jump(cut + 0.1)
    assert abs(jump(cut) - jump(cut + 0.02)) < 2e-3 < jump(cut) - jump(1.06)


def test_starts_have_the_q_of_their_phases() -> None:
    field = lattices.phi6(L=16, mu2=2.28)
    x = starts(field, 1.9, 8, 4, 0)
    q = (x**2).mean(axis=(2, 3))
    assert x.shape == (8, 4, 16, 16)
    assert q[:4].max() < 0.5 and q[4:].mean() == pytest.approx(1.9, abs=0.05)


@pytest.mark.parametrize(
    ("left", "drift", "message"), [(0.03, 0.0, "does not hold on this lattice"), (0.0, 5.0, "use more sweeps")]
)
def test_phases_that_do_not_hold_are_doubted(left: float, drift: float, message: str) -> None:
    good, bad = Sums(sums := np.ones((2, 7)), sums, 0.0, 1.0), Sums(sums, sums, left, drift)
    assert doubts([good, good]) == []
    assert len(found := doubts([good, bad])) == 1 and message in found[0] and "ordered phase" in found[0]


def test_phases_held_at_lam_minus_one_are_those_of_bridges() -> None:
    """On 16 x 16 near mu2 = 2.2866, where q is 0.184 and 1.89 and d mu2/d lam is -4.95."""
    family = family_of("phi6", "mu2", {"lam": -1.0}, L=16)
    line = {-1.01: Known(2.2866 + 0.0497, 1e-4, -4.97, 0.01)}
    settings = WalkSettings(groups=8, chains=8, sweeps=192, seed=1)
    with Study(None, {"workflow": "test"}, progress=False) as study:
        point = held_point(family, -1.0, line, 1.9, settings, study)
    assert point.attrs["trusted"], point.attrs["why"]
    assert float(point["mu2"]) == pytest.approx(2.2866, abs=2e-3)
    assert np.abs(point["q"].values - [0.184, 1.89]).max() < 0.02
    assert float(point["slope"]) == pytest.approx(-4.95, abs=0.03)
