"""Wrong input is refused at once, with one sentence that names it."""

import pytest

import lattices


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: lattices.phi6(L=8, mu2=2.0, m0_sq=0.0), "m0_sq must be positive.*got 0.0"),
        (lambda: lattices.phi6(L=8, mu2=2.0, stiffness=-1), "stiffness must be positive; got -1.0"),
        (lambda: lattices.phi6(L=8, mu2=2.0, eta=-0.2), r"unbounded below: the coefficient of phi\^6 is -0.2"),
        (lambda: lattices.phi6(L=8, mu2=2.0, eta=0.0), r"unbounded below: the coefficient of phi\^4 is -1.0"),
        (lambda: lattices.phi4(L=8, mu2=2.0, lam=-0.1), r"unbounded below: the coefficient of phi\^4 is -0.1"),
        (lambda: lattices.scalar_field((8,), mu2=-0.1), "unbounded below: mu2 is -0.1"),
        (lambda: lattices.scalar_field((8,), mu2=0.0, couplings={4: 0.0}), "unbounded below: mu2 is 0.0"),
        (lambda: lattices.scalar_field((8,), mu2=1.0, couplings={3: 0.1, 4: 1.0}), "even and at least 4.*got 3"),
        (lambda: lattices.scalar_field((8,), mu2=1.0, couplings={2: 0.1}), r"phi\^2 is mu2\); got 2"),
        (lambda: lattices.scalar_field((8,), mu2=1.0, couplings={"4": 0.1}), "got '4'"),
        (lambda: lattices.phi4(L=1, mu2=1.0), r"at least 2; got \(1, 1\)"),
        (lambda: lattices.phi4(shape=(4, 0), mu2=1.0), r"at least 2; got \(4, 0\)"),
        (lambda: lattices.phi4(L=8.0, mu2=1.0), r"must be integers; got \(8.0, 8.0\)"),
        (lambda: lattices.phi4(shape=(4, 4.5), mu2=1.0), r"must be integers; got \(4, 4.5\)"),
        (lambda: lattices.scalar_field(8, mu2=1.0), "shape must be a sequence of integers.*got 8"),
        (lambda: lattices.scalar_field((), mu2=1.0), r"shape must be a sequence of integers.*got \(\)"),
        (lambda: lattices.phi4(mu2=1.0), "either L or shape"),
        (lambda: lattices.phi4(L=4, shape=(4, 4), mu2=1.0), "either L or shape"),
        (lambda: lattices.phi4(L=4, dim=0, mu2=1.0), "dim must be at least 1 and at most 20; got 0"),
        (lambda: lattices.phi4(L=4, dim=2**40, mu2=1.0), "at most 20; got 1099511627776"),
        (lambda: lattices.phi4(shape=range(2, 2**40), mu2=1.0), "at most 20 lengths; got 1099511627774"),
        (lambda: lattices.phi4(L=4, dim=1.5, mu2=1.0), "dim must be an integer; got 1.5"),
        (lambda: lattices.phi4(shape=(4, 4), dim=2, mu2=1.0), "dim belongs to L"),
        (lambda: lattices.phi4(L=4, mu2=float("nan")), "mu2 must be finite; got nan"),
        (lambda: lattices.phi4(L=4, mu2=1.0, lam=1e-60), r"must be zero or of a size from 1e-18 to 1e\+18; got 1e-60"),
        (lambda: lattices.phi6(L=4, mu2=2.3, eta=1e-12).phases, "the couplings of this phi6 are of too different sizes"),
        (lambda: lattices.phi4(L=4, mu2="low"), "mu2 must be a number; got 'low'"),
        (lambda: lattices.scalar_field_on_graph([(0, 1), (2, 3)], mu2=1.0), "leave 2 separate parts"),
        (lambda: lattices.scalar_field_on_graph([(0, 1), (1, 3)], mu2=1.0), "site 2 has none"),
        (lambda: lattices.scalar_field_on_graph([(0, 1), (1, 1)], mu2=1.0), "two different sites"),
        (lambda: lattices.scalar_field_on_graph([(0, 1, 2)], mu2=1.0), "pairs of site numbers"),
        (lambda: lattices.scalar_field_on_graph([], mu2=1.0), "pairs of site numbers"),
        (lambda: lattices.scalar_field_on_graph([(0.0, 1.0)], mu2=1.0), "pairs of site numbers.*float"),
    ],
)
def test_wrong_values(build, says):
    with pytest.raises(ValueError, match=says) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_wrong_types():
    with pytest.raises(TypeError, match="couplings must be a dict"):
        lattices.scalar_field((8,), mu2=1.0, couplings=[0.1])
    with pytest.raises(TypeError, match=r"NetKet graph or a sequence of links.*got 7"):
        lattices.scalar_field_on_graph(7, mu2=1.0)


@pytest.mark.parametrize("L", [1 << 14, 100_000])
def test_a_lattice_beyond_all_memory_is_refused_at_once(L, monkeypatch):
    monkeypatch.setattr("lattices.models._memory", lambda: 25e9)
    with pytest.raises(MemoryError, match=f"a lattice of {L} x {L} sites is too large: .* has 25 GB"):
        lattices.phi6(L=L, mu2=2.3)
