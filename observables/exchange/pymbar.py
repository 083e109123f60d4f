"""Samples as pymbar takes them: reduced potentials u_kn of every state at every sample, and N_k.

A state is a density pi(x) f_k(U(x)), and its reduced potential is u_k = -log f_k(U): zero for the draws from the prior,
-nu log(E_k - U) at a quenched level (infinite where U >= E_k), beta_k U at a tempered one, -log w(U) for chains.  MBAR's
free energies f_k are minus the logarithms of the volumes, up to a constant that the prior fixes at zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from observables.samples.of_ladders import Replica
from observables.samples.pool import Pool, Source

Array = np.ndarray

LARGEST = 4e9  # bytes of u_kn, beyond which MBAR itself would hardly be possible


class ReducedPotentials(NamedTuple):
    """What `pymbar.MBAR(u_kn, N_k)` takes, and what our own estimator would put in its place."""

    u_kn: Array
    """(K, n) reduced potential of every state at every sample; infinite where the density of the state is zero"""
    N_k: Array
    """(K,) samples of every state; state 0 are the draws from the prior"""
    f_k: Array
    """(K,) -log G_k, our own volumes, as `initial_f_k`"""
    energy: Array
    """(n,) U of every sample: `u_ln = beta * energy` is the reduced potential of a temperature.  NaN for the draws from the
    prior of a walk, whose energies are not recorded"""


def to_pymbar(ladder: Source, *, replica: int = 0, every: int = 1, seed: int = 0) -> ReducedPotentials:
    """Reduced potentials of the levels of a ladder, or of a walk and its prior, for `pymbar.MBAR`.

    MBAR takes samples of equal weight.  Levels whose particles carry weights are resampled by them (the ladder of
    `quench(..., resample_ess=1)` carries none).  pymbar switches JAX to double precision for the whole process when it is
    imported; the engine of quenchphys is not affected, code of your own may be.

    Parameters
    ----------
    ladder : Ladder, Walk, or Pool of one of them
        The samples.
    replica : int
        Which replica of a ladder; the levels of others are states of their own.  All chains of a walk are taken together.
    every : int
        Take every so many levels only: u_kn has K^2 N numbers for K levels of N particles.
    seed : int
        Seed of the resampling.

    Returns
    -------
    ReducedPotentials
        u_kn, N_k, f_k (our own volumes) and energy.

    Examples
    --------
    >>> from pymbar import MBAR
    >>> states = observables.to_pymbar(ladder)
    >>> mbar = MBAR(states.u_kn, states.N_k, initial_f_k=states.f_k)
    >>> -mbar.compute_perturbed_free_energies(np.stack([0 * states.energy, states.energy]))["Delta_f"][0, 1]  # log Z
    """
    pool = Pool.of(ladder)
    if not pool.of_ladders:
        return _of_walk(pool)
    if not isinstance(replica, int | np.integer) or not 0 <= replica < len(pool.replicas):
        raise ValueError(f"replica must be a whole number from 0 to {len(pool.replicas) - 1}, but {replica!r} was given.")
    if not isinstance(every, int | np.integer) or every < 1:
        raise ValueError(f"every must be a positive whole number, but {every!r} was given.")
    return _of_replica(pool.replicas[int(replica)], int(every), np.random.default_rng(seed))


def _of_replica(replica: Replica, every: int, rng: np.random.Generator) -> ReducedPotentials:
    levels = np.arange(0, len(replica.level), every)
    particles = replica.shape[1]
    size = 8.0 * (len(levels) + 1) * (replica.draws + len(levels) * particles)
    if size > LARGEST:
        enough = int(np.ceil(every * np.sqrt(size / LARGEST)))
        raise MemoryError(
            f"The reduced potentials of {len(levels)} levels of {particles} particles would take {size / 1e9:.3g} GB (at "
            f"most {LARGEST / 1e9:g} are allowed); take fewer levels with every={enough}."
        )
    log_share = replica.log_share[replica.draws :].reshape(replica.shape)[levels]
    drawn = [_equal(log_share[i], replica.particle_energy[level], rng) for i, level in enumerate(levels)]
    prior = replica.prior_energy[np.isfinite(replica.prior_energy)]
    energy = np.concatenate([prior, *drawn]).astype(float)
    mixture = replica.mixture
    u_kn = np.zeros((len(levels) + 1, len(energy)))
    u_kn[1:] = -mixture.log_factors(energy)[:, levels].T
    return ReducedPotentials(
        u_kn,
        np.array([len(prior), *(len(some) for some in drawn)]),
        np.concatenate([[0.0], -replica.log_volume[levels]]),
        energy,
    )


def _equal(log_share: Array, energy: Array, rng: np.random.Generator) -> Array:
    """Energies of one level with equal weights: as they are, or resampled."""
    share = np.exp(log_share)
    live = share > 0
    if np.ptp(log_share[live]) < 1e-5:
        return energy[live]
    positions = (rng.uniform() + np.arange(len(energy))) / len(energy)
    return energy[np.searchsorted(np.cumsum(share) / share.sum(), positions).clip(max=len(energy) - 1)]


def _of_walk(pool: Pool) -> ReducedPotentials:
    """Two states: the prior, and all chains."""
    pool.check_one_coupling("pymbar")
    chains, scale = pool.chains, pool.scale
    assert scale is not None
    prior, log_w = (np.concatenate([getattr(chain, name) for chain in chains]) for name in ("prior_log_w", "log_w"))
    u_kn = np.zeros((2, len(prior) + len(log_w)))
    u_kn[1] = -np.concatenate([prior, log_w])
    energy = np.concatenate([np.full(len(prior), np.nan), *(chain.energy for chain in chains)])
    return ReducedPotentials(u_kn, np.array([len(prior), len(log_w)]), np.array([0.0, -scale.log_c]), energy)
