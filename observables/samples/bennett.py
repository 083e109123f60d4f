"""The absolute scale of a walk: log c by Bennett's acceptance ratio with exact draws from the prior.

Chains have the density pi(x) w(U)/c with an unknown c = int pi w, draws from the prior have pi(x).  Where both are found
their numbers must agree: with n samples of chains and m draws, and r = (n/m) w/c, the best use of both is the c at which

    sum over draws of r/(1 + r) = sum over samples of 1/(1 + r)

(Bennett 1976).  Only log w at either enters.  Its variance is about one over the sum of r/(1 + r)^2 over all of them: the
number of samples that could as well be draws, or the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from observables.samples.of_walks import Chain

Array = np.ndarray

FAR = 40.0  # beyond all log w: there every sample could be a draw, or every draw a sample


class Scale(NamedTuple):
    """log c of the chains of a walk."""

    log_c: float
    without: Array
    """log c without one of the chains, (chain,), to first order"""
    meetings: Array
    """samples and draws of each chain that could be either, (chain,)"""


def scale_of(chains: Sequence[Chain]) -> Scale:
    """log c from the samples of all chains and the prior draws that came with them.

    Parameters
    ----------
    chains
        Chains with one weight w, such as `Pool(walk).chains`.

    Returns
    -------
    Scale
        log c, log c without each chain (for the jackknife), and how often samples and draws met in each chain.

    Examples
    --------
    >>> scale_of(observables.Pool(walk).chains).log_c
    """
    ratio = np.log(sum(chain.log_w.size for chain in chains) / sum(chain.prior_log_w.size for chain in chains))

    def sums(log_c: float) -> tuple[Array, Array]:
        """Draws minus samples and (minus) the derivative of that with respect to log c, (chain,)."""
        found = []
        for chain in chains:
            could = expit(ratio + chain.prior_log_w - log_c), expit(log_c - ratio - chain.log_w)
            found.append([could[0].sum() - could[1].sum(), sum((p * (1 - p)).sum() for p in could)])
        surplus, slope = np.array(found).T
        return surplus, slope

    parts = [part for chain in chains for part in (chain.log_w, chain.prior_log_w)]
    known = np.concatenate([part[np.isfinite(part)] for part in parts]) + ratio
    log_c = float(brentq(lambda log_c: sums(log_c)[0].sum(), known.min() - FAR, known.max() + FAR, xtol=1e-9))
    surplus, slope = sums(log_c)
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that meet no draw have no scale
        without = log_c + (surplus.sum() - surplus) / (slope.sum() - slope)
    return Scale(log_c, without, slope)
