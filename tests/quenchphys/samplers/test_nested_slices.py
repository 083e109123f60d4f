"""Nested sampling against exact answers: volumes, log Z, moments, the share of the spike, errors, files, bad input."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import lattices
import observables
import quenchphys as qp
from quenchphys import Outcome
from quenchphys.samplers.nested_births import correlation, left_out, log_compression
from quenchphys.samplers.nested_slices import NestedSettings, remembers

SPIKE = qp.targets.spike_slab(5)
LIVE = 400  # with 100, what births remember of their relatives is as large as the error of 16 replicas


@pytest.fixture(scope="module")
def ladder():
    """Many replicas of a target with two phases: their scatter is known to a sixth."""
    return qp.nested(SPIKE, particles=LIVE, replicas=16, seed=1, stop=qp.RemainingEvidence(-12))


def test_the_compression_of_a_level_is_that_of_order_statistics():
    rng = np.random.default_rng(0)
    log_t = np.log(rng.beta(50 - 5 + 1, 5, 400_000))
    mean, variance = log_compression(50, 5)
    assert mean == pytest.approx(log_t.mean(), abs=4 * log_t.std() / np.sqrt(log_t.size))
    assert variance == pytest.approx(log_t.var(), rel=4 * np.sqrt(2 / log_t.size))


def test_walls_enclose_the_volumes_they_should(ladder):
    """log G is known, and the walls are where the exact volume is that, within the spread of order statistics."""
    last = int(ladder.levels.level_count.min()) - 1
    assert last > 100
    for k in (0, last // 3, last):
        at = ladder.levels.isel(level=k)
        exact = np.array([SPIKE.log_volume(float(e), 0.0) for e in at.energy])
        z = (exact - at.log_volume.values) / at.log_volume_err.values
        assert abs(z.mean()) < 3 / 4, "mean of 16"
        assert 0.25 < z.var(ddof=1) < 2.3, "chi^2 of 15 degrees of freedom"


def test_births_lie_below_their_wall_and_every_point_is_recorded_once(ladder):
    wall, energy = ladder.levels.energy, ladder.particles.energy
    assert not bool((energy >= wall).any())
    one = energy.isel(replica=0).values.ravel()
    one = one[np.isfinite(one)]
    assert len(np.unique(one)) > 0.98 * len(one), "equal energies only by rounding"
    parent = ladder.particles.parent.isel(replica=0).values
    births = ladder.particles.sizes["particle"]
    number = LIVE + births * np.arange(len(parent))[:, None]
    assert (parent < number).all() and (parent[parent[:, 0] >= 0] >= 0).all()


def test_evidence_and_spike_share(ladder):
    found = observables.partition_function(ladder, beta=1.0)
    assert abs(found.log_z - SPIKE.log_z) < 3 * found.log_z_err < 0.3
    share = observables.order_parameters(ladder)
    assert abs(share.spike - SPIKE.moments()["spike"]) < 3 * share.spike_err < 0.15
    assert ladder.outcome is Outcome.CONVERGED
    assert ladder.attrs["evaluations"] > 16 * LIVE * 10


def test_one_replica_predicts_the_scatter_of_all(ladder):
    """Errors of single replicas, from order statistics and shells, against the scatter of 16 replicas."""
    pool = observables.Pool(ladder)
    for name, ask in {
        "log_z": lambda source, errors: observables.partition_function(source, beta=1.0, errors=errors),
        "spike": lambda source, errors: observables.order_parameters(source, errors=errors),
    }.items():
        alone = ask(pool, "genealogy")[f"{name}_err"].item()
        scatter = ask(pool, "replicas")[f"{name}_err"].item()
        # The variance of 16 is known to sqrt(2/15) = 37%.
        assert 0.4 < (alone / scatter) ** 2 < 2.2, name
    single = qp.Ladder(ladder.tree.isel(replica=[0]))
    found = observables.partition_function(single, beta=1.0)
    assert found.attrs["errors_from"] == "order statistics"
    assert found.log_z_err.item() > 2.5 * observables.partition_function(pool, beta=1.0).log_z_err.item()


def test_the_prior_itself_has_no_error(ladder):
    """Z(0) = 1 whatever the compressions are: what shells below a wall gain, the one above it loses."""
    single = qp.Ladder(ladder.tree.isel(replica=[0]))
    found = observables.partition_function(single, beta=0.0)
    assert abs(found.log_z.item()) < 0.02 and found.log_z_err.item() < 0.02


def test_everything_works_on_a_nested_ladder(ladder, tmp_path):
    ladder.save(tmp_path / "nested.nc")
    again = qp.load(tmp_path / "nested.nc")
    pool = observables.Pool(again)
    assert np.isfinite(observables.density_of_states(pool).log_g_err).any()
    assert observables.energy_distribution(pool).log_p.size
    quality = observables.diagnostics(pool)
    assert float(abs(quality.log_z_quadrature - quality.log_z).max()) < 0.2
    assert (quality.ess_per_evaluation > 0).all() and (quality.lineages >= 1).all()
    spike = observables.posterior(pool, draws=50).spike
    assert spike.mean() == pytest.approx(0.9, abs=0.1)
    assert f"{LIVE} live points, {LIVE // 10} born at each level" in again.report()
    assert observables.plot.ladder(again).shape == (3,)


def test_the_same_seed_gives_the_same_ladder():
    runs = [
        qp.nested(SPIKE, particles=100, replicas=16, seed=seed, stop=qp.LevelLimit(8)).particles.energy.values
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


class Stop(Exception):
    """Raised by a display of progress, in the middle of a run."""


class Breaking:
    def update(self, level, *rest):
        if level >= 16:
            raise Stop

    def close(self):
        pass


def test_an_interrupted_run_continues_as_if_nothing_had_happened(tmp_path):
    settings = {"particles": 100, "replicas": 16, "seed": 5, "stop": qp.LevelLimit(28)}
    whole = qp.nested(SPIKE, **settings)
    state = qp.Checkpoint(tmp_path / "state", levels=1)
    with pytest.raises(Stop):
        qp.nested(SPIKE, **settings, checkpoint=state, progress=Breaking())
    again = qp.nested(SPIKE, **settings, checkpoint=state)
    for group in ("levels", "particles", "prior", "configurations"):
        assert again.tree[group].to_dataset().equals(whole.tree[group].to_dataset()), group
    with pytest.raises(ValueError, match="seed"):
        qp.nested(SPIKE, **settings | {"seed": 6}, checkpoint=state)


class Steps:
    """An energy of few values, which cannot be ranked."""

    def sample_prior(self, key, n):
        return jax.random.normal(key, (n, 2))

    def log_prior(self, x):
        return -0.5 * jnp.vdot(x, x)

    def energy(self, x):
        return jnp.round(jnp.vdot(x, x)) + 0 * x[0]


class Flat(Steps):
    """An energy with a flat bottom, U = (r^2 - 1)_+ in the plane: Z = 1 - 2/3 exp(-1/2)."""

    def energy(self, x):
        return jnp.maximum(jnp.vdot(x, x) - 1.0, 0.0)


def test_a_flat_bottom_is_the_end():
    ladder = qp.nested(Flat(), particles=400, replicas=4, seed=1)
    found = observables.partition_function(ladder, beta=1.0)
    assert abs(found.log_z.item() - np.log(1 - 2 / 3 * np.exp(-0.5))) < 3 * found.log_z_err.item() < 0.1
    assert ladder.outcome is Outcome.CONVERGED
    assert (ladder.levels.energy.min("level") > 0).all(), "no level at the bottom itself, below which there is nothing"


def test_a_smooth_bottom_is_the_end():
    """The stop asks for more than single precision can rank: all live points are within 3e-4 nats, some of them equal."""
    ladder = qp.nested(SPIKE, particles=100, replicas=2, seed=1)
    assert ladder.outcome is Outcome.CONVERGED


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"particles": 9}, "particles"),
        ({"replaced": 0.0}, "replaced"),
        ({"replaced": 0.7}, "replaced"),
        ({"steps": 0}, "steps"),
        ({"seed": -1}, "seed"),
        ({"replicas": 0}, "replicas"),
        ({"stop": 3}, "stop"),
        ({"max_levels": 1.5}, "max_levels"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings, words):
    with pytest.raises((TypeError, ValueError), match=words) as refusal:
        qp.nested(SPIKE, **settings)
    assert "\n" not in str(refusal.value)


def test_too_few_particles_for_the_dimension_are_refused():
    with pytest.raises(ValueError, match=r"at least 40 particles, twice the dimension.* 39 were given"):
        qp.nested(qp.targets.gaussian(20), particles=39)


def test_energies_that_cannot_be_ranked_are_refused():
    with pytest.raises(ValueError, match="have the same energy"):
        qp.nested(Steps(), particles=100, replicas=1)


def test_correlations_of_tiny_numbers_and_of_constants():
    """Squares of 1e-24 are zero in float32, and a constant varies by rounding."""
    x = np.random.default_rng(1).normal(size=(2, 200))
    x[1] += x[0]
    expected = np.corrcoef(x)[0, 1]
    for scale in (1.0, 1e-24, 1e24):
        a, b = jnp.asarray(scale * x, jnp.float32)
        assert float(correlation(a, b)) == pytest.approx(expected, rel=1e-4)
    constant = jnp.full(200, 0.3)
    assert np.isnan(correlation(a, constant)) and np.isnan(correlation(constant, constant))


def test_a_start_takes_no_part_in_the_directions_of_its_chain():
    """C without a point, from the factor of C: exactly the covariance of all others, up to a constant."""
    x = np.random.default_rng(2).normal(size=(60, 12)) * np.linspace(0.1, 3.0, 12)
    deviations = x - x.mean(axis=0)
    factor = np.linalg.cholesky(np.cov(x.T, ddof=0))
    (w,) = np.asarray(left_out(jnp.asarray(factor), jnp.asarray(deviations), jnp.array([7])))
    root = factor @ (np.eye(12) - np.outer(w, w))
    others = np.cov(np.delete(x, 7, axis=0).T, ddof=0)
    np.testing.assert_allclose(root @ root.T * 60 / 59, others, rtol=1e-4, atol=1e-5)


def test_volumes_are_right_with_few_live_points_for_the_dimension():
    """Six live points a dimension.  With the start among those that shape the moves, log G is 5 to 6 errors too high."""
    target = qp.targets.gaussian(40)
    ladder = qp.nested(target, particles=240, replicas=8, seed=1, stop=qp.ReachedEnergy(6.0))
    last = int(ladder.levels.level_count.min()) - 1
    at = ladder.levels.isel(level=last)
    exact = np.array([target.log_volume(float(e), 0.0) for e in at.energy])
    off, error = at.log_volume.values - exact, float(at.log_volume_err.mean())
    assert abs(off.mean()) < 3 * error / np.sqrt(8), (off.mean(), error)


@pytest.mark.parametrize(("slow", "particles", "phases", "lags"), [
    (0.5, 200, 2, True), (0.2, 200, 2, False), (0.5, 800, 2, False), (0.5, 200, 1, False),
])  # fmt: skip
def test_slow_births_between_phases_are_not_trusted_though_replicas_agree(slow, particles, phases, lags):
    model = SimpleNamespace(shape=(10,), phases=dict.fromkeys(range(phases)))
    correlation = np.where(np.arange(200) < slow * 200, 0.8, 0.2)[None, :, None]
    levels = xr.Dataset({"correlation": (("replica", "level", "quantity"), correlation)}, coords={"quantity": ["link"]})
    assert remembers(model, NestedSettings(particles=particles), levels) is lags


def test_births_go_through_the_symmetries_of_the_model():
    """Slices never cross between the two signs of a double well; half of the births are turned over all the same."""
    model = lattices.phi4(shape=(3,), mu2=-12.0, lam=2.0, stiffness=3.0)
    ladder = qp.nested(model, particles=200, replicas=2, seed=1)
    last = int(ladder.levels.level_count.min()) - 1
    deep = ladder.levels["correlation"].sel(quantity="m").isel(level=slice(last // 2, last))
    assert abs(float(deep.mean())) < 0.1
    share = ladder.particles["m"].isel(level=last) > 0
    assert 0.2 < float(share.mean()) < 0.8


def test_what_helps_a_ladder_with_slow_births_is_said(monkeypatch):
    monkeypatch.setattr("quenchphys.samplers.nested_slices.remembers", lambda *_: True)
    ladder = qp.nested(SPIKE, particles=100, replicas=2, seed=1)
    assert ladder.outcome is Outcome.LAGGED
    assert "over a level is above 0.7 at" in ladder.report() and "use more steps or live points" in ladder.report()
