"""How much a study samples unless something else is asked for: plain numbers, which the help of the command line shows.

Nothing is imported here, so that the help appears at once.
"""

from __future__ import annotations

# One ladder of a study.
LADDER_PARTICLES = 500
LADDER_REPLICAS = 8
# One ladder of `quenchphys quench`, which are the defaults of `quenchphys.quench`.
QUENCH_PARTICLES = 1000
QUENCH_REPLICAS = 4
# The pilot ladder of a coexistence point.
PILOT_PARTICLES = 64
PILOT_REPLICAS = 4
# Multicanonical chains.
WALK_GROUPS = 16
WALK_CHAINS = 8
WALK_SWEEPS = 1600
# The scatter of four groups is below half of the error in one case of seven, that of eight in one of forty.
FEWEST_GROUPS = 8

# The phase diagram of phi^6 at eta = 0.2 and stiffness 2: lam of coexistence points, and of canonical chains.
DIAGRAM_FIRST_ORDER = (-1.0, -0.95, -0.9, -0.875, -0.86, -0.85)
DIAGRAM_CRITICAL = (-0.82, -0.805, -0.79, -0.77)
DIAGRAM_L = 96
DIAGRAM_SIZES = (12, 16, 24, 32, 48)
DIAGRAM_SWEEPS = 480

# What --quick means on the command line.
QUICK_LADDER = {"particles": 200, "replicas": 4}
QUICK_WALK = {"sweeps": 320}

# Names on the command line, as in `lattices.models.MODELS` and `quenchphys.targets`.
MODEL_NAMES = ("phi4", "phi6")
TARGET_NAMES = ("gaussian", "spike_slab", "bimodal")
