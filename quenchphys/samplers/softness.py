"""How soft may the levels be?  As soft as the curvature of the entropy allows, and that is read from a ladder.

Within a level the slack s = E - U has the density exp(S(E - s)) s^nu.  For a straight S it is a gamma distribution, whose
(nu+1) Var(s)/<s>^2 is 1; a curved S makes it I = 1/(1 - r), with

    r = S''(U) nu/beta^2,     beta = (nu+1)/<s>.

At r = 1 the level has two peaks.  As long as it is small r is proportional to nu, so a ladder run at one nu tells the
largest nu that keeps r below a limit at every level; one with a large r only tells that it is too soft.  At a kink of S a
level has two peaks whatever nu is; r is then close to 1 at any softness, and the answer is the smallest one, 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri

from quenchphys.storage.streaming import blocks, release

if TYPE_CHECKING:
    from quenchphys.ladder import Ladder

SMALLEST = 2.0
# Largest r that is chosen, and largest that is trusted.  phi^6 at L = 8 has r = 0.36 at nu = 8, 0.62 at 30, the last that
# gives the right answer, and no more than that beyond: two peaks that a level holds together are not far apart.
SAFE, SUSPICIOUS = 0.35, 0.5
# Two peaks that a particle does not cross keep its energy correlated over a level: 0.5 at nu = 100 there, 0.8 at 300.
REMEMBERED = 0.6
GROWTH = 16.0  # by which one pilot's reading may raise the softness
LARGEST_ERROR = 0.04  # of r where it is small
MOST_STRETCHES = 32  # in which r is read, as long as a ladder has more levels than that takes
PILOTS = 6


class Curvature(NamedTuple):
    """r, and the memory of particles, along a ladder: averaged over stretches of levels and over replicas."""

    energy: np.ndarray
    ratio: np.ndarray
    error: np.ndarray
    memory: np.ndarray
    """correlation of a particle's U before and after the mutation of a level"""

    @property
    def largest(self) -> float:
        """The largest r that is certain: two standard errors below the reading."""
        return float(np.max(self.ratio - 2 * self.error))

    @property
    def bound(self) -> float:
        """The largest r that is possible: two standard errors above the reading.

        The largest of n readings of the same r is too large by itself, as the largest of n normal numbers is.
        """
        chance = ndtri(0.5 ** (1 / len(self.ratio)))  # its median
        return float(np.max(self.ratio + (2 - chance) * self.error))


def curvature(ladder: Ladder) -> Curvature:
    """r = S'' nu/beta^2 of a quenched ladder."""
    mean, variance = _slack(ladder)
    inflation = (ladder.softness + 1) * variance / mean**2
    energy, particles = ladder.levels["energy"].values, ladder.particles.sizes["particle"]
    # A file written before correlations were recorded has none.
    known = "correlation" in ladder.levels
    memory = ladder.levels["correlation"].sel(quantity="energy").values if known else np.zeros_like(mean)
    count = int(ladder.levels["level_count"].min())
    # Variance of (nu+1) Var(s)/<s>^2 over a level of independent draws from a gamma distribution.
    noise = (2 + 10 / (ladder.softness + 1)) / (len(energy) * particles)
    found = []
    for stretch in _stretches(energy[:, :count].mean(axis=0), mean[:, :count].mean(axis=0), ladder.softness, noise):
        average = max(float(inflation[:, stretch].mean()), 1e-3)
        error = math.sqrt(noise / len(stretch)) / average
        found.append((energy[:, stretch].mean(), 1 - 1 / average, error, memory[:, stretch].mean()))
    return Curvature(*np.array(found).T)


def _stretches(energy: np.ndarray, slack: np.ndarray, softness: float, noise: float) -> list[np.ndarray]:
    """Levels to be averaged over: as wide as a level is in U, which does not feel what is narrower, as many as it takes
    for a small error, and no fewer than a small part of the ladder."""
    fewest = max(noise / LARGEST_ERROR**2, len(energy) / MOST_STRETCHES)
    travelled = np.cumsum(-np.diff(energy, prepend=energy[0]) * math.sqrt(softness + 1) / slack)
    found, begin = [], 0
    for end in range(1, len(energy) + 1):
        wide = travelled[end - 1] - travelled[begin] >= 1
        if (wide and end - begin >= fewest) or end == len(energy):
            found.append(np.arange(begin, end))
            begin = end
    return found


def softest(ladder: Ladder) -> float:
    """The largest softness a ladder like this one may have, as far as it can tell."""
    allowed = ladder.softness * min(SAFE / max(curvature(ladder).bound, 1e-9), GROWTH)
    largest = max(ladder.softness, float(ladder.attrs["dimension"]))  # of use
    return float(max(min(allowed, largest), SMALLEST))


def choose(pilot: Callable[[float, int], Ladder], start: float) -> float:
    """Run pilots, each as soft as the one before allows, until they no longer ask for much more.

    `pilot(softness, number)` runs one.  A pilot that missed something or was too soft is followed by a harder one.
    """
    softness, limit = max(start, SMALLEST), math.inf
    for number in range(PILOTS):
        ladder = pilot(softness, number)
        if not ladder.outcome.trusted or too_soft(ladder):
            if softness <= SMALLEST:
                return SMALLEST
            limit, softness = softness, max(SMALLEST, softness / 4)
            continue
        allowed = min(softest(ladder), limit)
        if allowed < 2 * softness:
            return allowed
        softness = allowed
    return softness


def too_soft(ladder: Ladder) -> str | None:
    """A sentence if some levels of a quenched ladder have two peaks in U, or nearly so."""
    if ladder.softness <= SMALLEST:
        return None
    found = curvature(ladder)
    worst = int(np.argmax(found.ratio - 2 * found.error))
    sign = ""
    if found.largest > SUSPICIOUS:
        sign = f"r = S'' nu/beta^2 = {found.ratio[worst]:.2f}, up to {SUSPICIOUS:g} is safe"
    elif np.max(found.memory) > REMEMBERED:
        worst = int(np.argmax(found.memory))
        sign = f"particles remember U over a level, with a correlation of {found.memory[worst]:.2f}"
    if not sign:
        return None
    return (
        f"Levels near E = {found.energy[worst]:.4g} may have two peaks in U ({sign}): softness {ladder.softness:.3g} is too "
        f"large, try {max(SMALLEST, ladder.softness / 4):.3g}"
    )


def _slack(ladder: Ladder) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of E - U, (replica, level)."""
    level, particles = ladder.levels["energy"].values, ladder.particles
    energy, log_weight = particles["energy"].values, particles["log_weight"].values
    mean, variance = np.full(level.shape, np.nan), np.full(level.shape, np.nan)
    for rows in blocks(log_weight):
        weight = np.exp(np.asarray(log_weight[:, rows], np.float64))
        slack = np.where(weight > 0, level[:, rows, None] - energy[:, rows], 0.0)
        mean[:, rows] = (weight * slack).sum(-1)
        variance[:, rows] = (weight * (slack - mean[:, rows, None]) ** 2).sum(-1)
        release(energy)
    return mean, variance
