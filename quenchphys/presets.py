"""Named sets of settings: `quench(problem, **presets.PAPER)`.

PAPER   the analytic experiments of the QES paper: nu = 2, MALA with max(16, 2^ceil(log2 sqrt D)) steps at a level
"""

from __future__ import annotations

from types import MappingProxyType

from quenchphys.kernels import MALA

PAPER = MappingProxyType(
    {
        "particles": 1000,
        "softness": 2.0,
        "target_ess": 0.95,
        "resample_ess": 0.5,
        "kernel": MALA(),
        "draws_per_particle": 10,
    }
)
