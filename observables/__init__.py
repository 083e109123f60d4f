"""What a ladder says: one estimator, then Z(beta), g(E), P(E), F(E), order parameters and phases, with errors."""

from observables.energy import density_of_states, energy_distribution
from observables.order import distribution, order_parameters, phase_weights
from observables.record import Pool
from observables.thermodynamics import partition_function, thermodynamics

__all__ = [
    "Pool",
    "density_of_states",
    "distribution",
    "energy_distribution",
    "order_parameters",
    "partition_function",
    "phase_weights",
    "thermodynamics",
]
