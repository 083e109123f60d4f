"""The choice of the softness nu: as large as the curvature of the entropy allows, which is read from a ladder.

Within a level the slack s = E - U has the density exp(S(E - s)) s^nu.  For a straight S it is a gamma distribution, whose
(nu+1) Var(s)/<s>^2 is 1; a curved S makes it I = 1/(1 - r), with

    r = S''(U) nu/beta^2,     beta = (nu+1)/<s>.

At r = 1 the level has two peaks.  A small r is proportional to nu, so a ladder run at one nu gives the largest nu that keeps
r below a limit at every level; a ladder with a large r only shows that it is too soft.  At a kink of S a level has two peaks
for any nu; r is then close to 1 at any softness, and the answer is the smallest one, 2.
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
# Largest r that is chosen, and largest that is trusted.  phi^6 at L = 8 has r = 0.36 at nu = 8 and 0.62 at 30, the largest
# nu that gives the right answer; beyond it r does not grow, because the two peaks within a level are not far apart.
SAFE, SUSPICIOUS = 0.35, 0.5
# Largest correlation of a particle's energy before and after a level.  Particles that do not cross between two peaks keep
# their energies: for the same model it is 0.5 at nu = 100 and 0.8 at 300.
LARGEST_CORRELATION = 0.6
GROWTH = 16.0  # largest factor by which one pilot may raise the softness
LARGEST_ERROR = 0.04  # of r where it is small
MOST_STRETCHES = 32  # of levels over which r is averaged, if a ladder has enough levels
PILOTS = 6  # at most


class Curvature(NamedTuple):
    """r, and the correlation of energies, along a ladder: averaged over stretches of levels and over replicas."""

    energy: np.ndarray
    ratio: np.ndarray
    error: np.ndarray
    correlation: np.ndarray
    """Correlation of a particle's U before and after the mutation at a level."""

    @property
    def largest(self) -> float:
        """The largest r that is certain: two standard errors below the measured one."""
        return float(np.max(self.ratio - 2 * self.error))

    @property
    def bound(self) -> float:
        """The largest r that is possible: two standard errors above the measured one.

        The largest of n measurements of the same r is too large by selection, as the largest of n normal numbers is.
        """
        selection = ndtri(0.5 ** (1 / len(self.ratio)))  # median of the largest
        return float(np.max(self.ratio + (2 - selection) * self.error))


def curvature(ladder: Ladder) -> Curvature:
    """r = S'' nu/beta^2 of a quenched ladder."""
    mean, variance = _slack(ladder)
    inflation = (ladder.softness + 1) * variance / mean**2
    energy, particles = ladder.levels["energy"].values, ladder.particles.sizes["particle"]
    # Files written before correlations were recorded have none.
    known = "correlation" in ladder.levels
    correlation = ladder.levels["correlation"].sel(quantity="energy").values if known else np.zeros_like(mean)
    count = int(ladder.levels["level_count"].min())
    # Variance of (nu+1) Var(s)/<s>^2 over a level of independent draws from a gamma distribution.
    noise = (2 + 10 / (ladder.softness + 1)) / (len(energy) * particles)
    found = []
    for stretch in _stretches(energy[:, :count].mean(axis=0), mean[:, :count].mean(axis=0), ladder.softness, noise):
        average = max(float(inflation[:, stretch].mean()), 1e-3)
        error = math.sqrt(noise / len(stretch)) / average
        found.append((energy[:, stretch].mean(), 1 - 1 / average, error, correlation[:, stretch].mean()))
    return Curvature(*np.array(found).T)


def _stretches(energy: np.ndarray, slack: np.ndarray, softness: float, noise: float) -> list[np.ndarray]:
    """Stretches of levels to average over.

    Each is at least as wide as a level is in U, because a level does not resolve what is narrower, has enough levels for a
    small error, and is no less than 1/32 of the ladder.
    """
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
    """The largest softness that is safe for the problem, as far as this ladder can tell."""
    allowed = ladder.softness * min(SAFE / max(curvature(ladder).bound, 1e-9), GROWTH)
    # Beyond the dimension a level is as wide as the canonical distribution, and more softness gains nothing.
    largest = max(ladder.softness, float(ladder.attrs["dimension"]))
    return float(max(min(allowed, largest), SMALLEST))


def choose(pilot: Callable[[float, int], Ladder], start: float) -> float:
    """Run pilot ladders, each as soft as the one before allows, until the softness no longer doubles.

    Parameters
    ----------
    pilot
        `pilot(softness, number)` runs one.  One that cannot be trusted or was too soft is followed by a harder one.
    start
        Softness of the first pilot.

    Returns
    -------
    float
        The softness to use.
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
    """A warning if some levels of a quenched ladder have two peaks in U, or nearly so; else None."""
    if ladder.softness <= SMALLEST:
        return None
    found = curvature(ladder)
    worst = int(np.argmax(found.ratio - 2 * found.error))
    sign = ""
    if found.largest > SUSPICIOUS:
        sign = f"r = S'' nu/beta^2 = {found.ratio[worst]:.2f}, up to {SUSPICIOUS:g} is safe"
    elif np.max(found.correlation) > LARGEST_CORRELATION:
        worst = int(np.argmax(found.correlation))
        sign = f"energies before and after a level have a correlation of {found.correlation[worst]:.2f}"
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
