"""P(E) and the barrier of a first-order transition, diagnostics in words, figures."""

import matplotlib
import numpy as np
import pytest

import observables
from observables.peaks import deepest_valley
from tests.support import synthetic

matplotlib.use("Agg")
PROBLEM = synthetic.TwoPhases()


@pytest.fixture(scope="module")
def ladder():
    return synthetic.ladder(PROBLEM, particles=200, replicas=8, seed=4, ess=0.8, last=17.0)


def test_energy_distribution_has_two_peaks(ladder):
    found = observables.energy_distribution(ladder, bins=np.linspace(14, 52, 77))
    exact = PROBLEM.canonical().logpdf(found.energy)
    seen = found.bin_ess > 50
    z = ((found.log_p - exact) / found.log_p_err).where(seen).dropna("energy")
    assert z.size > 50
    assert np.abs(z).max() < 6
    assert 0.4 < np.abs(z).median() < 1.1
    curve = PROBLEM.canonical().logpdf(np.linspace(14, 52, 7601))
    depth = deepest_valley(curve)[0]
    assert abs(found.barrier - depth) < 4 * found.barrier_err + 0.05, (float(found.barrier), depth)
    assert abs(found.low_peak - 20) < 1
    assert abs(found.high_peak - 40) < 1
    np.testing.assert_allclose(found.free_energy, -found.log_p)


def test_barrier_does_not_depend_on_the_bins_shown(ladder):
    shown = [observables.energy_distribution(ladder, bins=bins) for bins in (20, 150)]
    assert float(shown[0].barrier) == float(shown[1].barrier)
    assert float(shown[0].barrier_err) == float(shown[1].barrier_err)


def test_barrier_error_is_the_scatter_of_ladders():
    """Peaks and valley are found anew in every ladder: their noise must be in the error of a single one."""
    exact = deepest_valley(PROBLEM.canonical().logpdf(np.linspace(14, 52, 7601)))[0]
    z = []
    for seed in range(24):
        made = synthetic.ladder(PROBLEM, particles=800, seed=100 + seed, ess=0.8, last=17.0)
        found = observables.energy_distribution(made, bins=10)
        z.append(float((found.barrier - exact) / found.barrier_err))
    # of 24 scores the mean has the error 0.2 and the variance 0.29
    assert abs(np.mean(z)) < 0.8, z
    assert 0.3 < np.var(z) < 2.2, z


def test_a_valley_of_a_few_samples_is_not_measured():
    few = synthetic.ladder(PROBLEM, particles=100, seed=1, ess=0.8, last=17.0)
    found = observables.energy_distribution(few)
    assert np.isnan(found.barrier) and np.isnan(found.barrier_equal_height)
    assert np.isfinite(found.log_p).mean() > 0.5


@pytest.mark.parametrize("errors", ["replicas", "genealogy"])
def test_barrier_of_any_observable(ladder, errors):
    found = observables.distribution(ladder, "energy", errors=errors)
    low, valley, high = PROBLEM.canonical().logpdf(np.array([20.0, float(found.valley), 40.0]))
    assert abs(found.barrier_low - (low - valley)) < 4 * found.barrier_low_err < 1.2
    assert abs(found.barrier_high - (high - valley)) < 4 * found.barrier_high_err < 1.2
    assert found.barrier == min(found.barrier_low, found.barrier_high)
    assert abs(found.low_peak - 20) < 1
    assert abs(found.high_peak - 40) < 1
    assert np.isnan(observables.distribution(ladder, "energy", beta=0.2, errors=errors).barrier)


def test_equal_height_is_where_the_peaks_are_equal(ladder):
    found = observables.energy_distribution(ladder)
    # log P at the peaks, tilted: -log w_i + (beta-1)-dependence of a normal density, exactly
    b = np.linspace(0.9, 1.1, 20001) - 1
    (m0, m1), (w0, w1) = PROBLEM.means, PROBLEM.widths
    height = [-np.log(w) - b * m + b**2 * w**2 / 2 for m, w in ((m0, w0), (m1, w1))]
    exact = 1 + b[np.argmin(np.abs(height[0] - height[1]))]
    assert abs(found.beta_equal_height - exact) < 4 * found.beta_equal_height_err + 2e-3
    equal = observables.energy_distribution(ladder, float(found.beta_equal_height))
    assert abs(equal.barrier - found.barrier_equal_height) < 0.3


def test_a_single_peak_has_no_barrier():
    made = synthetic.ladder(synthetic.Chi2(), replicas=8, seed=1)
    assert np.isnan(observables.energy_distribution(made).barrier)


def test_share_of_the_lower_phase(ladder):
    found = observables.phase_weights(ladder, by="energy", cut=30.0)
    assert abs(found.ordered_share - 0.5) < 4 * found.ordered_share_err < 0.2


def test_report_says_what_matters(ladder):
    text = observables.report(ladder)
    assert text == ladder.report(), "there is one report"
    for part in ("8 replicas", "effective samples", "log Z = ", "Quadrature", "WHAM minus telescoped"):
        assert part in text
    assert "WARNING" not in text
    tree = ladder.tree.copy()
    tree.attrs = {**ladder.attrs, "outcome": "frozen"}
    assert "WARNING: the ladder did not end as it should" in observables.report(type(ladder)(tree))


def test_diagnostics_add_up(ladder):
    found = observables.diagnostics(ladder)
    np.testing.assert_allclose(found.level_share.sum("level") + found.prior_share, 1)
    assert np.all(found.rungs > 3)
    # At a high temperature prior draws carry nearly everything, and the levels share what is left.
    hot = observables.diagnostics(ladder, beta=0.1)
    assert np.all(hot.rungs <= ladder.levels.sizes["level"])
    assert np.all(found.lineages >= 1)
    assert 0.3 < found.replica_spread / found.genealogy_error < 2.5


def test_disagreeing_replicas_are_noticed(ladder):
    tree = ladder.tree.copy()
    shifted = ladder.levels["log_volume"] + 3.0 * np.arange(8).reshape(8, 1)
    tree["levels"].dataset = ladder.levels.assign(log_volume=shifted)
    assert "replicas disagree" in observables.report(observables.Pool(type(ladder)(tree), volumes="telescoped"))


def test_figures_show_the_numbers(ladder):
    plot = observables.plot
    heat = observables.thermodynamics(ladder, [0.2, 0.6, 1.0])
    drawn = {
        "log_z": plot.partition_function(heat),
        "heat_capacity": plot.heat_capacity(heat),
        "energy_distribution": plot.energy_distribution(ladder),
        "free_energy": plot.free_energy(ladder),
        "density_of_states": plot.density_of_states(ladder),
    }
    np.testing.assert_allclose(drawn["log_z"].lines[0].get_ydata(), heat.log_z)
    np.testing.assert_allclose(drawn["heat_capacity"].lines[0].get_ydata(), heat.heat_capacity)
    for name, ax in drawn.items():
        assert np.isfinite(ax.lines[0].get_ydata()).mean() > 0.8, name
        assert ax.get_xlabel() and ax.get_ylabel(), name
    assert len(plot.ladder(ladder)[0].lines) == 8
    assert plot.distribution(ladder, "s1").get_xlabel() == "s1"
    with pytest.raises(ValueError, match="plane"):
        plot.configurations(ladder)
    fields = observables.posterior(ladder, draws=5)
    square = fields.assign(field=(("chain", "draw", "y", "x"), np.random.default_rng(0).normal(size=(8, 5, 4, 4))))
    assert len(plot.configurations(square, count=3)) == 3
    matplotlib.pyplot.close("all")
