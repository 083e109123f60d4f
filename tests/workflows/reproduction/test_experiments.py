"""What single experiments compute beside their ladders."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import lattices
import observables
import quenchphys as qp
from workflows.reproduction import analytic, cadence, configurations, mobility, phi6, scaling, sketch
from workflows.reproduction.experiment import Effort
from workflows.reproduction.methods import AUTO, NS, QES, SMC, per_million
from workflows.reproduction.table import collect


def test_cells_of_the_analytic_table_are_those_of_the_paper():
    cells = analytic.cells(analytic.EXPERIMENT.settings[Effort.PAPER])
    assert {(name, dim, method) for name, dim, method, _ in cells} == {
        (name, dim, method) for (name, dim), row in analytic.PAPER.items() for method in row
    }
    assert all(settings["particles"] == 1000 for *_, settings in cells)
    few = {
        (name, dim, method): settings
        for name, dim, method, settings in analytic.cells(analytic.EXPERIMENT.settings[Effort.STANDARD])
    }
    assert set(few) <= {(name, dim, method) for name, dim, method, _ in cells} | {cell for cell in few if cell[2] == AUTO}
    # A cell's own settings come before the common ones, those of a method before those of a target.
    own = analytic.EXPERIMENT.settings[Effort.STANDARD]["cells"]
    assert few["gaussian", 10_000, SMC] == {"particles": 500, "replicas": 4} | own["gaussian 10000 SMC"]
    assert few["gaussian", 1000, QES]["particles"] == own["gaussian 1000"]["particles"] < 500
    assert ("gaussian", 10_000, QES) not in few
    assert ("gaussian", 1000, NS) not in few and ("gaussian", 10, AUTO) in few


def test_tempering_should_miss_the_spike():
    """The value that SMC should give is log Z of the slab, computed here as that of a target without its spike."""
    target = qp.targets.spike_slab(10)
    slab = -0.5 * 10 * np.log(2.0)  # tau = 1/sqrt 2
    found = xr.Dataset({"log_z": slab, "log_z_err": 0.01, "kish": ("replica", [2000.0, 4000.0]), "gradients": 4e5})
    first, ess = analytic._rows("spike_slab", 10, SMC, target, found)
    assert collect([first])["deviation_exact"].item() == pytest.approx(0.0, abs=1e-9)
    assert ess.ours == per_million(found) == pytest.approx(3000 / 0.2)
    (quenched, _) = analytic._rows("spike_slab", 10, QES, target, found)
    assert collect([quenched])["deviation_exact"].item() == pytest.approx(np.log(0.1) / 0.01)


def test_volumes_of_soft_and_hard_levels_give_z():
    found = sketch.run(type("Bench", (), {"settings": {"points": 2001, "levels": 1001}})())
    np.testing.assert_allclose(found["ours"], found["exact"], atol=3e-3)
    # The score is the derivative of the logarithm of the density.
    x, rho = found["x"].values, found["density"].sel(nu=2.0).values
    inside = np.isfinite(found["score"].sel(nu=2.0).values) & (rho > 0.05)
    with np.errstate(divide="ignore"):
        slope = np.gradient(np.log(rho), x)
    np.testing.assert_allclose(
        found["score"].sel(nu=2.0).values[inside][5:-5], slope[inside][5:-5], rtol=0.02, atol=0.05
    )


def test_moves_at_the_wall_are_counted_on_the_engine():
    """Near the wall particles move less; overall they move as often as the kernel accepts."""
    found = mobility.measure(10, 60, 2, seed=1)
    count = dict(zip(found["count"].values.tolist(), found["counts"].values, strict=True))
    # Tuning before the first level makes a few transitions more than the ladder counts.
    assert float(found["gradients"]) <= count["proposals"] < 1.5 * float(found["gradients"])
    share, rate = count["moves"] / count["proposals"], count["moves of those"] / count["particles near"]
    assert 0.005 < count["particles near"] / count["proposals"] < 0.1
    assert rate < share and 0.4 < share < 0.8
    assert count["accepted of those"] < count["proposals near"] and count["accepted of those"] <= count["moves"]


def test_what_both_phases_and_one_should_give():
    assert phi6.reference("ordered_share", False)[0] == 0
    assert phi6.reference("log_z", False)[0] == -54.53
    share = phi6.reference("ordered_share", True)[0]
    assert np.log(share / (1 - share)) == pytest.approx(0.67)
    assert phi6.reference("log_z", True)[0] == pytest.approx(-54.53 + np.log1p(np.exp(0.67)))
    assert 0.184 < phi6.reference("q", True)[0] < 1.89


def test_exponents():
    assert scaling.power_law([10, 100, 1000], [3 * 10**1.5, 3 * 100**1.5, 3 * 1000**1.5]) == pytest.approx(
        (1.5, np.log(3))
    )
    # The printed levels times steps have the exponents that the paper's figure states.
    dims = list(scaling.PATHS)
    assert scaling.printed_exponent(QES, dims) == pytest.approx(1.21, abs=0.02)
    assert scaling.printed_exponent(SMC, dims) == pytest.approx(0.86, abs=0.02)


def test_exact_marginals_of_the_two_modes():
    x = np.linspace(-6, 6, 40_001)
    for width in (0.01, 1.0):
        p = cadence.exact_marginal(x, width)
        step = x[1] - x[0]
        assert p.sum() * step == pytest.approx(1.0, abs=1e-6)
        centre, tau2 = 1 / (1 + width**2), width**2 / (1 + width**2)
        assert (p * x**2).sum() * step == pytest.approx(centre**2 + tau2, rel=1e-6)
        edges = cadence._edges(width)
        assert np.all(np.diff(edges) > 0)


def test_a_small_lattice_goes_through_table_and_figure():
    """What the table and the figure of phi^6 read from a ladder, on a lattice that every method crosses."""
    ladder = qp.quench(lattices.phi6(L=4, mu2=2.33), particles=100, replicas=2, seed=1, progress=False)
    found = phi6.measure(ladder)
    rows = phi6._rows("phi6 L=4", "SMC 0.95", found)
    assert [row.quantity for row in rows] == ["levels", "log Z", "ordered share", "<|m|>", "<q>"]
    assert 0 < float(found["ordered_share"]) < 1 and float(found["gradients"]) > 0
    assert float(found["q"]) == pytest.approx(float(observables.order_parameters(ladder)["q"].squeeze()))
    # A ladder with our own kernel stands beside the paper's QES, and should see both phases.
    seen = phi6._rows("phi6 L=4", phi6.LADDER, found)[1]
    assert seen.paper.value == -53.76 and seen.exact == pytest.approx(phi6.reference("log_z", True)[0])
    # A share that nobody saw has no error, however small a number is found.
    none = phi6._rows("phi6 L=4", "SMC 0.95", found.assign(ordered_share=1e-40, ordered_share_err=2e-37))[2]
    assert np.isnan(none.ours_err) and np.isnan(none.exact)
    density = configurations.densities(ladder)
    for name, edges in configurations.EDGES.items():
        assert 0.8 < float((density[name].values * np.diff(edges)).sum()) <= 1 + 1e-6
    shown = configurations.representative(ladder)
    q = (shown["field"] ** 2).mean(("x", "y")).values
    np.testing.assert_allclose(q, list(configurations.SHOWN.values()), atol=0.3)
