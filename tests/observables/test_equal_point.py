"""The coupling of equal weight: the root against its exact value, and against the log odds it is the root of."""

import numpy as np
import pytest
from scipy import optimize, stats

import observables
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
