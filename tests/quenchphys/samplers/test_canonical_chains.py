"""Canonical chains: exact averages of a ring of three sites, walks at several couplings joined, and what is refused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import lattices
import observables
import quenchphys as qp
from quenchphys.walk import Walk

LOW, MIDDLE, HIGH = -1.6, -1.2, -0.8
GRID = np.linspace(-3.6, 3.6, 97)


def ring(mu2):
    return lattices.scalar_field((3,), mu2=mu2, couplings={4: 0.25}, stiffness=1.0)


def exact(mu2):
    """Averages of a ring of three sites, by sums over a grid; the action is written out."""
    a, b, c = np.meshgrid(GRID, GRID, GRID, indexing="ij")
    links = (a - b) ** 2 + (b - c) ** 2 + (c - a) ** 2
    action = 0.5 * links + sum(mu2 / 2 * x**2 + 0.25 * x**4 for x in (a, b, c))
    weight = np.exp(-(action - action.min()))
    m, phi2 = (a + b + c) / 3, a**2 + b**2 + c**2
    mean = {"m2": m**2, "m4": m**4, "phi2": phi2, "link": links}
    return {name: float((weight * value).sum() / weight.sum()) for name, value in mean.items()}


@pytest.fixture(scope="module")
def walks():
    return [qp.canonical(ring(mu2), sweeps=384, warm_up=48, seed=seed) for seed, mu2 in enumerate((LOW, HIGH))]


@pytest.mark.parametrize("clusters", [True, False], ids=["clusters", "alone"])
def test_a_ring_has_its_exact_averages(walks, clusters):
    walk = walks[0] if clusters else qp.canonical(ring(LOW), sweeps=384, warm_up=48, clusters=False, seed=4)
    groups = walk.data[["m2", "m4", "phi2", "link"]].mean(["sweep", "chain"])
    for name, value in exact(LOW).items():
        of_groups = groups[name].values
        z = (of_groups.mean() - value) / (of_groups.std(ddof=1) / np.sqrt(len(of_groups)))
        assert abs(z) < 4, (name, of_groups.mean(), value)
    assert 0.6 < float(walk.data["acceptance"].mean()) < 0.99
    assert np.array_equal(walk.data["log_w"].values, -walk.energy.astype(float))


def test_walks_at_several_couplings_are_joined(walks):
    """Between the couplings that were sampled, and at them; better than either walk alone."""
    pool = observables.Pool(walks)
    for mu2 in (LOW, MIDDLE, HIGH):
        found, wanted = observables.binder(pool, mu2=mu2), exact(mu2)
        binder = 1 - wanted["m4"] / (3 * wanted["m2"] ** 2)
        assert abs(float(found.binder) - binder) < 4 * float(found.binder_err)
        assert abs(float(found.fluctuation) - 3 * wanted["m2"]) < 4 * float(found.fluctuation_err)
    step = 1e-3
    slope = (
        observables.binder(pool, mu2=MIDDLE + step).binder - observables.binder(pool, mu2=MIDDLE - step).binder
    ) / (2 * step)
    assert float(observables.binder(pool, mu2=MIDDLE).binder_slope) == pytest.approx(float(slope), rel=1e-3)
    # log Z is absolute: the same from either walk, and from both.
    both = observables.partition_function(pool, mu2=[LOW, HIGH])
    for walk in walks:
        alone = observables.partition_function(walk, mu2=[LOW, HIGH])
        assert (np.abs(both.log_z - alone.log_z) < 4 * np.hypot(both.log_z_err, alone.log_z_err)).all()
        assert float(observables.binder(walk, mu2=MIDDLE).ess) < float(observables.binder(pool, mu2=MIDDLE).ess)


def test_walks_that_share_no_samples_are_not_joined(walks):
    far = qp.canonical(ring(400.0), sweeps=16, warm_up=48, seed=9)
    near = Walk(walks[0].data.isel(sweep=slice(0, 16)))
    with pytest.raises(ValueError, match="do not overlap"):
        observables.Pool([near, far])


def test_a_chain_is_left_out_of_the_scales_that_walks_share(walks):
    """The jackknife by hand: pools of all other groups of single chains, with scales of their own."""
    single = [Walk(walk.data.isel(chain=[0], sweep=slice(64))) for walk in walks]
    found = observables.binder(single, mu2=MIDDLE, errors="replicas")
    rest = [
        observables.binder([Walk(walk.data.drop_isel(group=g)) for walk in single], mu2=MIDDLE)
        for g in range(single[0].data.sizes["group"])
    ]
    for name in ("binder", "fluctuation", "binder_slope"):
        by_hand = np.sqrt((len(rest) - 1) * np.var([float(one[name]) for one in rest]))
        assert float(found[f"{name}_err"]) == pytest.approx(by_hand, rel=0.01), name


def test_a_walk_is_continued_and_kept(walks, tmp_path):
    longer = qp.canonical(ring(LOW), walks[0], sweeps=16, seed=9)
    assert np.array_equal(longer.data["step_size"].values, walks[0].data["step_size"].values)
    assert longer.energy.shape == (16, 16, 8)
    loaded = qp.load(longer.save(tmp_path / "walk.nc"))
    assert loaded.method == "canonical" and "16 groups of 8 canonical chains" in loaded.report()
    parts = observables.Pool([walks[0], longer, walks[1]])
    assert parts.samples[0].energy.size == walks[0].energy.shape[1] + longer.energy.shape[1]


class NoField:
    """A problem without a local action."""

    def sample_prior(self, key, n):
        return jnp.zeros((n, 2))

    def log_prior(self, x):
        return -0.5 * (x * x).sum()

    def energy(self, x):
        return (x * x).sum()


@pytest.mark.parametrize(
    ("problem", "wrong", "says"),
    [
        (NoField(), {}, "this NoField has no lane_action"),
        (ring(LOW), {"groups": 3, "chains": 3}, "must be a multiple of 8"),
        (ring(LOW), {"groups": 1}, "groups must be"),
        (ring(LOW), {"kernel": qp.HMC()}, "kernel must be a BlockHMC"),
        (ring(LOW), {"clusters": 1}, "clusters must be True or False"),
        (ring(LOW), {"sweeps": 0}, "sweeps must be"),
        (ring(LOW), {"start": np.zeros((2, 4, 5))}, "start must be finite configurations"),
    ],
)
def test_wrong_settings_are_refused(problem, wrong, says):
    with pytest.raises((ValueError, TypeError), match=says):
        qp.canonical(problem, **{"sweeps": 16} | wrong)


def test_walks_of_different_problems_or_methods_are_not_joined(walks):
    other = qp.Walk(walks[1].data.assign_attrs(method="multicanonical"))
    with pytest.raises(ValueError, match="Only successive parts of one walk, or canonical walks"):
        observables.Pool([walks[0], other])
    with pytest.raises(TypeError, match="A posterior needs a single walk"):
        observables.posterior(walks)
