"""Mutation kernels: Markov transitions that leave the density of a level invariant.

A kernel is a frozen dataclass of its own settings.  Its `transition` moves every particle of an array once, given the
step size and the diagonal scale sigma of each coordinate; neither changes while a level is mutated.
"""

from quenchphys.kernels.barker import Barker
from quenchphys.kernels.base import Kernel, Move
from quenchphys.kernels.hmc import HMC
from quenchphys.kernels.mala import MALA
from quenchphys.kernels.minimum_norm import MinimumNorm

__all__ = ["HMC", "MALA", "Barker", "Kernel", "MinimumNorm", "Move"]
