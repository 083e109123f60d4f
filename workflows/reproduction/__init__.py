"""The experiments of the paper: one module for each table or figure, which registers itself by defining `EXPERIMENT`."""

from __future__ import annotations

from workflows.registry import defined_in
from workflows.reproduction.experiment import Experiment

# Tables in the order of the paper, then figures.
ORDER = (
    "analytic", "networks", "bayes-factors", "phi6", "mobility", "path-length", "budget",
    "sketch", "scaling", "marginal", "barrier", "configurations", "softness", "cadence", "radial",
)  # fmt: skip


def experiments() -> dict[str, Experiment]:
    """Every experiment by its name, in the order of the paper."""
    found = {one.name: one for one in defined_in(__name__, __path__, "EXPERIMENT")}
    return {name: found[name] for name in ORDER if name in found}
