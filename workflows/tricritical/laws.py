"""The tricritical coupling from two sides: jumps that vanish at it, and cumulants of all sizes that agree at it.

The exponents of the two-dimensional tricritical Ising class are known exactly: y_1 = 9/5 and y_2 = 4/5 of the two relevant
even fields u_1 and u_2, and y_3 = -1 of the first irrelevant one.  The line of first order is u_1 = 0 at u_2 ~ D,
D = lam_t - lam, and the jump of an even observable there is

    jump ~ D^((2 - y_1)/y_2) = D^(1/4),     jump^4 = A D (1 + B D + C D^k),     k = 2 or -2 y_3/y_2 = 5/2.

B and C D^2 are analytic: u_2 is no straight line in D, and the share of u_1 in an observable changes along the line.  The
irrelevant field comes in at second order only.  Duality of the tricritical Ising model exchanges the ordered and the
disordered phase and changes the signs of the first and the third even operator, so that at first order u_3 moves the
averages in both phases alike, and their difference not at all: there is no D^(-y_3/y_2) = D^(5/4).

Where xi/L has one and the same value at all sizes, u_1 L^y_1 is fixed, and the Binder cumulant depends on D by

    U = P(x) + c_0 L^y_3 [+ c_1 x L^y_3 or c_2 x^2 L^-y_2],     x = (lam - lam_t) L^y_2,

P a polynomial.  c_0 and c_1 are of the irrelevant field and of u_1 in u_2 (y_2 - y_1 = y_3), c_2 is of D^2 in u_2.  Every
law is linear in all its numbers but lam_t, so lam_t is found on a line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

Array = np.ndarray
Design = Callable[[float], Array]  # of lam_t: (point, parameter)

Y1, Y2, Y3 = 9 / 5, 4 / 5, -1.0
POWER = Y2 / (2 - Y1)  # 4: this power of a jump is linear in D
TERMS: tuple[tuple[float, ...], ...] = ((1.0,), (1.0, 2.0), (1.0, -2 * Y3 / Y2))  # powers of D beside A D
SCAN = 201  # values of lam_t at which chi squared is looked at before its minimum is refined
FEWEST = 4  # jumps in a fit
BEYOND = 1.5  # spans of the couplings, up to which jumps are extrapolated
DEGREES = (1, 2, 3)  # of P
CORRECTIONS = ((0, Y3), (1, Y3), (2, -Y2))  # powers of x and L; the first alone, or with one of the others


class Fit(NamedTuple):
    """lam_t by one law from some of the points."""

    value: float
    error: float
    chi2: float
    dof: int
    left_out: int
    parameters: int

    @property
    def p_value(self) -> float:
        """Probability of a larger chi squared."""
        return float(stats.chi2.sf(self.chi2, self.dof))

    @property
    def log_weight(self) -> float:
        """A point that is left out costs as much as a parameter (Jay and Neil 2021)."""
        return -0.5 * self.chi2 - self.left_out - self.parameters


class Found(NamedTuple):
    """lam_t from many fits; the error covers the choice among them."""

    value: float
    error: float
    best: Fit


def averaged(fits: Sequence[Fit]) -> Found:
    """The average over fits by weight: the variance is that within the fits and that between them."""
    log_weight = np.array([fit.log_weight for fit in fits])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    values, errors = np.array([fit.value for fit in fits]), np.array([fit.error for fit in fits])
    value = float(weight @ values)
    return Found(value, float(weight @ (errors**2 + (values - value) ** 2)) ** 0.5, fits[int(weight.argmax())])


def fitted(design: Design, y: Array, error: Array, between: tuple[float, float], left_out: int) -> Fit | None:
    """The lam_t of least chi squared between two values; None where chi squared has no minimum inside."""

    def chi2(at: float) -> float:
        a, b = design(at) / error[:, None], y / error
        return float(((b - a @ np.linalg.lstsq(a, b, rcond=None)[0]) ** 2).sum())

    places = np.linspace(*between, SCAN)
    values = np.array([chi2(float(at)) for at in places])
    lowest = int(values.argmin())
    if lowest in (0, SCAN - 1):
        return None
    refined = minimize_scalar(chi2, bounds=(places[lowest - 1], places[lowest + 1]), method="bounded")
    value, least = float(refined.x), float(refined.fun)
    # One standard error is where chi squared, least for all other numbers, is one higher; the larger of both sides counts.
    sides = []
    for part in (places[:lowest][::-1], places[lowest + 1 :]):
        outside = next((float(at) for at in part if chi2(float(at)) > least + 1), None)
        end = float(part[-1]) if outside is None else float(brentq(lambda at: chi2(at) - least - 1, value, outside))
        sides.append(abs(end - value))
    parameters = design(value).shape[1] + 1
    return Fit(value, max(sides), least, len(y) - parameters, left_out, parameters)


def from_jumps(lam: Array, jumps: Mapping[str, tuple[Array, Array]]) -> Found:
    """lam_t at which jumps vanish, from the side of first order.

    Parameters
    ----------
    lam
        The couplings.
    jumps
        For each observable its jump and the standard error, (coupling,).

    Returns
    -------
    Found
        The average over observables, over the terms of the law, and over how many of the farthest couplings are left out.
    """
    order = np.argsort(lam)
    lam, last = lam[order], float(lam.max())
    by_observable = []
    for value, error in jumps.values():
        y, dy = value[order] ** POWER, POWER * value[order] ** (POWER - 1) * error[order]
        fits = [
            fit
            for terms, dropped in product(TERMS, range(len(lam) - FEWEST + 1))
            if len(lam) - dropped > len(terms) + 2
            and (fit := _jump_fit(lam[dropped:], y[dropped:], dy[dropped:], terms, last, dropped)) is not None
        ]
        if fits:
            by_observable.append(averaged(fits))
    if not by_observable:
        raise ValueError(
            f"The jumps at lam = {', '.join(f'{x:g}' for x in lam)} do not vanish anywhere near: add couplings closer "
            "to the tricritical point."
        )
    # Observables are of the same samples: their errors do not average out, and what they differ by is of the ansatz.
    values = np.array([found.value for found in by_observable])
    errors = np.array([found.error for found in by_observable])
    mean, worst = float(values.mean()), min((found.best for found in by_observable), key=lambda fit: fit.p_value)
    return Found(mean, float(np.mean(errors**2 + (values - mean) ** 2)) ** 0.5, worst)


def _jump_fit(lam: Array, y: Array, error: Array, terms: Sequence[float], last: float, dropped: int) -> Fit | None:
    def design(at: float) -> Array:
        away = np.maximum(at - lam, 0.0)
        return np.column_stack([away, *(away ** (1 + k) for k in terms)])

    end = _end_of_expansion(design, y, error, (last, last + BEYOND * (last - float(lam.min()))))
    return fitted(design, y, error, (last, end), dropped)


def _end_of_expansion(design: Design, y: Array, error: Array, between: tuple[float, float]) -> float:
    """How far lam_t may be away: as long as A D is more than all corrections to it together at the nearest coupling.

    Beyond that a law of A = 0 fits as well, which is no expansion about a tricritical point.
    """
    places = np.linspace(*between, SCAN)
    for at in places[1:]:
        a = design(float(at))
        numbers = np.linalg.lstsq(a / error[:, None], y / error, rcond=None)[0]
        leading, corrections = a[-1, 0] * numbers[0], a[-1, 1:] @ numbers[1:]
        if leading <= abs(corrections):
            return float(at)
    return between[1]


def from_cumulants(lam: Array, size: Array, cumulant: Array, error: Array) -> Found:
    """lam_t at which cumulants of all sizes, each where xi/L has the same value, agree but for what falls with L.

    Parameters
    ----------
    lam, size, cumulant, error
        Coupling, linear size, Binder cumulant and its standard error of each point.

    Returns
    -------
    Found
        The average over the degree of P, over the corrections, over the smallest size, and over how many of the couplings
        farthest from the tricritical one are left out on each side.
    """
    lengths, couplings = np.unique(size), np.unique(lam)
    between = float(couplings[0]), float(couplings[-1])
    fits = []
    choices = product(lengths[:-2], couplings[:-2], couplings[2:], DEGREES, (CORRECTIONS[:1], *_pairs()))
    for smallest, low, high, degree, corrections in choices:
        used = (size >= smallest) & (lam >= low) & (lam <= high)
        if len(np.unique(lam[used])) < 3 or used.sum() <= degree + 2 + len(corrections):
            continue
        design = _cumulant_law(lam[used], size[used], degree, corrections)
        fit = fitted(design, cumulant[used], error[used], between, int((~used).sum()))
        if fit is not None and low <= fit.value <= high:
            fits.append(fit)
    if not fits:
        raise ValueError(
            f"The cumulants of sizes {', '.join(f'{L:g}' for L in lengths)} agree nowhere between lam = {between[0]:g} and "
            f"{between[1]:g}: the tricritical point is not there."
        )
    return averaged(fits)


def _pairs() -> list[tuple[tuple[int, float], ...]]:
    return [(CORRECTIONS[0], other) for other in CORRECTIONS[1:]]


def _cumulant_law(lam: Array, size: Array, degree: int, corrections: Sequence[tuple[int, float]]) -> Design:
    """P(x) and its corrections, the powers of x times those of L."""

    def design(at: float) -> Array:
        x = (lam - at) * size**Y2
        return np.column_stack([*(x**n for n in range(degree + 1)), *(x**n * size**power for n, power in corrections)])

    return design
