"""quenchphys: free energies of lattice models by Quenched Ensemble Sampling.

import lattices, quenchphys as qp, observables
ladder = qp.quench(lattices.phi6(L=16, mu2=2.286))
observables.partition_function(ladder, beta=[0.5, 1.0])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from quenchphys import presets, stopping
from quenchphys.consistency import check
from quenchphys.console.interruption import Interrupted
from quenchphys.files import load
from quenchphys.kernels import HMC, MALA, Barker, MinimumNorm
from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.parallel.devices import use_all_cores
from quenchphys.parallel.processes import ProcessLost, join
from quenchphys.problem import Problem, SiteBasis
from quenchphys.samplers.bridge_chains import bridge
from quenchphys.samplers.canonical_chains import canonical
from quenchphys.samplers.multicanonical_chains import multicanonical
from quenchphys.samplers.quenched import quench
from quenchphys.samplers.tempered import temper
from quenchphys.stopping import EvidenceBelow, LevelLimit, ReachedEnergy, RemainingEvidence, WallTime
from quenchphys.storage.checkpoint import Checkpoint
from quenchphys.version import __version__
from quenchphys.walk import Walk

if TYPE_CHECKING:
    from quenchphys import targets
    from quenchphys.samplers.gradient_chains import chains
    from quenchphys.samplers.laplace_approximation import laplace
    from quenchphys.samplers.nested_slices import nested

use_all_cores()

__all__ = [
    "HMC",
    "MALA",
    "Barker",
    "Checkpoint",
    "EvidenceBelow",
    "Interrupted",
    "Ladder",
    "LevelLimit",
    "MinimumNorm",
    "Outcome",
    "Problem",
    "ProcessLost",
    "ReachedEnergy",
    "RemainingEvidence",
    "SiteBasis",
    "Walk",
    "WallTime",
    "__version__",
    "bridge",
    "canonical",
    "chains",
    "check",
    "join",
    "laplace",
    "load",
    "multicanonical",
    "nested",
    "presets",
    "quench",
    "stopping",
    "targets",
    "temper",
]


# Imported on first use: the exact answers of the targets need much of scipy, a quarter of the import time, and the rival
# methods need libraries of an extra.
LATER = {
    "chains": "quenchphys.samplers.gradient_chains",
    "laplace": "quenchphys.samplers.laplace_approximation",
    "nested": "quenchphys.samplers.nested_slices",
}


def __getattr__(name: str) -> Any:
    """Import the targets and the rival methods on first use."""
    if name == "targets":
        return import_module("quenchphys.targets")
    if name in LATER:
        return getattr(import_module(LATER[name]), name)
    raise AttributeError(f"module 'quenchphys' has no attribute {name!r}")
