"""Every observable against exact values, on synthetic ladders; what is refused, and how."""

import numpy as np
import pytest

import observables
from tests.support import synthetic

PROBLEM = synthetic.Chi2()
BETA = np.array([0.05, 0.3, 1.0, 1.3])
KINDS = {"nu=2": (2.0, 3.0), "nu=20": (20.0, 3.0), "nu=0": (0.0, 3.0), "temper": (None, 12)}


def within(found, exact, error, standard_errors=4.5):
    z = (np.asarray(found) - np.asarray(exact)) / np.asarray(error)
    assert np.all(np.isfinite(z)) and np.all(np.abs(z) < standard_errors), z


@pytest.fixture(scope="module", params=KINDS)
def ladder(request):
    softness, last = KINDS[request.param]
    return observables.Pool(synthetic.ladder(PROBLEM, softness, particles=100, replicas=16, seed=5, last=last))


def test_thermodynamics(ladder):
    found = observables.thermodynamics(ladder, BETA)
    canonical = PROBLEM.canonical(BETA)
    within(found.log_z, PROBLEM.log_z(BETA), found.log_z_err)
    within(found.energy, canonical.mean(), found.energy_err)
    within(found.heat_capacity, BETA**2 * canonical.var(), found.heat_capacity_err)
    within(found.entropy, PROBLEM.log_z(BETA) + BETA * canonical.mean(), found.entropy_err)
    within(found.free_energy, -PROBLEM.log_z(BETA) / BETA, found.free_energy_err)
    assert found.log_z_err.max() < 0.15  # an error bar wide enough for anything would pass as well
    assert found.ess.dims == ("beta",)
    assert found.attrs["errors_from"] == "replicas"


def test_other_couplings_are_reweighted(ladder):
    found = observables.order_parameters(ladder, a=[1.8, 2.0, 2.2], b=1.9)
    a = found.a.values
    within(found.s1, PROBLEM.d1 / (1 + 2 * a), found.s1_err)
    within(found.s2, np.full(3, PROBLEM.d2 / (1 + 2 * 1.9)), found.s2_err)
    log_z = observables.partition_function(ladder, beta=[0.5, 1.0], a=[1.8, 2.2])
    assert log_z.log_z.dims == ("beta", "a")
    exact = [[float(PROBLEM.log_z(b, a=a)) for a in (1.8, 2.2)] for b in (0.5, 1.0)]
    within(log_z.log_z, exact, log_z.log_z_err)


@pytest.mark.parametrize(("softness", "last"), [(2.0, 3.0), (None, 12)])
def test_a_hard_core_leaves_log_z_right(softness, last):
    problem = synthetic.HardCore()
    made = synthetic.ladder(problem, softness, particles=100, replicas=16, seed=5, last=last)
    assert made.prior["energy"].max() > 1e19
    found = observables.thermodynamics(made, [0.3, 1.0])
    within(found.log_z, problem.log_z(found.beta), found.log_z_err)
    within(found.energy, problem.canonical(found.beta.values).mean(), found.energy_err)


def test_density_of_states(ladder):
    found = observables.density_of_states(ladder, bins=60).isel(energy=slice(3, -3))
    energy = found.energy.values
    within(found.log_g, PROBLEM.density.logpdf(energy), found.log_g_err, 6)  # of 54 bins with 15 degrees of freedom
    slope = (PROBLEM.shape - 1) / energy - PROBLEM.sigma**2
    off = np.abs(found.beta_microcanonical - slope) / found.beta_microcanonical_err
    assert np.median(off) < 1.5
    assert np.isfinite(off).all()


def test_phase_weights_and_distribution(ladder):
    cut = 2.0
    found = observables.phase_weights(ladder, by="s1", cut=cut)
    from scipy import stats

    exact = stats.gamma(PROBLEM.d1 / 2, scale=2 / (1 + 2 * PROBLEM.coupling)).sf(cut)
    within(found.ordered_share, exact, found.ordered_share_err)
    within(found.log_odds, np.log(exact / (1 - exact)), found.log_odds_err)
    histogram = observables.distribution(ladder, "s1", bins=np.linspace(1, 4, 7))
    density = np.diff(stats.gamma(PROBLEM.d1 / 2, scale=2 / (1 + 2 * PROBLEM.coupling)).cdf(np.linspace(1, 4, 7))) / 0.5
    within(histogram.p, density, histogram.p_err)


def test_quadrature_agrees_on_fine_levels():
    fine = observables.Pool(synthetic.ladder(PROBLEM, particles=100, replicas=6, seed=2, ess=0.97), "telescoped")
    found = observables.quadrature(fine, [0.3, 1.0])
    direct = observables.partition_function(fine, [0.3, 1.0])
    np.testing.assert_allclose(found.log_z.mean("replica"), direct.log_z, atol=0.03)
    assert found.above[:, 0].mean() > found.above[:, 1].mean()
    marginal = observables.level_marginal(fine)
    area = [-np.trapezoid(np.exp(marginal.log_p[r]), marginal.energy[r]) for r in range(6)]
    np.testing.assert_allclose(area, 1, atol=0.03)


def test_ladders_of_different_couplings_are_pooled():
    other = synthetic.Chi2(sigma=0.45)
    pair = [synthetic.ladder(PROBLEM, replicas=4, seed=1), synthetic.ladder(other, replicas=4, seed=2)]
    pool = observables.Pool(pair)
    assert [len(block) for block in pool.blocks] == [2, 2, 2, 2]
    for errors in ("replicas", "genealogy"):
        found = observables.partition_function(pool, [0.5, 1.0], a=2.2, b=2.2, errors=errors)
        within(found.log_z, PROBLEM.log_z([0.5, 1.0], a=2.2, b=2.2), found.log_z_err)
    alone = observables.partition_function(pair[0], a=2.2, b=2.2)
    assert float(found.ess[1]) > 1.5 * float(alone.ess)


