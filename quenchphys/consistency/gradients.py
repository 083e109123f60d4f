"""Gradients of a problem: against derivatives of its energy and prior, and these against differences."""

from __future__ import annotations

import numpy as np

from quenchphys.consistency.comparison import scale_of, worst
from quenchphys.consistency.measurement import STEP, Found

RELIABLE, WRONG = 0.02, 0.1  # relative: two differences agree, and a derivative is not theirs
ENOUGH = 0.25  # share of draws with such differences


def check_gradients(found: Found) -> None:
    for name in ("energy", "log_prior"):
        of = found[name]
        # The constant of log_prior is free, so only differences count; that of the energy is not.
        constant = 0.0 if name == "energy" or "own_value" not in of else np.nanmedian(of["own_value"] - of["value"])
        if "own_value" in of:
            value = of["own_value"] - constant
            if (at := worst(value, of["value"], scale_of(of["value"]))) is not None:
                raise ValueError(
                    f"{name}_and_grad gives {value[at]:.6g} on a prior draw on which {name} gives {of['value'][at]:.6g}"
                )
            if (at := worst(of["own_slope"], of["slope"], of["size"])) is not None:
                raise ValueError(
                    f"the gradient of {name}_and_grad along a random direction is {of['own_slope'][at]:.6g} on a prior "
                    f"draw, on which the derivative of {name} is {of['slope'][at]:.6g}"
                )
        _check_derivative(name, of)


def _check_derivative(name: str, of: Found) -> None:
    """Differences against the derivative, on the draws on which two of them agree: no kink, no core, no rounding."""
    wide, narrow, slope = (of[part].astype(float) for part in ("wide", "narrow", "slope"))
    noise = 1e-6 * scale_of(of["value"]) / STEP
    reliable = (np.abs(wide - narrow) + noise < RELIABLE * np.abs(narrow)) & np.isfinite(slope)
    if reliable.mean() < ENOUGH:
        return
    apart = np.abs(narrow[reliable] - slope[reliable]) / np.abs(narrow[reliable])
    if np.median(apart) > WRONG:
        at = np.flatnonzero(reliable)[int(np.argmax(apart))]
        raise ValueError(
            f"the derivative of {name} along a random direction is {slope[at]:.6g} on a prior draw by automatic "
            f"differentiation, and {narrow[at]:.6g} by differences of its values"
        )
