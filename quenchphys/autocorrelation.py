"""Integrated autocorrelation times of chains.

    tau = 1 + 2 sum_t rho(t),   summed up to the first t >= 5 tau (Sokal's window)

in units of one sweep: n samples count as n / tau independent ones.  Wolff 2004, Comput. Phys. Commun. 156, 143.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

WINDOW = 5.0  # times tau, up to which correlations are summed


def integrated_time(values: Array) -> float:
    """tau of chains of one distribution, from the mean of their autocorrelation functions.

    Parameters
    ----------
    values : array (sweep, chain)
        Successive values of every chain.

    Returns
    -------
    float
        In sweeps; 1 for independent values, NaN for values that never change.

    Examples
    --------
    >>> integrated_time(walk.energy[0])
    """
    return gamma_method(values)[0]


def gamma_method(values: Array) -> tuple[float, float]:
    """tau of chains of one distribution, and its standard error, tau sqrt(2 (2 W + 1)/N) for a window W and N samples.

    Parameters
    ----------
    values : array (sweep, chain)
        Successive values of every chain.

    Returns
    -------
    tuple of float
        In sweeps; NaN for values that never change.

    Examples
    --------
    >>> tau, error = gamma_method(walk.energy[0])
    """
    series = np.asarray(values, float)
    series = series.reshape(len(series), -1)
    count = len(series)
    centred = series - series.mean()  # of all chains: a chain that never leaves a phase is not short of memory
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, size, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=0)[:count].mean(axis=1) / (count - np.arange(count))
    if not covariance[0] > 0:
        return float("nan"), float("nan")
    tau = 2 * np.cumsum(covariance / covariance[0]) - 1
    far = np.arange(count) >= WINDOW * tau
    window = int(np.argmax(far)) if far.any() else count - 1
    found = float(max(tau[window], 1.0))
    return found, found * float(np.sqrt(2 * (2 * window + 1) / series.size))
