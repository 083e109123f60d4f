"""Incomplete gamma functions: which part of Z(beta) lies above and below an energy level.

With exp(-beta U) = beta^(nu+1)/Gamma(nu+1) int (E - U)_+^nu exp(-beta E) dE, a configuration of energy U carries the share

    Q(nu+1, beta (E_0 - U))    of exp(-beta U) above the level E_0,    P(nu+1, beta (E_0 - U)) = 1 - Q    below it,

Q and P the regularised upper and lower incomplete gamma functions.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc, gammaincc


def log_upper_tail(softness: float, x: np.ndarray) -> np.ndarray:
    """log Q(nu+1, max(x, 0)): log of the share above a level, x = beta (E_0 - U); a configuration above it has all there.

    Parameters
    ----------
    softness
        nu > -1.
    x
        beta times the slack, of any shape and sign.

    Returns
    -------
    ndarray
        Of the shape of x, between minus infinity and 0.

    Examples
    --------
    >>> log_upper_tail(0.0, np.array([-1.0, 0.0, 2.0]))  # nu = 0: Q = exp(-x)
    array([ 0.,  0., -2.])
    """
    with np.errstate(divide="ignore"):
        return np.log(gammaincc(softness + 1, np.maximum(x, 0.0)))


def log_lower_tail(softness: float, x: np.ndarray) -> np.ndarray:
    """log P(nu+1, x): log of the share below a level, x = beta (E_0 - U) of a configuration below it.

    Parameters
    ----------
    softness
        nu > -1.
    x
        beta times the slack, of any shape, not negative.

    Returns
    -------
    ndarray
        Of the shape of x, between minus infinity and 0.

    Examples
    --------
    >>> log_lower_tail(0.0, np.array([0.0, np.inf]))  # nu = 0: P = 1 - exp(-x)
    array([-inf,   0.])
    """
    with np.errstate(divide="ignore"):
        return np.log(gammainc(softness + 1, x))
