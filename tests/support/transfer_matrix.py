"""Exact log Z and moments of a field on a ring: the transfer matrix by quadrature, in float64.

Independent of the package: nothing of it is imported.  A ring of `length` columns of `width` sites (1 or 2) has

    Z = tr T^length,   T(a, b) = exp[-v(a)/2 - stiffness/2 |a - b|^2 - v(b)/2],

v(a) the potential of a column and, for width 2, its two links stiffness (a_1 - a_2)^2.  The trapezoidal rule converges
exponentially for such smooth kernels that vanish at the ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Exact:
    log_z: float
    """log of Z over the norm of the prior"""
    phi2: float
    """<phi^2> of a site"""
    phi4: float


def ring(
    length: int,
    potential: dict[int, float],
    m0_sq: float,
    stiffness: float,
    width: int = 1,
    points: int = 201,
    largest: float = 6.0,
) -> Exact:
    """`potential` is {power: coefficient} of the whole action of a site, mu2/2 for power 2."""
    phi = np.linspace(-largest, largest, points)
    site = sum(c * phi**n for n, c in potential.items())
    if width == 1:
        column, step, tops = site, phi[1] - phi[0], phi
        distance = (phi[:, None] - phi) ** 2
    else:
        top, bottom = (a.ravel() for a in np.meshgrid(phi, phi, indexing="ij"))
        column = np.add.outer(site, site).ravel() + stiffness * (top - bottom) ** 2
        step, tops = (phi[1] - phi[0]) ** 2, top
        distance = (top[:, None] - top) ** 2 + (bottom[:, None] - bottom) ** 2
    lowest = column.min()
    half = np.exp(-(column - lowest) / 2)
    transfer = step * half[:, None] * np.exp(-stiffness / 2 * distance) * half
    eigenvalues, vectors = np.linalg.eigh(transfer)
    share = np.clip(eigenvalues / eigenvalues[-1], 0, None) ** length
    density = (vectors**2 * share).sum(axis=1) / share.sum()
    log_trace = length * (np.log(eigenvalues[-1]) - lowest) + np.log(share.sum())
    return Exact(
        log_z=float(log_trace - _log_prior_norm((length, width), m0_sq, stiffness)),
        phi2=float(density @ tops**2),
        phi4=float(density @ tops**4),
    )


def _log_prior_norm(shape: tuple[int, int], m0_sq: float, stiffness: float) -> float:
    axes = [4 * np.sin(np.pi * np.arange(n) / n) ** 2 for n in shape]
    return float(0.5 * np.log(2 * np.pi / (stiffness * np.add.outer(*axes) + m0_sq)).sum())
