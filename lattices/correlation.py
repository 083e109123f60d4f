"""The second-moment correlation length from recorded averages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lattices.field import ScalarField


def correlation_length(model: ScalarField, m2: ArrayLike, s_min: ArrayLike) -> np.ndarray:
    """Second-moment correlation length xi = sqrt[(chi / S(k_min) - 1) / khat_min^2].

    chi = V <m^2> is the structure factor at zero momentum, so this belongs to the symmetric phase.  It is exact for a
    free field: xi = sqrt(stiffness) / mass.

    Parameters
    ----------
    model
        The field, for its number of sites and its smallest momentum.
    m2, s_min
        Averages <m2> and <s_min> of the recorded observables, numbers or arrays.

    Returns
    -------
    numpy.ndarray
        xi in lattice spacings; NaN where chi < S(k_min).

    Examples
    --------
    >>> import lattices
    >>> free = lattices.scalar_field((12, 12), mu2=0.25, m0_sq=0.25)
    >>> chi, s_min = 1 / 0.25, 1 / (free.lattice.lowest_eigenvalue + 0.25)
    >>> round(float(lattices.correlation_length(free, chi / 144, s_min)), 6)
    2.0
    """
    chi = model.lattice.sites * np.asarray(m2, float)
    excess = chi / np.asarray(s_min, float) - 1
    return np.sqrt(np.where(excess >= 0, excess, np.nan) / model.lattice.lowest_eigenvalue)
