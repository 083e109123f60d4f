"""Energies of prior draws, from which a ladder must be able to start."""

from __future__ import annotations

import numpy as np


def check_energies(energy: np.ndarray, undefined: np.ndarray) -> None:
    """Refuse energies of prior draws from which no ladder can start.

    Parameters
    ----------
    energy
        (replica, draw), infinite where it is not defined.
    undefined
        Where it was NaN.
    """
    if undefined.all():
        raise ValueError(f"the energy is NaN on all {undefined.size} prior draws; it must be a number on most of them")
    finite = np.isfinite(energy)
    if not finite.any(axis=-1).all() or finite.mean() < 0.5:
        raise ValueError(
            f"the energy is infinite or NaN on {np.sum(~finite)} of {energy.size} prior draws; "
            "it must be finite on at least half of them"
        )
    if np.any(energy == -np.inf):
        raise ValueError(
            f"the energy is -infinity on {np.sum(energy == -np.inf)} prior draws; it must be bounded below"
        )
    if np.ptp(energy[finite]) == 0:
        raise ValueError(
            f"the energy is {energy[finite][0]:g} on every prior draw; it must depend on the configuration"
        )
