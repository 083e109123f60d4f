"""What are Z, the energy, the heat capacity and the entropy at each temperature?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from observables.errors import Uncertain
from observables.estimator import Columns, Targets, estimate
from observables.labels import dataset
from observables.record import Pool
from quenchphys.ladder import Ladder

Source = Ladder | Sequence[Ladder] | Pool


def partition_function(ladder: Source, beta: Any = 1.0, *, errors: str = "auto", **couplings: Any) -> xr.Dataset:
    """log Z(beta) = log E_pi[exp(-beta U)], with its standard error.

    beta and couplings (such as mu2=) are numbers or lists; the lists become the dimensions of the answer.  log_z is the
    logarithm of the mean Z of the replicas plus log_z_err^2/2, the first-order correction for the concave logarithm.
    """
    pool = Pool.of(ladder)
    targets = Targets.grid(pool, beta, couplings)
    found = estimate(pool, targets, lambda replica, energy: Columns([]))
    uncertain = Uncertain(found, errors)
    log_z, error = uncertain.of(lambda log_z, mean: log_z)
    return dataset(uncertain, {"log_z": (log_z + error**2 / 2, error)})
