r"""Two phases side by side: the plateau of P(q) between its peaks, and the tension of the walls that separate them.

Between the peaks of P(q) at coexistence two flat walls of area A cross a lattice of length M where it is narrowest, and
f = (q - q_d)/(q_o - q_d) is the share of the ordered phase.  Each wall may stand anywhere, fluctuates, and costs sigma A, so
with m equal ordered phases and N directions that a wall may have

    P(f) / sqrt(w_d w_o) = sqrt(m) N M^2 a(L)^2 exp(-2 sigma A),      a(L)^2 = C L^(d - 3),

flat in f but for a tilt by the odds of the phases, which the weights w_d and w_o take out in the middle.  a(L) sums over
the shapes of a wall at a given place; in two dimensions it is the closed path of a random walk, a^2 = kappa/(2 pi L), with
the stiffness kappa = sigma + sigma'' of the wall, which is sigma if all directions are alike (Fisher 1984, J. Stat. Phys.
34, 667; Brezin and Zinn-Justin 1985, Nucl. Phys. B 257, 867, in any dimension).  The free energy -log of the left side thus
gives sigma as a slope over 2 A once the known terms are taken out.  The depth of the valley below the peaks, which is often
used instead, has the widths of the peaks in it as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import lambertw

from observables.estimation.errors import Uncertain
from observables.estimation.estimator import estimate
from observables.estimation.labels import dataset
from observables.estimation.moments import Columns
from observables.estimation.targets import Targets
from observables.phases import TwoPhases
from observables.samples.base import Samples
from observables.samples.pool import Pool, Source

Array = np.ndarray

WINDOW = (0.375, 0.625)  # of f: on a square, drops are cheaper than flat walls below 1/pi
QUARTERS = 4
# What a single lattice does not know: log of kappa/sigma, and of walls that are not quite apart, in nats.
UNKNOWN_CONSTANT = {2: 0.5}
UNKNOWN_ELSEWHERE = 1.0
FLAT = 0.1  # nats that a plateau may be bent: on a square drops of one phase, and walls that touch, bend it by more


def mixed_states(
    ladder: Source,
    by: str | None = None,
    cut: float | None = None,
    beta: float = 1.0,
    *,
    errors: str = "auto",
    **couplings: float,
) -> xr.Dataset:
    """The free energy of the states in which two phases stand side by side, halfway between the peaks of P(`by`).

    Parameters
    ----------
    ladder, by, cut
        As in `phase_weights`.
    beta, errors, couplings
        As in `partition_function`, but for a single target, near coexistence.

    Returns
    -------
    Dataset
        plateau = -log[P(f) / sqrt(w_d w_o)], the mean density of the share f of the ordered phase over 3/8 < f < 5/8,
        relative to the weights of both phases; plateau_bend, how much higher its outer half is than its inner half (zero
        for walls that do not feel each other); both with errors.

    Examples
    --------
    >>> found = observables.mixed_states(walk, mu2=2.2866)
    >>> float(found.plateau), float(found.plateau_bend)
    """
    pool = Pool.of(ladder)
    phases = TwoPhases.of(pool, by, cut)
    targets = Targets.single(pool, beta, couplings, "A plateau has")
    low, high = _means(pool, phases, targets)
    edges = low + (high - low) * np.linspace(*WINDOW, QUARTERS + 1)

    def moments(samples: Samples, energy: Array) -> Columns:
        order = samples.observable(phases.by)
        inside = [(order >= left) & (order < right) for left, right in pairwise(edges)]
        return Columns([one.astype(float) for one in (*inside, phases.upper(samples))])

    uncertain = Uncertain(estimate(pool, targets, moments), errors)

    def plateau(mean: Array) -> Array:
        upper, width = mean[:, QUARTERS], WINDOW[1] - WINDOW[0]
        return 0.5 * np.log(upper * (1 - upper)) - np.log(mean[:, :QUARTERS].sum(axis=1) / width)

    with np.errstate(divide="ignore", invalid="ignore"):
        answers = {
            "plateau": uncertain.of(lambda log_z, mean: plateau(mean)),
            "plateau_bend": uncertain.of(lambda log_z, mean: np.log((mean[:, 1] + mean[:, 2]) / (mean[:, 0] + mean[:, 3]))),
        }
    return dataset(uncertain, answers).assign_attrs(phases.attrs)


def _means(pool: Pool, phases: TwoPhases, targets: Targets) -> tuple[float, float]:
    """The order parameter in both phases."""

    def moments(samples: Samples, energy: Array) -> Columns:
        order, upper = samples.observable(phases.by).astype(float), phases.upper(samples)
        return Columns([np.where(inside, v, 0.0) for inside in (~upper, upper) for v in (np.ones(len(order)), order)])

    table = estimate(pool, targets, moments).pooled()[1].reshape(2, 2)
    low, high = table[:, 1] / table[:, 0]
    return float(low), float(high)


class Walls(NamedTuple):
    """Two flat walls across a periodic lattice, where it is narrowest."""

    area: float
    """Of both together, 2 A."""
    known: float
    """What the plateau has beside 2 sigma A and a constant: (3 - d) log L - 2 log M - log(sqrt(m) N)."""
    dimension: int

    @staticmethod
    def across(shape: Sequence[int], multiplicity: int = 2) -> Walls:
        """Of a lattice of this shape, with `multiplicity` equal ordered phases."""
        longest, dimension = max(shape), len(shape)
        area = math.prod(shape) / longest
        side = area ** (1 / (dimension - 1))
        directions = sum(length == longest for length in shape)
        known = (3 - dimension) * math.log(side) - 2 * math.log(longest) - math.log(directions * math.sqrt(multiplicity))
        return Walls(2 * area, known, dimension)

    def tension(self, plateau: float, error: float) -> tuple[float, float]:
        """sigma from the plateau of this lattice alone, and its error; NaN where the plateau is too low for two walls.

        In two dimensions the constant is -log(kappa/2 pi) with kappa = sigma; in others it is taken to be zero.  The error
        covers what is not known of it.
        """
        rest = plateau - self.known
        slope = self.area
        if self.dimension == 2:  # 2 A sigma - log sigma = rest - log 2 pi
            power = math.exp(min(700.0, math.log(2 * math.pi) - rest + math.log(self.area)))
            sigma = -float(np.real(lambertw(-power, -1))) / self.area if power < math.exp(-1) else math.nan
            slope -= 1 / sigma
        else:
            sigma = rest / self.area
        unknown = UNKNOWN_CONSTANT.get(self.dimension, UNKNOWN_ELSEWHERE)
        return sigma, math.hypot(error, unknown) / slope


def is_flat(found: xr.Dataset) -> bool:
    """Whether a plateau is flat within its errors: two walls that stand apart."""
    return abs(float(found["plateau_bend"])) < FLAT + 2 * float(found["plateau_bend_err"])
