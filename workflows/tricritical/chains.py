"""How canonical chains move near the tricritical point.

Clusters of signs do nothing for q = <phi^2>, whose slow modes are left to the trajectories.  Short ones walk through them at
random: at lam = -0.805 and L = 48 tau of q is 800 sweeps with 8 steps, 200 with 24 and 40 with 48, which cost only half as
much again as 8, since the clusters cost the rest.
"""

from __future__ import annotations

from quenchphys.kernels.block_hmc import BlockHMC

LONG = BlockHMC(steps=48, target_acceptance=0.8)
WARM_UP = 0.25  # of the sweeps
LEAST_WARM_UP = 128


def warm_up_of(sweeps: int) -> int:
    """Sweeps of burn-in before as many that are recorded."""
    return max(LEAST_WARM_UP, int(WARM_UP * sweeps))
