"""Exports, each read by the library it is made for: the same averages, the same log Z, errors of the same size."""

from __future__ import annotations

import json
import sys
import warnings

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

import observables
from observables.estimation.estimator import estimate
from observables.estimation.moments import no_moments
from observables.estimation.targets import Targets
from observables.exchange.pyerrors import Chains
from tests.support import synthetic

PROBLEM = synthetic.Chi2()
PHASES = json.dumps({"low": ("x", None, 0.3), "high": ("x", 0.3, None)})


@pytest.fixture(scope="module")
def ladder():
    return synthetic.ladder(PROBLEM, particles=200, replicas=4, seed=1)


@pytest.fixture(scope="module")
def walk():
    """Autoregressive chains in x, whose stationary density N(0, 1) is that of the prior times w, with w = exp(U/2).

    The energy is U = x^2, so that the prior is pi = N(0, 1)/w up to a factor: N(0, 1/2).  At beta = 1 the target is
    exp(-x^2) exp(-U) = N(0, 1/4), <x^2> = 1/4 and Z = sqrt(1/2).
    """
    rng = np.random.default_rng(5)
    groups, sweeps, chains, memory = 64, 600, 2, 0.6
    x = np.empty((groups, sweeps, chains))
    x[:, 0] = rng.normal(size=(groups, chains))
    for sweep in range(1, sweeps):
        x[:, sweep] = memory * x[:, sweep - 1] + np.sqrt(1 - memory**2) * rng.normal(size=(groups, chains))
    prior = rng.normal(size=(groups, 400)) * np.sqrt(0.5)
    samples = {"energy": x**2, "x": x, "log_w": x**2 / 2}
    couplings = json.dumps({"a": (1.0, "x2", 1.0)})
    samples["x2"] = x**2
    return synthetic.walk(samples, prior_log_w=prior**2 / 2, phases=PHASES, couplings=couplings)


@pytest.fixture
def pymbar():
    """pymbar switches JAX to double precision for the whole process; other tests must not notice."""
    before = jax.config.jax_enable_x64
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymbar
    yield pymbar
    jax.config.update("jax_enable_x64", before)


def log_z_of_blocks(source, beta):
    """log Z of each block by the balance heuristic, without the correction of the logarithm."""
    pool = observables.Pool(source)
    return estimate(pool, Targets.single(pool, beta, {}, "This has"), no_moments).log_z[:, 0]


@pytest.fixture
def unweighted(monkeypatch):
    """Ladders that are resampled at every level, so that no particle carries a weight."""
    monkeypatch.setattr(synthetic, "RESAMPLE_BELOW", 2.0)
    return lambda softness: synthetic.ladder(
        PROBLEM, softness, particles=60, replicas=2, seed=3, last=3.0 if softness else 12
    )


@pytest.mark.parametrize("softness", [2.0, None])
def test_mbar_gives_our_log_z_with_the_same_volumes(softness, pymbar, unweighted):
    ladder = unweighted(softness)
    for replica in (0, 1):
        states = observables.to_pymbar(ladder, replica=replica)
        log_w = np.asarray(pymbar.mbar_solvers.mbar_log_W_nk(states.u_kn, states.N_k, states.f_k))
        for beta in (0.5, 1.0):
            # State 0 is the prior, u = f = 0: its column is -log D.
            found = logsumexp(log_w[:, 0] - beta * states.energy)
            assert found == pytest.approx(log_z_of_blocks(ladder, beta)[replica], abs=1e-6)


def test_mbar_of_its_own_agrees_within_the_bins_of_our_volumes(pymbar, unweighted):
    """MBAR's own solution uses every energy, ours a histogram of them: their log Z differ by a thousandth of the error."""
    uniform = unweighted(2.0)
    states = observables.to_pymbar(uniform)
    mbar = pymbar.MBAR(states.u_kn, states.N_k, initial_f_k=states.f_k)
    found = mbar.compute_perturbed_free_energies(np.stack([0 * states.energy, states.energy]))
    assert -found["Delta_f"][0, 1] == pytest.approx(log_z_of_blocks(uniform, 1.0)[0], abs=1e-4)
    assert 0.03 < found["dDelta_f"][0, 1] < 0.3


