"""Whole studies in one call: coexistence points, finite-size scaling, Z over temperature, error bars, the paper.

>>> workflows.coexistence(L=16)
>>> workflows.finite_size_scaling(sizes=[8, 12, 16, 24], bracket=(2.25, 2.33))
>>> workflows.partition_function(model, beta=np.linspace(0, 1.2, 121))
>>> workflows.calibrate(qp.targets.gaussian(10), seeds=64)
>>> workflows.reproduce("path-length", effort="quick")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workflows.shadowing import check_own_packages

if TYPE_CHECKING:
    from quenchphys.console.interruption import Interrupted
    from workflows.calibration import calibrate
    from workflows.coexistence_point.search import coexistence
    from workflows.joined_runs import over_seeds, pool
    from workflows.refinement import polish
    from workflows.reproduction.reproduce_paper import reproduce
    from workflows.results.flat import to_dataframe
    from workflows.scaling.finite_size import finite_size_scaling
    from workflows.store import load_result
    from workflows.thermal import partition_function
    from workflows.tricritical.diagram import phase_diagram

check_own_packages()

# Where each name is: studies are imported when they are first used, so that the help of the command line appears at once.
HOMES = {
    "Interrupted": "quenchphys.console.interruption",
    "calibrate": "workflows.calibration",
    "coexistence": "workflows.coexistence_point.search",
    "finite_size_scaling": "workflows.scaling.finite_size",
    "load_result": "workflows.store",
    "over_seeds": "workflows.joined_runs",
    "partition_function": "workflows.thermal",
    "phase_diagram": "workflows.tricritical.diagram",
    "polish": "workflows.refinement",
    "pool": "workflows.joined_runs",
    "reproduce": "workflows.reproduction.reproduce_paper",
    "to_dataframe": "workflows.results.flat",
}

__all__ = [
    "Interrupted",
    "calibrate",
    "coexistence",
    "finite_size_scaling",
    "load_result",
    "over_seeds",
    "partition_function",
    "phase_diagram",
    "polish",
    "pool",
    "reproduce",
    "to_dataframe",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'workflows' has no attribute {name!r}")
    found = getattr(import_module(HOMES[name]), name)
    import_module("workflows.accessor")  # results have `result.quenchphys` from now on
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