def test_more_ladders_of_one_problem_are_more_replicas():
    few = synthetic.ladder(PROBLEM, replicas=4, seed=1)
    assert observables.partition_function(few).attrs["errors_from"] == "replicas and genealogy"
    pool = observables.Pool([few, *(synthetic.ladder(PROBLEM, particles=20, replicas=4, seed=seed) for seed in (2, 3, 4))])
    assert len(pool.blocks) == 16
    assert observables.partition_function(pool).attrs["errors_from"] == "replicas"


def test_particles_without_weight_or_energy_do_not_count():
    made = synthetic.ladder(PROBLEM, replicas=2, seed=1)
    particles = made.particles
    energy, log_weight = particles["energy"].values.copy(), particles["log_weight"].values.copy()
    reference = float(observables.partition_function(made).log_z)
    log_weight[:, :, :5] -= 60
    energy[:, 10, 0] = np.nan
    tree = made.tree.copy()
    dims = ("replica", "level", "particle")
    tree["particles"].dataset = particles.assign(energy=(dims, energy), log_weight=(dims, log_weight))
    assert abs(float(observables.partition_function(type(made)(tree)).log_z) - reference) < 0.1


def with_undefined(made, name, share=0.2):
    """The ladder with an observable that is NaN for a share of all samples."""
    rng, tree = np.random.default_rng(0), made.tree.copy()
    for group in ("particles", "prior"):
        values = made.tree[group].dataset[name]
        tree[group].dataset = made.tree[group].dataset.assign({name: values.where(rng.random(values.shape) > share)})
    return type(made)(tree)


@pytest.mark.parametrize("errors", ["replicas", "genealogy"])
def test_an_undefined_observable_has_no_mean_and_spoils_no_other(errors):
    made = synthetic.ladder(PROBLEM, replicas=4, seed=1)
    broken = observables.Pool(with_undefined(made, "s1"))
    found, whole = (observables.order_parameters(run, errors=errors) for run in (broken, made))
    assert np.isnan(found.s1) and np.isnan(found.s1_err)
    for name in ("energy", "energy_err", "s2", "s2_err"):
        assert float(found[name]) == pytest.approx(float(whole[name]), rel=1e-9)
    averages = observables.phase_averages(broken, by="s2", cut=1.6, errors=errors)
    assert np.isnan(averages.s1).all() and np.isfinite(averages.energy_err).all()
    for question in (
        lambda: observables.phase_weights(broken, by="s1", cut=2.0),
        lambda: observables.phase_averages(broken, by="s1", cut=2.0),
        lambda: observables.equal_weight(broken, "b", by="s1", cut=2.0),
        lambda: observables.distribution(broken, "s1"),
        lambda: observables.partition_function(broken, a=1.9),
    ):
        with pytest.raises(ValueError, match=r"s1 of chi2 is undefined \(NaN\) for 0.2 of the samples, so it cannot") as no:
            question()
        assert str(no.value).count(". ") == 0


def test_a_run_is_pooled_once():
    """The same ladder, the same one with more replicas, and parts of a walk: an error must not shrink by counting twice."""
    made, other = (synthetic.ladder(PROBLEM, particles=40, replicas=2, seed=seed) for seed in (1, 2))
    cut = type(made)(made.tree.isel(replica=[1]))
    for pair in ([made, made], [made, other, cut]):
        with pytest.raises(ValueError, match=r"are the same run \(seeds 1 and 1.*different seeds"):
            observables.Pool(pair)
    assert len(observables.Pool([made, other]).blocks) == 4
    walk = synthetic.walk({"energy": np.random.default_rng(0).random((8, 20, 2))})
    with pytest.raises(ValueError, match="The same part of a walk"):
        observables.Pool([walk, walk])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"beta": 60.0}, "beta = 60"),
        ({"beta": 1.0, "a": 80.0}, "a = 80"),
        ({"beta": -0.1}, "negative"),
        ({"beta": np.nan}, "finite"),
        ({"beta": [[1.0]]}, "beta must be"),
        ({"mu2": 1.0}, "no coupling 'mu2'"),
        ({"errors": "guess"}, "errors must be"),
    ],
)
def test_refusals_are_one_sentence(asked, message):
    made = synthetic.ladder(PROBLEM, replicas=2, seed=1)
    with pytest.raises(ValueError, match=message) as caught:
        observables.partition_function(made, **asked)
    assert str(caught.value).count(". ") == 0


def test_wrong_arguments_are_named():
    made = synthetic.ladder(PROBLEM, replicas=2, seed=1)
    with pytest.raises(ValueError, match="No observable 'q' was recorded"):
        observables.phase_weights(made, by="q", cut=1.25)
    with pytest.raises(ValueError, match="chi2 names no two phases"):
        observables.phase_weights(made)
    with pytest.raises(ValueError, match="single number"):
        observables.energy_distribution(made, beta=[0.5, 1.0])
    with pytest.raises(ValueError, match="edges"):
        observables.distribution(made, "s1", bins=[2.0, 1.0])
    with pytest.raises(ValueError, match="at least 2"):
        observables.density_of_states(made, bins=1)
    with pytest.raises(TypeError, match="ladder"):
        observables.partition_function("ladder.nc")
    with pytest.raises(ValueError, match="telescoped"):
        observables.Pool(made, volumes="guessed")
