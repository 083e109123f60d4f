"""What a ladder says: one estimator, then Z(beta), g(E), P(E), F(E), order parameters and phases, with errors."""

from __future__ import annotations

import importlib
from typing import Any

from observables.balance import equal_weight
from observables.critical import binder
from observables.diagnostics import diagnostics, report
from observables.energy import density_of_states, energy_distribution
from observables.flattening import flattened
from observables.heights import equal_height
from observables.order import order_parameters, phase_weights
from observables.phases import phase_averages
from observables.pool import Pool
from observables.posterior import posterior
from observables.profile import distribution
from observables.quadrature import level_marginal, quadrature
from observables.thermodynamics import partition_function, thermodynamics
from observables.walks import flat_weight, walked

__all__ = [
    "Pool",
    "binder",
    "density_of_states",
    "diagnostics",
    "distribution",
    "energy_distribution",
    "equal_height",
    "equal_weight",
    "flat_weight",
    "flattened",
    "level_marginal",
    "order_parameters",
    "partition_function",
    "phase_averages",
    "phase_weights",
    "plot",
    "posterior",
    "quadrature",
    "report",
    "thermodynamics",
    "walked",
]


def __getattr__(name: str) -> Any:
    """`observables.plot` imports matplotlib, so it is loaded when first asked for."""
    if name == "plot":
        return importlib.import_module("observables.plot")
    raise AttributeError(f"module 'observables' has no attribute {name!r}")