def test_levels_with_weights_are_resampled_and_every_other_level_will_do(ladder, pymbar):
    states = observables.to_pymbar(ladder, replica=2, every=2)
    assert states.u_kn.shape == (len(states.N_k), states.N_k.sum())
    assert len(states.N_k) == 1 + -(-ladder.levels.sizes["level"] // 2)
    log_w = np.asarray(pymbar.mbar_solvers.mbar_log_W_nk(states.u_kn, states.N_k, states.f_k))
    error = float(observables.partition_function(ladder).log_z_err) * 2  # of one replica of four
    assert logsumexp(log_w[:, 0] - states.energy) == pytest.approx(log_z_of_blocks(ladder, 1.0)[2], abs=error)


def test_mbar_finds_the_scale_of_a_walk(walk, pymbar):
    states = observables.to_pymbar(walk)
    mbar = pymbar.MBAR(states.u_kn, states.N_k)
    assert mbar.f_k[1] == pytest.approx(states.f_k[1], abs=1e-6)
    assert states.f_k[1] == pytest.approx(-np.log(np.sqrt(2)), abs=0.02)  # c = E_prior[w] = sqrt(2)


def test_pyerrors_has_our_values_and_errors_of_the_size_of_our_jackknife(walk):
    """The jackknife over 64 groups knows its error to 9%."""
    found = observables.to_pyerrors(walk)
    order, energy = observables.order_parameters(walk), observables.thermodynamics(walk)
    odds = observables.phase_weights(walk)
    ours = {"log_z": energy, "energy": energy, "x": order, "log_odds": odds}
    for name, source in ours.items():
        assert found[name].value == pytest.approx(float(source[name]), rel=1e-6, abs=1e-9)
        assert found[name].dvalue == pytest.approx(float(source[f"{name}_err"]), rel=0.2), name
    assert abs(found["energy"].value - 0.25) < 4 * found["energy"].dvalue
    assert abs(found["log_z"].value - 0.5 * np.log(0.5)) < 4 * found["log_z"].dvalue
    # Along a chain <x> has the autocorrelation time (1 + memory)/(2 (1 - memory)) = 2, less the weights of the target.
    assert 0.8 < found["x"].e_tauint["made up"] < 2.2
    assert len(found["x"].names) == 128


def test_pyerrors_gets_every_chain_in_the_order_of_its_sweeps(walk):
    pool = observables.Pool(walk)
    chains = Chains(pool, Targets.single(pool, 1.0, {}, "This has"), 1.0)
    for number, (group, chain) in enumerate(np.ndindex(64, 2)):
        assert np.array_equal(chains.recorded["x"][number], walk.data["x"].values[group, :, chain])


def test_anesthetic_weighs_as_we_do(ladder):
    samples = observables.to_anesthetic(ladder, beta=0.7, a=2.2)
    ours = observables.order_parameters(ladder, beta=0.7, a=2.2)
    for name in ("energy", "s1", "s2"):
        assert samples[name].mean() == pytest.approx(float(ours[name]), rel=1e-5)
    assert samples.neff(beta="kish") == pytest.approx(float(ours.ess), rel=0.02)
    corrected = observables.partition_function(ladder, beta=0.7, a=2.2)
    assert samples.attrs["log_z"] == pytest.approx(float(corrected.log_z), abs=2 * float(corrected.log_z_err) ** 2)
    assert samples.get_label("energy") == "$U$"


def test_anesthetic_takes_a_walk(walk):
    samples = observables.to_anesthetic(walk)
    assert samples.x2.mean() == pytest.approx(float(observables.order_parameters(walk)["x2"]), rel=1e-6)


def test_arviz_summaries_have_our_averages(ladder):
    import arviz

    data = observables.to_arviz(ladder, draws=2000)
    table = arviz.summary(data, round_to="none")
    ours = observables.order_parameters(ladder)
    for name in ("energy", "s1", "s2"):
        # Systematic resampling moves a mean by much less than the error of the ladder.
        assert table.loc[name, "mean"] == pytest.approx(float(ours[name]), abs=0.3 * float(ours[f"{name}_err"]))
    exact = PROBLEM.canonical(1.0)
    assert table.loc["energy", "sd"] == pytest.approx(exact.std(), rel=0.1)
    assert (table["r_hat"] < 1.05).all()
    assert data.prior["energy"].mean().item() == pytest.approx(PROBLEM.density.mean(), rel=0.03)
    assert data.attrs["problem"] == "chi2"
    assert data.posterior["energy"].shape == (4, 2000)


def test_arviz_sees_the_correlations_of_a_walk(walk):
    import arviz

    data = observables.to_arviz(walk, draws=1200)
    assert data.posterior["x"].mean().item() == pytest.approx(float(observables.order_parameters(walk)["x"]), abs=0.01)
    whole = 64 * 1200
    assert arviz.ess(data, var_names="x")["x"].item() < 0.6 * whole


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda ladder, walk: observables.to_pyerrors(ladder), TypeError, "needs a walk"),
        (lambda ladder, walk: observables.to_pymbar(ladder, replica=4), ValueError, "from 0 to 3, but 4 was given"),
        (lambda ladder, walk: observables.to_pymbar(ladder, every=0), ValueError, "every must be a positive whole number"),
        (lambda ladder, walk: observables.to_arviz(ladder, draws=0), ValueError, "draws must be a positive"),
        (lambda ladder, walk: observables.to_arviz(ladder, beta=[0.5, 1.0]), ValueError, "beta must be a single number"),
        (lambda ladder, walk: observables.to_anesthetic(ladder, c=1.0), ValueError, "no coupling 'c'"),
        (lambda ladder, walk: observables.to_anesthetic(ladder, beta=50.0), ValueError, "do not reach low enough"),
    ],
)
def test_what_cannot_be_exported_is_refused_in_one_sentence(call, error, says, ladder, walk):
    with pytest.raises(error, match=says):
        call(ladder, walk)


def test_too_many_levels_for_mbar_are_refused_before_anything_is_allocated(ladder, monkeypatch):
    monkeypatch.setattr("observables.exchange.pymbar.LARGEST", 1e6)
    with pytest.raises(MemoryError, match=r"would take .* GB .* take fewer levels with every=\d+"):
        observables.to_pymbar(ladder)


@pytest.mark.parametrize("name", ["arviz", "anesthetic", "pyerrors"])
def test_a_library_that_is_missing_is_named(name, ladder, walk, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    source = walk if name == "pyerrors" else ladder
    with pytest.raises(ImportError, match=rf"to_{name} needs the library {name}.*'\.\[exchange\]'"):
        getattr(observables, f"to_{name}")(source)
