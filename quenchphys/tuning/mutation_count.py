"""Number of transitions of a particle at a level: as many as it takes to forget where it was.

After T transitions at a level the energy, or an observable, of a particle has a correlation rho with what it was before;
with rho = exp(-T/tau) it takes T log(wanted)/log(rho) transitions to bring it down to the one wanted.  The correlation is
measured at every level, over all particles of all replicas, and the slowest of the watched quantities sets the number for
the next block of levels.  Watched are the energy, the observables that tell phases apart, and those that U is linear in;
other observables may be slower without a bias of the volumes.

Why it matters: levels are chosen from the particles they weigh, and a population that remembers the level above lags
behind the density that it represents; both bias the volumes, the second where a phase has to form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from quenchphys.kernels import Kernel
from quenchphys.problem import ProblemView

WANTED = 0.3  # correlation of the slowest quantity over a level
FEWEST, MOST = 1 / 4, 8  # bounds on the transitions of a level, in units of the kernel's own number
REMEMBERED = 0.5  # share of the last block in the average over blocks


class MutationCount:
    """Transitions at a level: the kernel's own number, or one that follows the measured correlations."""

    def __init__(self, kernel: Kernel, dimension: int):
        self.usual = kernel.transitions(dimension)
        self.adaptive = bool(getattr(kernel, "adaptive", False))
        self._log_needed = math.log(self.usual)
        self._watched = [0]  # numbers of the quantities that must be forgotten; 0 is the energy

    def watch(self, problem: ProblemView, observables: Iterable[str]) -> None:
        """Follow the observables that tell phases apart, and those that U is linear in."""
        names = {observable for observable, _, _ in problem.phases.values()}
        names |= {observable for _, observable, _ in problem.couplings.values()}
        self._watched = [0, *(1 + number for number, name in enumerate(sorted(observables)) if name in names)]

    @property
    def transitions(self) -> int:
        """Transitions of every particle at each level of the next block."""
        if not self.adaptive:
            return self.usual
        return round(min(max(math.exp(self._log_needed), self.usual * FEWEST, 1), self.usual * MOST))

    def update(self, transitions: np.ndarray, correlation: np.ndarray) -> None:
        """Learn from a block: transitions (level, replica) and correlations (level, replica, quantity)."""
        # NaN correlations are ignored.
        slowest = np.nan_to_num(correlation[..., self._watched]).mean(axis=(0, 1)).max()
        needed = float(np.mean(transitions)) * math.log(WANTED) / math.log(min(max(slowest, 1e-3), 0.999))
        self._log_needed += REMEMBERED * (math.log(needed) - self._log_needed)

    # What a checkpoint keeps.

    def state(self) -> dict[str, np.ndarray]:
        return {"log_needed": np.array(self._log_needed)}

    def resume(self, state: dict[str, np.ndarray]) -> None:
        self._log_needed = float(state["log_needed"])
