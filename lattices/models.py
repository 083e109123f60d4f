"""Constructors of the models, with checks of couplings and shapes."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lattices.field import ScalarField
from lattices.graph import Graph, from_links
from lattices.torus import Torus, periodic

MOST_AXES = 20
SMALLEST, LARGEST = 1e-18, 1e18  # of a coupling: its square must have a place in single precision
POPULATION = 1000  # configurations of float32 that must fit into memory: even the modes of a larger lattice take minutes


def phi4(
    L: int | None = None,
    *,
    mu2: float,
    lam: float = 1.0,
    m0_sq: float = 1.0,
    stiffness: float = 1.0,
    dim: int | None = None,
    shape: Sequence[int] | None = None,
) -> ScalarField:
    """phi^4 theory on a periodic lattice.

    S = sum_x [stiffness/2 sum_mu (phi_{x+mu} - phi_x)^2 + mu2/2 phi^2 + lam phi^4].

    Parameters
    ----------
    L
        Sites along every axis of a hypercubic lattice; give either L or shape.
    mu2
        Mass parameter; it may be negative.
    lam
        Coefficient of phi^4, positive.
    m0_sq
        Squared mass of the free-field prior, positive.
    stiffness
        Factor of the squared differences over links, positive.
    dim
        Number of axes of length L, 2 unless given.
    shape
        Length of every axis, instead of L and dim.

    Returns
    -------
    ScalarField
        A problem for `quenchphys.quench`.

    Examples
    --------
    >>> import lattices
    >>> lattices.phi4(L=32, mu2=-0.7, lam=0.125).shape
    (32, 32)
    >>> lattices.phi4(shape=(4, 6, 8), mu2=-0.7).dims
    ('x', 'y', 'z')
    """
    lattice = periodic(_checked_shape(L, dim, shape))
    return _field("phi4", lattice, mu2, {4: lam}, m0_sq, stiffness)


def phi6(
    L: int | None = None,
    *,
    mu2: float,
    lam: float = -1.0,
    eta: float = 0.2,
    m0_sq: float = 1.0,
    stiffness: float = 2.0,
    dim: int | None = None,
    shape: Sequence[int] | None = None,
) -> ScalarField:
    """phi^6 theory on a periodic lattice, with a first-order transition where lam < 0.

    S = sum_x [stiffness/2 sum_mu (phi_{x+mu} - phi_x)^2 + mu2/2 phi^2 + lam phi^4 + eta phi^6].

    Parameters
    ----------
    L
        Sites along every axis of a hypercubic lattice; give either L or shape.
    mu2
        Mass parameter; at the default couplings two phases coexist near 2.28 on large lattices.
    lam
        Coefficient of phi^4; negative for a first-order transition.
    eta
        Coefficient of phi^6, positive.
    m0_sq
        Squared mass of the free-field prior, positive.
    stiffness
        Factor of the squared differences over links, positive; at the default of 2 a link costs (phi_{x+mu} - phi_x)^2.
    dim
        Number of axes of length L, 2 unless given.
    shape
        Length of every axis, instead of L and dim.

    Returns
    -------
    ScalarField
        A problem for `quenchphys.quench`.

    Examples
    --------
    >>> import lattices
    >>> model = lattices.phi6(L=16, mu2=2.2866)
    >>> model.softness, sorted(model.phases)
    (32.0, ['disordered', 'ordered'])
    """
    lattice = periodic(_checked_shape(L, dim, shape))
    return _field("phi6", lattice, mu2, {4: lam, 6: eta}, m0_sq, stiffness)


# Models that studies and the command line know by name: functions that take the couplings by keyword and L or shape.
MODELS: dict[str, Callable[..., ScalarField]] = {"phi6": phi6, "phi4": phi4}


def scalar_field(
    shape: Sequence[int],
    *,
    mu2: float,
    couplings: Mapping[int, float] | None = None,
    m0_sq: float = 1.0,
    stiffness: float = 1.0,
) -> ScalarField:
    """A scalar field with any even potential on a periodic lattice.

    S = sum_x [stiffness/2 sum_mu (phi_{x+mu} - phi_x)^2 + mu2/2 phi^2 + sum_n couplings[n] phi^n].

    Parameters
    ----------
    shape
        Length of every axis, at least 2; any number of axes.
    mu2
        Mass parameter; positive if there are no couplings.
    couplings
        {power: coefficient} with even powers of at least 4, the highest with a positive coefficient; a free field
        without.
    m0_sq
        Squared mass of the free-field prior, positive.
    stiffness
        Factor of the squared differences over links, positive.

    Returns
    -------
    ScalarField
        A problem for `quenchphys.quench`.

    Examples
    --------
    >>> import lattices
    >>> lattices.scalar_field((6, 10), mu2=0.3, couplings={4: -0.5, 8: 0.1}).potential
    {2: 0.15, 4: -0.5, 8: 0.1}
    """
    lattice = periodic(_checked_shape(None, None, shape))
    return _field("scalar field", lattice, mu2, couplings or {}, m0_sq, stiffness)


def scalar_field_on_graph(
    links: Any,
    *,
    mu2: float,
    couplings: Mapping[int, float] | None = None,
    m0_sq: float = 1.0,
    stiffness: float = 1.0,
) -> ScalarField:
    """A scalar field with any even potential on any lattice, given by its links.

    The action has stiffness/2 (phi_x - phi_y)^2 for every link listed, twice for one that is listed twice.
    NetKet switches JAX to double precision and sets a device mesh for the whole process when it is imported; the
    environment variables NETKET_ENABLE_X64=0 and NETKET_SHARDING=0 prevent both.

    Parameters
    ----------
    links
        A NetKet graph such as `netket.graph.Triangular([6, 6])`, or a sequence of links (site, site) that connect the
        sites 0 ... V-1.
    mu2
        Mass parameter; positive if there are no couplings.
    couplings
        {power: coefficient} with even powers of at least 4, the highest with a positive coefficient; a free field
        without.
    m0_sq
        Squared mass of the free-field prior, positive.
    stiffness
        Factor of the squared differences over links, positive.

    Returns
    -------
    ScalarField
        A problem for `quenchphys.quench`; a configuration has the shape (V,).

    Examples
    --------
    >>> import lattices
    >>> ring = lattices.scalar_field_on_graph([(0, 1), (1, 2), (2, 0)], mu2=0.5, couplings={4: 0.3})
    >>> ring.shape, ring.dims
    ((3,), ('site',))
    """
    return _field("scalar field on a graph", from_links(links), mu2, couplings or {}, m0_sq, stiffness)


def _field(
    name: str, lattice: Torus | Graph, mu2: float, couplings: Mapping[int, float], m0_sq: float, stiffness: float
) -> ScalarField:
    mu2, m0_sq, stiffness = _number("mu2", mu2), _number("m0_sq", m0_sq), _number("stiffness", stiffness)
    if m0_sq <= 0:
        raise ValueError(f"m0_sq must be positive, because the prior cannot be normalised otherwise; got {m0_sq}")
    if stiffness <= 0:
        raise ValueError(f"stiffness must be positive; got {stiffness}")
    interaction = _checked_couplings(mu2, couplings)
    powers = tuple(sorted(interaction))
    coefficients = tuple(interaction[n] for n in powers)
    return ScalarField(lattice, mu2, coefficients, m0_sq, stiffness, powers, name)


def _checked_couplings(mu2: float, couplings: Mapping[int, float]) -> dict[int, float]:
    if not isinstance(couplings, Mapping):
        raise TypeError(f"couplings must be a dict such as {{4: lam, 6: eta}}; got {couplings!r}")
    for n in couplings:
        if not isinstance(n, int) or n < 4 or n % 2:
            raise ValueError(f"powers in couplings must be even and at least 4 (phi^2 is mu2); got {n!r}")
    interaction = {n: _number(f"the coefficient of phi^{n}", c) for n, c in couplings.items()}
    highest = max((n for n, c in interaction.items() if c != 0), default=2)
    leading = mu2 if highest == 2 else interaction[highest]
    if leading <= 0:
        which = "mu2" if highest == 2 else f"the coefficient of phi^{highest}"
        raise ValueError(
            f"the potential is unbounded below: {which} is {leading}, but the highest power needs a positive coefficient"
        )
    return interaction


def _checked_shape(L: int | None, dim: int | None, shape: Sequence[int] | None) -> tuple[int, ...]:
    if (L is None) == (shape is None):
        given = "neither was given" if L is None else f"both were given, L={L} and shape={tuple(shape or ())}"
        raise ValueError(f"Give either L or shape of the lattice (--L or --shape); {given}.")
    if shape is None:
        lengths: tuple = (L,) * _dimension(2 if dim is None else dim)
    elif dim is not None:
        raise ValueError(f"dim belongs to L, since a shape has its own number of axes; got dim={dim} and shape={shape}")
    elif isinstance(shape, str) or not isinstance(shape, Sequence) or len(shape) == 0:
        raise ValueError(f"shape must be a sequence of integers such as (6, 10); got {shape!r}")
    elif len(shape) > MOST_AXES:
        raise ValueError(f"shape must have at most {MOST_AXES} lengths; got {len(shape)}")
    else:
        lengths = tuple(shape)
    try:
        checked = tuple(operator.index(length) for length in lengths)
    except TypeError:
        raise ValueError(f"lengths of a lattice must be integers; got {lengths}") from None
    if min(checked) < 2:
        raise ValueError(f"every length of a lattice must be at least 2; got {checked}")
    needed, memory = 4 * POPULATION * math.prod(checked), _memory()
    if needed > memory:
        raise MemoryError(
            f"a lattice of {' x '.join(map(str, checked))} sites is too large: a population of {POPULATION} configurations "
            f"takes {needed / 1e9:.3g} GB, and this machine has {memory / 1e9:.3g} GB"
        )
    return checked


def _memory() -> float:
    """Bytes of memory of the machine."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _dimension(dim: int) -> int:
    try:
        checked = operator.index(dim)
    except TypeError:
        raise ValueError(f"dim must be an integer; got {dim!r}") from None
    if not 1 <= checked <= MOST_AXES:
        raise ValueError(f"dim must be at least 1 and at most {MOST_AXES}; got {dim}")
    return checked


def _number(name: str, given: Any) -> float:
    try:
        number = float(given)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number; got {given!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite; got {number}")
    if number and not SMALLEST <= abs(number) <= LARGEST:
        raise ValueError(f"{name} must be zero or of a size from {SMALLEST:g} to {LARGEST:g}; got {number}")
    return number
