"""How far do fluctuations reach: the second-moment correlation length of recorded averages."""

from __future__ import annotations

import numpy as np

from lattices.field import ScalarField


def correlation_length(model: ScalarField, m2, s_min):
    """xi = sqrt[(chi / S(k_min) - 1) / khat_min^2], from the averages <m2> and <s_min> (numbers or arrays).

    chi = V <m^2> is the structure factor at zero momentum, so this belongs to the symmetric phase.  Exact for a free
    field: xi = sqrt(stiffness) / mass.  NaN where chi < S(k_min).
    """
    chi = model.lattice.sites * np.asarray(m2, float)
    excess = chi / np.asarray(s_min, float) - 1
    return np.sqrt(np.where(excess >= 0, excess, np.nan) / model.lattice.lowest_eigenvalue)
