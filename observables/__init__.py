"""What a ladder says: one estimator, then Z(beta), g(E), P(E), F(E), order parameters and phases, with errors."""

from observables.order import order_parameters, phase_weights
from observables.record import Pool
from observables.thermodynamics import partition_function

__all__ = ["Pool", "order_parameters", "partition_function", "phase_weights"]
