"""Coexistence points: the coupling of equal weight and that of equal height against exact values."""

import json

import numpy as np
import pytest
from scipy import optimize, stats

import observables
from observables import peaks
from quenchphys.ladder import Ladder
from tests.support import synthetic

PROBLEM = synthetic.Chi2()
CUT = 2.4


def exact(share=0.5):
    """a with P(s1 >= CUT) = share: under weights exp(-a s1), s1 has a Gamma distribution."""

    def excess(a):
        return stats.gamma(PROBLEM.d1 / 2, scale=2 / (1 + 2 * a)).sf(CUT) - share

    return optimize.brentq(excess, 0.5, 5.0)


@pytest.fixture(scope="module")
def ladder():
    return synthetic.ladder(PROBLEM, particles=150, replicas=16, seed=11, ess=0.85)


@pytest.mark.parametrize("errors", ["replicas", "genealogy"])
def test_root_is_within_its_error(ladder, errors):
    for share in (0.5, 0.3):
        found = observables.equal_weight(ladder, "a", by="s1", cut=CUT, share=share, errors=errors)
        assert abs(found.a - exact(share)) < 4 * found.a_err
        assert 0.002 < found.a_err < 0.05
        there = observables.phase_weights(ladder, by="s1", cut=CUT, a=float(found.a), errors=errors)
        assert float(there.ordered_share) == pytest.approx(share, abs=1e-6)
        np.testing.assert_allclose(found.a_err, there.log_odds_err / np.abs(found.log_odds_slope), rtol=0.05)


def test_error_is_the_scatter_of_the_blocks(ladder):
    found = observables.equal_weight(ladder, "a", by="s1", cut=CUT)
    assert float(found.a_err) == pytest.approx(float(found.a_block.std(ddof=1)) / 4, rel=0.1)


def test_ladders_at_two_couplings(ladder):
    other = synthetic.ladder(synthetic.Chi2(sigma=0.45), particles=150, replicas=16, seed=12, ess=0.85)
    both = observables.equal_weight([ladder, other], "a", by="s1", cut=CUT, b=2.0)
    alone = observables.equal_weight(ladder, "a", by="s1", cut=CUT, b=2.0)
    assert abs(both.a - exact()) < 4 * both.a_err
    assert both.a_err < alone.a_err


def test_refusals(ladder):
    with pytest.raises(ValueError, match="no free coupling 'mu2'"):
        observables.equal_weight(ladder, "mu2", by="s1", cut=CUT)
    with pytest.raises(ValueError, match="no free coupling 'a'"):
        observables.equal_weight(ladder, "a", by="s1", a=1.0)
    with pytest.raises(ValueError, match="share"):
        observables.equal_weight(ladder, "a", by="s1", cut=CUT, share=1.0)
    with pytest.raises(ValueError, match="no sample of the ordered phase"):
        observables.equal_weight(ladder, "a", by="s1", cut=500.0)
    with pytest.raises(ValueError, match="single number"):
        observables.equal_weight(ladder, "a", by="s1", cut=CUT, b=[1.0, 2.0])


def with_energy_as_observable(made):
    """The same ladder, whose U is c u with the coupling c = 1 and the recorded observable u."""
    tree = made.tree.copy()
    for group in ("particles", "prior"):
        tree[group].dataset = getattr(made, group).assign(u=getattr(made, group)["energy"])
    tree.attrs = {**made.attrs, "couplings": json.dumps({"c": (1.0, "u", 1.0)})}
    return Ladder(tree)


@pytest.mark.parametrize("start", [None, 0.93])
def test_equal_height_is_where_two_normal_peaks_are_equal(start):
    """P(u) at c is a mixture of normal densities, of which a tilt moves and weighs the two by known amounts."""
    problem = synthetic.TwoPhases()
    made = synthetic.ladder(problem, particles=200, replicas=8, seed=4, ess=0.8, last=17.0)
    found = observables.equal_height(with_energy_as_observable(made), by="u", cut=30.0, start=start)
    low, high = ((m, w) for m, w in zip(problem.means, problem.widths, strict=True))

    def log_p(u, c):
        """Up to a constant."""
        return problem.canonical().logpdf(u) - (c - 1) * u

    def peak(mean, width, c):
        return optimize.minimize_scalar(lambda u: -log_p(u, c), bounds=(mean - 3 * width, mean + 3 * width)).x

    exact = optimize.brentq(lambda c: log_p(peak(*low, c), c) - log_p(peak(*high, c), c), 0.9, 1.1)
    valley = optimize.minimize_scalar(lambda u: log_p(u, exact), bounds=(22, 36)).x
    depth = log_p(peak(*low, exact), exact) - log_p(valley, exact)
    assert abs(found.c - exact) < 4 * found.c_err < 0.1
    assert abs(found.barrier - depth) < 4 * found.barrier_err < 1.2
    np.testing.assert_allclose([found.low_peak, found.high_peak], [20, 40], atol=1.5)
    # There is one peak finder: at the root both peaks of the distribution are equally high.
    there = observables.distribution(with_energy_as_observable(made), "u", c=float(found.c))
    assert abs(there.barrier_low - there.barrier_high) < 0.1
    assert float(there.barrier) == pytest.approx(float(found.barrier), abs=0.1)


