"""What a ladder says: one estimator, then Z(beta), g(E), P(E), F(E), order parameters and phases, with errors."""

from __future__ import annotations

import importlib
from typing import Any

from observables.checks import diagnostics, report
from observables.critical import binder
from observables.distributions import distribution
from observables.draws import posterior
from observables.equal_height_point import equal_height
from observables.equal_weight_point import equal_weight
from observables.level_quadrature import level_marginal, quadrature
from observables.multicanonical_weight import flattened
from observables.order import order_parameters, phase_weights
from observables.phases import phase_averages
from observables.samples.of_walks import flat_weight, walked
from observables.samples.pool import Pool
from observables.spectrum import density_of_states, energy_distribution
from observables.thermal import partition_function, thermodynamics

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
