"""Quadrature over telescoped volumes, as in the paper: a cross-check of the estimator.

    Z(beta) = beta^(nu+1)/Gamma(nu+1) * integral of G_nu(E) exp(-beta E) dE

Between levels log G is taken as linear in E.  Above the first level the integral is exact for the prior draws,
e^{-beta U} Q(nu+1, beta (E_0 - U)) each; below the last level it is exact for its particles, with P = 1 - Q.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import gammaln, logsumexp

from observables.samples.of_ladders import Replica
from observables.samples.pool import Pool, Source
from quenchphys.smc.tails import log_lower_tail, log_upper_tail

Array = np.ndarray


def quadrature(ladder: Source, beta: Any = 1.0) -> xr.Dataset:
    """log Z by quadrature over the levels of a quenched ladder, replica by replica.

    Parameters
    ----------
    ladder : Ladder, several of them, or Pool
        Quenched ladders.
    beta : float or sequence of floats
        Inverse temperatures, positive.

    Returns
    -------
    Dataset
        log_z over (replica, beta), and the shares of Z above the first level and below the last one.

    Examples
    --------
    >>> found = observables.quadrature(ladder, beta=[0.5, 1.0])
    >>> found.log_z.mean("replica")
    """
    pool = Pool.of_levels(ladder, "A quadrature over levels")
    if any(replica.softness is None for replica in pool.replicas):
        raise ValueError("The quadrature is over the energies of quenched levels; this ladder is a tempered one.")
    betas = np.atleast_1d(np.asarray(beta, float))
    if not np.all(betas > 0):
        raise ValueError(f"beta must be positive, but {betas.min():g} was given.")
    parts = np.array([[_parts(replica, b) for b in betas] for replica in pool.replicas])  # (R, B, 3)
    total = logsumexp(parts, axis=2)
    shares = np.exp(parts - total[..., None])
    dims = ("replica", "beta")
    return xr.Dataset(
        {
            "log_z": (dims, total, {"long_name": "log Z by quadrature over the levels", "units": "1"}),
            "above": (dims, shares[..., 0], {"long_name": "share of Z above the first level", "units": "1"}),
            "below": (dims, shares[..., 2], {"long_name": "share of Z below the last level", "units": "1"}),
        },
        coords={"beta": betas},
        attrs=pool.attrs,
    )


def level_marginal(ladder: Source, beta: float = 1.0) -> xr.Dataset:
    """The paper's P(E), G_nu(E) exp(-beta E) normalised, at the levels of each replica: P(U) smoothed by the slack.

    Parameters
    ----------
    ladder : Ladder, several of them, or Pool
        Quenched ladders.
    beta : float
        Inverse temperature, positive.

    Returns
    -------
    Dataset
        energy and log_p over (replica, level).

    Examples
    --------
    >>> found = observables.level_marginal(ladder)
    >>> found.energy.isel(replica=0), found.log_p.isel(replica=0)
    """
    pool = Pool.of_levels(ladder, "The distribution over levels")
    if any(replica.softness is None for replica in pool.replicas):
        raise ValueError("Only a quenched ladder has a level marginal; this ladder is a tempered one.")
    longest = max(len(replica.level) for replica in pool.replicas)
    energy, log_p = (np.full((len(pool.replicas), longest), np.nan) for _ in range(2))
    for r, replica in enumerate(pool.replicas):
        nu = float(replica.softness or 0.0)
        log_z = logsumexp(_parts(replica, beta))
        here = slice(0, len(replica.level))
        energy[r, here] = replica.level
        log_p[r, here] = replica.telescoped - beta * replica.level + (nu + 1) * np.log(beta) - gammaln(nu + 1) - log_z
    dims = ("replica", "level")
    return xr.Dataset(
        {
            "energy": (dims, energy, {"long_name": "level energy E", "units": "nats"}),
            "log_p": (dims, log_p, {"long_name": "log of the probability density of the level energy", "units": "1"}),
        },
        coords={"beta": float(beta)},
        attrs=pool.attrs,
    )


def _parts(replica: Replica, beta: float) -> list[float]:
    """log of the three parts of Z: above the first level, between the levels, below the last one."""
    nu = float(replica.softness or 0.0)
    top = replica.prior_energy.astype(float)
    live = np.isfinite(top)
    tail = log_upper_tail(nu, beta * (replica.level[0] - top[live]))
    above = logsumexp(-beta * top[live] + tail) - np.log(len(top))

    log_integrand = replica.telescoped - beta * replica.level
    step = -np.diff(replica.level)
    rise = np.diff(log_integrand)
    # integral of exp(linear) over a step: exp(left) * step * (exp(rise) - 1)/rise
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(np.abs(rise) < 1e-8, 1 + rise / 2, np.expm1(rise) / rise)
    middle = logsumexp(log_integrand[:-1] + np.log(step * mean)) if len(step) else -np.inf

    energy = replica.particle_energy[-1].astype(float)
    room = replica.level[-1] - energy
    inside = (room > 0) & np.isfinite(replica.log_weight[-1])
    log_terms = (
        replica.log_weight[-1][inside].astype(float)
        - nu * np.log(room[inside])
        - beta * energy[inside]
        + log_lower_tail(nu, beta * room[inside])
    )
    below = replica.telescoped[-1] + logsumexp(log_terms)
    return [above, middle + (nu + 1) * np.log(beta) - gammaln(nu + 1), below]
