"""Numbers with errors as they are printed: 2.29493(95)."""

from __future__ import annotations

import numpy as np


def number(value: float, error: float) -> str:
    """A value with its error in the last digits: 2.29493(95)."""
    if not (np.isfinite(value) and np.isfinite(error)) or error <= 0:
        return f"{value:.6g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    shown = f"{error * 10**digits:.0f}" if digits else f"{error:.0f}"
    return f"{value:.{digits}f}({shown})"
