"""When two numbers of one configuration are the same: up to the rounding of sums in single precision."""

from __future__ import annotations

import numpy as np

ROUNDING = 2e-3  # relative error of float32 sums over many sites, amply
EXCEPTIONS = 0.01  # share of draws that may be odd: at the edge of a box, on a kink


def worst(seen: np.ndarray, expected: np.ndarray, scale: np.ndarray) -> int | None:
    """The draw at which two numbers differ most, if by more than rounding explains; None where both are not finite."""
    usable = np.isfinite(seen) & np.isfinite(expected)
    odd = np.isfinite(seen) != np.isfinite(expected)
    if odd.mean() > EXCEPTIONS:
        return int(np.argmax(odd))
    apart = np.where(usable, np.abs(seen - expected) / np.maximum(scale, 1e-30), 0.0)
    worst = int(np.argmax(apart))
    return worst if apart[worst] > ROUNDING else None


def scale_of(value: np.ndarray) -> np.ndarray:
    """Size of a number in which its rounding is measured: its own, and the median distance from the median."""
    known = value[np.isfinite(value)].astype(float)
    middle = float(np.median(np.abs(known - np.median(known)))) if known.size else 0.0
    return np.abs(value.astype(float)) + middle
