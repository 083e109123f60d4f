"""Effective samples for the gradients spent, by the convention of the paper.

One Kish number pools the particles of all levels of a run, N_Kish = (sum q)^2 / sum q^2, with

    quenched   q_kj = b_k w_kj,   b_k = G_k exp(-E_k) dE_k,   dE_k half the distance between the neighbours of level k
    tempered   q_kj = w_kj exp(-U_kj) / sum_l exp(-beta_l U_kj) / Z_l

where w are the carried weights, and G and Z are telescoped.  It counts neither common ancestors nor correlations, so it is a
nominal number; `diagnostics` has that of the estimator of this package, which weighs all levels and prior draws at once.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from observables.samples.of_ladders import Replica
from observables.samples.pool import Pool, Source

Array = np.ndarray

MILLION = 1e6


def efficiency(ladder: Source) -> xr.Dataset:
    """Pooled Kish effective sample size of the posterior, and the same per million gradients, as the paper reports it.

    Parameters
    ----------
    ladder : Ladder, several of them, or Pool
        Ladders whose files say how many gradients they took.

    Returns
    -------
    Dataset
        ess and gradients over replica, pilots included, and ess_per_million, the mean over replicas, with its error.

    Examples
    --------
    >>> found = observables.efficiency(ladder)
    >>> float(found.ess_per_million)
    """
    pool = Pool.of_levels(ladder, "A number of effective samples of all levels")
    spent: list[float] = []
    for one in pool.ladders:
        if "gradients" not in one.attrs:
            raise ValueError("This ladder does not say how many gradients it took.")
        replicas = one.levels.sizes["replica"]
        total = float(one.attrs["gradients"]) + float(one.attrs.get("pilot_gradients", 0.0))
        spent += [total / replicas] * replicas
    ess = np.array([_kish(_log_weights(replica)) for replica in pool.replicas])
    each = MILLION * ess / np.array(spent)
    scatter = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    result = xr.Dataset(
        {
            "ess": ("replica", ess),
            "gradients": ("replica", spent),
            "ess_per_million": each.mean(),
            "ess_per_million_err": scatter,
        }
    )
    result["ess"].attrs = {"long_name": "Kish number of all particles of a replica", "units": "1"}
    result["gradients"].attrs = {"long_name": "gradient evaluations of a replica", "units": "1"}
    result["ess_per_million"].attrs = {"long_name": "Kish number per million gradients", "units": "1"}
    result["ess_per_million_err"].attrs = {"long_name": "standard error of the same over replicas", "units": "1"}
    return result.assign_attrs(pool.attrs)


def _log_weights(replica: Replica) -> Array:
    """log q of all particles of all levels."""
    energy = replica.particle_energy.astype(float)
    log_w = replica.log_weight.astype(float)
    if replica.softness is not None:
        width = -np.gradient(replica.level) if len(replica.level) > 1 else np.ones(1)
        log_q = log_w + (replica.telescoped - replica.level + np.log(width))[:, None]
    else:
        log_mixture = np.full_like(energy, -np.inf)
        for beta, log_z in zip(replica.level, replica.telescoped, strict=True):  # all at once would need much memory
            log_mixture = np.logaddexp(log_mixture, -beta * energy - log_z)
        log_q = log_w - energy - log_mixture
    return np.where(np.isfinite(log_q), log_q, -np.inf).ravel()


def _kish(log_q: Array) -> float:
    return float(np.exp(2 * logsumexp(log_q) - logsumexp(2 * log_q)))
