"""Whole studies in one call: coexistence points, finite-size scaling, Z over temperature, error bars, the paper.

>>> workflows.coexistence(L=16, bracket=(2.27, 2.30))
>>> workflows.finite_size_scaling(sizes=[8, 12, 16, 24], bracket=(2.25, 2.33))
>>> workflows.partition_function(model, beta=np.linspace(0, 1.2, 121))
>>> workflows.calibrate(qp.targets.gaussian(10), seeds=64)
>>> workflows.reproduce("path-length", effort="quick")
"""

from quenchphys.console.interruption import Interrupted
from workflows.calibration import calibrate
from workflows.coexistence_point.search import coexistence
from workflows.refinement import polish
from workflows.reproduction.reproduce_paper import reproduce
from workflows.scaling.finite_size import finite_size_scaling
from workflows.store import load_result
from workflows.thermal import partition_function

__all__ = [
    "Interrupted",
    "calibrate",
    "coexistence",
    "finite_size_scaling",
    "load_result",
    "partition_function",
    "polish",
    "reproduce",
]
