"""Volumes and evidence of a growing ladder, on the host in float64, and which replicas have ended, and why.

The evidence above a level, the integral of G(E) exp(-beta E) dE = Gamma(nu+1) Z(beta) / beta^(nu+1), is summed by the
trapezium rule down the ladder, at every beta that the stop rules need; the part above E_0 comes from the prior draws, each
of which carries exp(-beta U) Gamma(nu+1, beta (E_0 - U)) / (M beta^(nu+1)) there (the upper incomplete gamma function).  It
only serves to decide when to stop; estimates use the whole record.
"""

from __future__ import annotations

import json
import math
import time

import numpy as np
from scipy.special import gammaln, logsumexp

from quenchphys.outcome import Outcome
from quenchphys.parallel.processes import agreed
from quenchphys.smc.levels import Family, SoftLevels
from quenchphys.smc.step import Rung
from quenchphys.smc.tails import log_upper_tail
from quenchphys.stopping import Standing, StopRule, fired

# A population is frozen when for this many levels in a row it hardly moved.
FROZEN_LEVELS = 8
FROZEN_ACCEPTANCE = 0.01
FROZEN_DISPLACEMENT = 0.01


class Evidence:
    """One entry for each replica; `add` is called once a level."""

    def __init__(self, family: Family, log_first: np.ndarray, prior_energy: np.ndarray, stop: StopRule, adaptive: bool):
        self._stop, self._adaptive = stop, adaptive
        self._softness = float(family.softness) if isinstance(family, SoftLevels) else math.nan
        self._begun = time.monotonic()
        self._prior_energy = prior_energy
        self._still = np.zeros(len(log_first), int)
        self._betas = np.array(sorted(stop.betas()))
        self._log_integrand = np.full((len(self._betas), len(log_first)), -np.inf)
        self._log_integral = np.full((len(self._betas), len(log_first)), -np.inf)
        self.log_volume = log_first.astype(np.float64)
        self.parameter: np.ndarray = np.full(len(log_first), np.nan)
        self.levels = 0
        self.remaining = math.inf  # distance to the end by the stop rule, of the replica farthest from it
        self.level_count = np.zeros(len(log_first), int)
        self.outcomes: list[Outcome | None] = [None] * len(log_first)

    @property
    def running(self) -> np.ndarray:
        """Replicas that have not ended."""
        return np.array([r for r, outcome in enumerate(self.outcomes) if outcome is None], dtype=int)

    def add(self, rung: Rung) -> np.ndarray:
        """Add one level (host arrays); returns log G of all replicas at it."""
        advanced = self._advance(rung)
        elapsed = agreed(int(1000 * (time.monotonic() - self._begun))) / 1000
        self.remaining = 0.0
        for r in self.running:
            self.level_count[r] = self.levels + 1
            if not advanced[r] or self._still[r] >= FROZEN_LEVELS:
                self.outcomes[r] = Outcome.FROZEN
                continue
            carries = rung.log_weight[r] > -np.inf
            place = Standing(
                self.levels,
                self.parameter[r],
                np.asarray(rung.energy[r, carries], np.float64),
                np.asarray(rung.log_weight[r, carries], np.float64),
                self.log_volume[r],
                dict(zip(self._betas, self._log_integral[:, r], strict=True)),
                self._softness,
                elapsed,
            )
            self.outcomes[r] = fired(self._stop, place)
            self.remaining = max(self.remaining, self._stop.remaining(place))
        self.levels += 1
        return self.log_volume.copy()

    def _advance(self, rung: Rung) -> np.ndarray:
        """Update volumes and evidence; returns which replicas found a new level with particles in it."""
        before = self.parameter
        self.parameter = np.asarray(rung.parameter, np.float64)
        moved = (rung.acceptance >= FROZEN_ACCEPTANCE) & (rung.displacement >= FROZEN_DISPLACEMENT)
        self._still = np.where(moved, 0, self._still + 1)
        if self.levels == 0:
            if self._betas.size:
                self._log_integral = self._above()
                self._log_integrand = self.log_volume - self._betas[:, None] * self.parameter
            return np.isfinite(self.log_volume)
        self.log_volume = self.log_volume + rung.log_ratio
        alive = np.isfinite(self.log_volume)
        if self._betas.size:
            integrand = self.log_volume - self._betas[:, None] * self.parameter
            with np.errstate(divide="ignore"):
                strip = np.logaddexp(self._log_integrand, integrand) + np.log((before - self.parameter) / 2)
            self._log_integral = np.logaddexp(self._log_integral, strip)
            self._log_integrand = integrand
        return alive & (self.parameter != before) if self._adaptive else alive

    def _above(self) -> np.ndarray:
        """log of the integral of G(E) exp(-beta E) over E > E_0, from the prior draws; (betas, replicas)."""
        nu, beta = self._softness, self._betas[:, None, None]
        log_tail = log_upper_tail(nu, beta * (self.parameter[:, None] - self._prior_energy))
        top = logsumexp(log_tail - beta * self._prior_energy, axis=2)
        draws = self._prior_energy.shape[1]
        return top + gammaln(nu + 1) - (nu + 1) * np.log(self._betas[:, None]) - np.log(draws)

    # What a checkpoint keeps of it.

    ARRAYS = ("log_volume", "parameter", "level_count", "_still", "_log_integrand", "_log_integral")

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays; outcomes by name, as the bytes of a JSON list."""
        names = json.dumps([None if outcome is None else outcome.value for outcome in self.outcomes])
        scalars = {
            "outcomes": np.frombuffer(names.encode(), np.uint8),
            "levels": np.array(self.levels),
            "elapsed": np.array(time.monotonic() - self._begun),
        }
        return scalars | {name: getattr(self, name) for name in self.ARRAYS if getattr(self, name).size}

    def resume(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a state that was kept; time spent before counts."""
        for name in self.ARRAYS:
            if name in state:
                setattr(self, name, np.array(state[name]))
        self.levels = int(state["levels"])
        names = json.loads(np.asarray(state["outcomes"], np.uint8).tobytes())
        self.outcomes = [None if name is None else Outcome(name) for name in names]
        self._begun = time.monotonic() - float(state["elapsed"])
