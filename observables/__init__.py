"""Observables of ladders and walks: one estimator, then Z(beta), g(E), P(E), F(E), order parameters and phases, with errors.

Every function takes a ladder, a walk, several of them, or a `Pool`, and returns an `xarray.Dataset`.

>>> ladder = qp.quench(lattices.phi6(L=16, mu2=2.286))
>>> observables.partition_function(ladder, beta=[0.5, 1.0])
"""

from __future__ import annotations

import importlib
from typing import Any

from observables.checks import diagnostics, report
from observables.critical import binder
from observables.distributions import distribution
from observables.draws import posterior
from observables.effective_samples import efficiency
from observables.equal_point import coexisting_phases, equal_height, equal_weight
from observables.evidence import bayes_factor
from observables.exchange.anesthetic import to_anesthetic
from observables.exchange.arviz import to_arviz
from observables.exchange.pyerrors import to_pyerrors
from observables.exchange.pymbar import to_pymbar
from observables.interfaces import mixed_states
from observables.level_quadrature import level_marginal, quadrature
from observables.multicanonical_weight import flat_weight, flattened
from observables.order import order_parameters
from observables.phases import phase_averages, phase_weights
from observables.phases_apart import separate_phases
from observables.prediction import predictive_nll
from observables.presentation import Analyst
from observables.samples.pool import Pool
from observables.spectrum import density_of_states, energy_distribution
from observables.thermal import partition_function, thermodynamics
from quenchphys.console.presentation import register

__all__ = [
    "Pool",
    "bayes_factor",
    "binder",
    "coexisting_phases",
    "density_of_states",
    "diagnostics",
    "distribution",
    "efficiency",
    "energy_distribution",
    "equal_height",
    "equal_weight",
    "flat_weight",
    "flattened",
    "level_marginal",
    "mixed_states",
    "order_parameters",
    "partition_function",
    "phase_averages",
    "phase_weights",
    "plot",
    "posterior",
    "predictive_nll",
    "quadrature",
    "report",
    "separate_phases",
    "thermodynamics",
    "to_anesthetic",
    "to_arviz",
    "to_pyerrors",
    "to_pymbar",
]


register(Analyst())  # from now on ladders and walks show log Z


def __getattr__(name: str) -> Any:
    """`observables.plot` imports matplotlib, so it is loaded when it is first used."""
    if name == "plot":
        return importlib.import_module("observables.plot")
    raise AttributeError(f"module 'observables' has no attribute {name!r}")
