"""Laws of a critical point, from synthetic curves with known exponents and corrections: right answers and verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workflows.scaling.averages import averaged
from workflows.scaling.critical_laws import _widened, crossings_of, exponent, fitted_point, pairs_of
from workflows.scaling.curves import Curves, joint

C, NU, GAMMA = -1.27, 1.0, 1.75  # critical coupling, nu and gamma/nu
STAR = {"binder": 0.6107, "ratio": 0.905}
SLOPE = {"binder": -1.0, "ratio": -2.5}
PART = {"binder": 1.0, "ratio": -0.5}  # of the correction
SIZES = (8, 12, 16, 24, 32)
BLOCKS = 16


def curves(rng, sizes=SIZES, omega=1.75, amplitude=0.15, noise=6e-4, bend=0.0, second=0.0, blocks=BLOCKS):
    """Curves with corrections to scaling, and blocks that scatter about them; `bend` moves those of the largest but one."""
    found = []
    for number, L in enumerate(sizes):
        axis = C + np.linspace(-1, 1, 33) * 0.25 / L ** (1 / NU)
        x = (axis - C) * L ** (1 / NU)
        correction = amplitude * L**-omega + second * L ** (-omega - 1)
        odd = bend if number == len(sizes) - 2 else 0.0

        def scatter(scale):
            """(1 + blocks, point): the mean of blocks that are off by a constant and a slope, and without each of them."""
            off = scale * np.sqrt(blocks) * (rng.standard_normal((blocks, 1)) + rng.standard_normal((blocks, 1)) * x)  # noqa: B023
            return np.vstack([off.mean(axis=0), (off.sum(axis=0) - off) / (blocks - 1)])

        tables = {
            name: STAR[name] + odd + PART[name] * correction
            + (SLOPE[name] * x + 0.3 * x**2) * (1 + correction) + scatter(noise)
            for name in STAR
        }  # fmt: skip
        growth = L**GAMMA * np.exp(-1.5 * x) * (1 + correction)
        tables["fluctuation"] = growth * (1 + scatter(2 * noise))
        found.append(Curves(L, axis, tables))
    return found


NAMES = {"coupling": "mu2_critical", "binder": "binder_critical", "ratio": "xi_over_L_critical"}


def laws_of(sizes, omega=None):
    return fitted_point(sizes, crossings_of(sizes), NAMES, omega) | {
        "one_over_nu": exponent(sizes, "slope", STAR, "one_over_nu", omega),
        "gamma_over_nu": exponent(sizes, "fluctuation", STAR, "gamma_over_nu", omega),
    }


def coupling_of(sizes, omega=None):
    return fitted_point(sizes, crossings_of(sizes), NAMES, omega)["mu2_critical"]


EXACT = {
    "mu2_critical": C,
    "binder_critical": STAR["binder"],
    "xi_over_L_critical": STAR["ratio"],
    "one_over_nu": 1 / NU,
    "gamma_over_nu": GAMMA,
}


@pytest.mark.parametrize("omega", [None, 1.75], ids=["any omega", "omega known"])
def test_errors_cover_the_truth(omega):
    rng = np.random.default_rng(7)
    z = {name: [] for name in EXACT}
    for _ in range(10):
        for name, law in laws_of(curves(rng), omega).items():
            z[name].append((law.value - EXACT[name]) / law.error)
    for name, scores in z.items():
        assert abs(np.mean(scores)) < 0.7, (name, np.mean(scores))
        assert 0.3 < np.std(scores) < 1.5, (name, np.std(scores))


def test_a_law_without_its_correction_would_be_wrong():
    """What the correction is for: the plain power law of the same curves is many errors off."""
    sizes = curves(np.random.default_rng(3), omega=1.0, amplitude=0.8, noise=1e-4)
    law = exponent(sizes, "slope", STAR, "one_over_nu", None)
    assert abs(law.value - 1 / NU) < 3 * law.error
    y = np.log([abs(size.slope("binder", size.where("binder", STAR["binder"]))[0]) for size in sizes])
    assert abs(np.polyfit(np.log(SIZES), y, 1)[0] - 1 / NU) > 0.01


def test_two_corrections_are_told_from_one():
    """Of opposite sign, and nearly as large at L = 8: fits with one exponent are ten errors off."""
    rng = np.random.default_rng(13)
    z = []
    for _ in range(4):
        laws = laws_of(curves(rng, omega=1.0, amplitude=0.3, second=-3.0, noise=1e-4))
        z.append([(laws[name].value - EXACT[name]) / laws[name].error for name in EXACT])
    assert np.abs(z).max() < 3, z
    assert np.abs(np.mean(z, axis=0)).max() < 1.6, z


@pytest.mark.parametrize("blocks, series", [(32, 4), (8, 2)])
def test_slopes_are_read_where_either_ratio_is_fixed(blocks, series):
    """Of few blocks only those at their own value: the covariance of more numbers is not known."""
    sizes = curves(np.random.default_rng(21), blocks=blocks)
    law = exponent(sizes, "slope", STAR, "one_over_nu", None)
    assert len(law.largest) == series
    assert all(abs(value - 1 / NU) < 4 * error for value, error in law.largest)
    assert abs(law.value - 1 / NU) < 3 * law.error
    assert len(exponent(sizes, "fluctuation", STAR, "gamma_over_nu", None).largest) == 2


def test_chi_squared_is_right_though_the_covariance_is_from_few_blocks():
    """Of four numbers of a size from 16 blocks: its mean is 4, and would be 6 with the covariance as it is."""
    rng = np.random.default_rng(22)
    values = []
    for _ in range(2000):
        some = rng.standard_normal((BLOCKS, 4))
        widened = _widened(np.cov(some.T) / BLOCKS, np.full(4, 8.0), BLOCKS)
        values.append(some.mean(axis=0) @ np.linalg.solve(widened, some.mean(axis=0)))
    assert abs(np.mean(values) - 4) < 4 * np.std(values) / np.sqrt(len(values))
    # Of two sizes with two numbers each, every size has a block of its own.
    assert np.allclose(_widened(np.eye(4), np.array([8.0, 8.0, 16.0, 16.0]), BLOCKS), np.eye(4) * 15 / 12)


def test_sizes_that_follow_no_law_are_not_trusted():
    law = coupling_of(curves(np.random.default_rng(4), noise=1e-4, bend=0.01))
    assert "do not follow the law that gives mu2 critical" in law.doubt()


def test_a_number_that_the_smallest_size_moves_is_not_trusted():
    law = exponent(curves(np.random.default_rng(5)), "slope", STAR, "one_over_nu", None)
    assert law.without is not None
    law = replace(law, found=law.found._replace(p_value=0.5))
    for moved, trusted in ((0.5, True), (1.5, False), (-1.5, False)):
        without = law.without._replace(value=law.value + moved * law.error)
        doubt = replace(law, without=without).doubt()
        assert (doubt == "") is trusted
        assert trusted or f"Without L = 8 one over nu = {law.value:.5g}" in doubt
    assert "too few sizes" in replace(law, without=None).doubt()
    assert "too few sizes" in replace(law, found=law.found._replace(corrected=False)).doubt()


def test_a_number_far_from_the_largest_sizes_is_not_trusted():
    """Crossings of B that are still far from the answer, whose small error comes from xi/L."""
    rng = np.random.default_rng(11)
    sizes = curves(rng, omega=1.0, amplitude=0.5, noise=1e-4)
    law = coupling_of(sizes, 1.0)
    assert abs(law.value - C) < 4 * law.error
    assert "is extrapolated by" in law.doubt() and "add larger sizes" in law.doubt()
    small = laws_of(curves(rng, amplitude=0.02))
    assert not any("extrapolated" in law.doubt() for law in small.values())
    for name, law in small.items():  # what the largest sizes say is near the truth
        assert all(abs(value - EXACT[name]) < 4 * error for value, error in law.largest) and law.largest


def test_three_sizes_are_too_few_for_a_correction():
    sizes = curves(np.random.default_rng(6), sizes=(8, 16, 32))
    law = laws_of(sizes)["binder_critical"]
    assert law.without is None and law.doubt()


def test_known_ratios_make_the_coupling_better_known():
    rng = np.random.default_rng(17)
    z, gained = [], []
    for _ in range(10):
        sizes = curves(rng)
        crossings = crossings_of(sizes)
        (law,) = fitted_point(sizes, crossings, NAMES, 1.75, STAR).values()
        z.append((law.value - C) / law.error)
        gained.append(fitted_point(sizes, crossings, NAMES, 1.75)["mu2_critical"].error / law.error)
        assert all(abs(value - C) < 0.01 for value, _ in law.largest) and len(law.largest) == 2
    assert abs(np.mean(z)) < 0.7 and 0.3 < np.std(z) < 1.5
    assert min(gained) > 2


def test_ratios_of_another_class_follow_no_law():
    sizes = curves(np.random.default_rng(18), noise=1e-4)
    other = {"binder": STAR["binder"] + 0.02, "ratio": STAR["ratio"]}
    law = fitted_point(sizes, crossings_of(sizes), NAMES, 1.75, other)["mu2_critical"]
    assert "do not follow the law that gives mu2 critical" in law.doubt()


def test_pairs_are_doubled_sizes_where_there_are_such():
    assert pairs_of([8, 12, 16, 24, 32]) == [(8, 16), (12, 24), (16, 32)]
    assert pairs_of([8, 12, 18]) == [(8, 12), (12, 18)]


def test_the_covariance_is_that_of_the_jackknife():
    """Of two numbers that share a size: the mean of its blocks, and twice that plus another size's."""
    rng = np.random.default_rng(8)
    blocks = {L: rng.standard_normal(BLOCKS) for L in (8, 16)}
    axis = np.linspace(0, 1, 6)
    sizes = [
        Curves(L, axis, {"binder": np.array([b.mean(), *((b.sum() - b) / (BLOCKS - 1))])[:, None] + 0 * axis})
        for L, b in blocks.items()
    ]

    def read(some):
        first, second = (size.value("binder", 0.5)[0] for size in some)
        return np.array([first, 2 * first + second])

    _, covariance = joint(sizes, read)
    variance = {L: b.var(ddof=1) / BLOCKS for L, b in blocks.items()}
    wanted = [[variance[8], 2 * variance[8]], [2 * variance[8], 4 * variance[8] + variance[16]]]
    np.testing.assert_allclose(covariance, wanted, rtol=1e-9)


def test_an_average_contains_the_spread_of_its_models():
    """A constant that two cuts disagree on: the error is at least half of their distance."""
    sizes = np.repeat([8.0, 16.0, 32.0, 64.0], 2)
    y = np.array([0.1, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = averaged(lambda exponents: np.ones((8, 1)), y, np.eye(8) * 0.05**2, sizes, omega=1.0)[0]
    assert 0 < found.value < 0.03
    single = 0.05 / np.sqrt(8)
    assert found.error > 1.1 * single