def test_a_single_peak_has_no_equal_height(ladder):
    with pytest.raises(ValueError, match=r"has no two peaks around s1 = 2\.4"):
        observables.equal_height(ladder, "a", by="s1", cut=CUT)


UPPER, MEANS, WIDTHS, RUN = 0.7, (0.0, 1.5), (0.5, 0.8), 1.1


def log_z_of_phases(c):
    return np.log([1 - UPPER, UPPER]) - c * np.array(MEANS) + c**2 * np.array(WIDTHS) ** 2 / 2


def exact_root():
    return optimize.brentq(lambda c: np.subtract(*log_z_of_phases(c)), 0.0, 1.5)


def two_phases_with_a_coupling(rng, groups=16, size=400):
    """A walk with w = 1 and U = c X: X is normal with a mean and a width of its own in either phase."""
    phase = rng.random((groups, size, 1)) < UPPER
    x = np.array(MEANS)[phase.astype(int)] + np.array(WIDTHS)[phase.astype(int)] * rng.standard_normal(phase.shape)
    seen = {"energy": RUN * x, "x": x, "phase": phase.astype(float)}
    attrs = {"couplings": json.dumps({"c": (RUN, "x", 1.0)}), "phases": json.dumps({})}
    return synthetic.walk(seen, np.zeros((groups, size)), **attrs)


def test_errors_at_the_root_include_that_of_the_root():
    """Over many walks: everything that is read where both phases have equal weight, against the closed form."""
    root = exact_root()
    x = np.array(MEANS) - root * np.array(WIDTHS) ** 2
    exact = {"c": root, "latent_heat": root * (x[0] - x[1]), "energy": root * x, "log_z": log_z_of_phases(root), "x": x}
    exact_there = {"log_odds_slope": x[0] - x[1], "x_ordered": x[1], "x_disordered": x[0]}
    z = []
    for seed in range(60):
        pool = observables.Pool(two_phases_with_a_coupling(np.random.default_rng(seed)))
        found = observables.coexisting_phases(pool, by="phase", cut=0.5)
        there = observables.equal_weight(pool, by="phase", cut=0.5)
        # Both phases have the same weight by definition, so that log Z of either has one error.
        np.testing.assert_allclose(*found.log_z_err.values, rtol=0.02)
        assert np.all(found.share_err < 1e-3)
        scores = [(found[name] - value) / found[f"{name}_err"] for name, value in exact.items()]
        scores += [(there[name] - value) / there[f"{name}_err"] for name, value in exact_there.items()]
        z.append(np.concatenate([np.ravel(row) for row in scores]))
    # Of 60 scores the mean has the error 0.13 and the standard deviation 0.1; Student's t with 15 has 1.07.
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.5), np.mean(z, axis=0)
    assert np.all((np.std(z, axis=0) > 0.75) & (np.std(z, axis=0) < 1.45)), np.std(z, axis=0)


def test_a_shallow_valley_is_read_to_its_bottom():
    """Two normal peaks two nats above the valley, as exact shares of bins: nothing but the windows can be wrong."""
    x = np.linspace(-5, 5, 401)
    p = [stats.norm(-2.2, 0.9), stats.norm(2.2, 1.0)]
    middle = 0.5 * (x[1:] + x[:-1])
    curve = np.log(p[0].pdf(middle) + p[1].pdf(middle))
    tilt = peaks.equal_heights(curve, middle)
    marks = peaks.Landmarks.of(curve - tilt * middle)
    bins = peaks.edges_of([marks])
    edges = x[bins]
    log_p = np.log(np.diff(p[0].cdf(edges) + p[1].cdf(edges)) / np.diff(edges))
    three = peaks.readings(bins, marks, x)
    _, depth, *_ = peaks.at_equal_heights(three, log_p[None], 0.5 * (edges[1:] + edges[:-1]), tilt)[0]
    fine = np.linspace(-5, 5, 20_001)
    exact = peaks.deepest_valley(np.log(p[0].pdf(fine) + p[1].pdf(fine)) - tilt * fine)[0]
    assert depth == pytest.approx(exact, abs=0.005)
    assert 1.5 < exact < 2.5
