"""Both phases of a point on the line of first order, by canonical chains that start in either and stay there.

Close to the tricritical point no Gaussian field is near the ordered phase any more, so that bridges have no beginning.  On a
lattice that is large compared with xi both phases still hold, and canonical chains in each give its averages.  They know
nothing of the weight of their phase, so mu2 is followed along the line from a point where it is known:

    mu2 = mu2_0 + integral from lam_0 to lam of s,     s = -2 (<phi4>_o - <phi4>_d) / (<phi2>_o - <phi2>_d)

(Gibbs-Duhem integration, Kofke 1993), s a parabola through its values at the nearest points, this one among them.  The
weights are equal at the first point, and the line keeps them so.

A phase ends halfway between both q.  For phases of equal weight w that is where the jump does not depend on the cut c, since

    d q_d / dc = P(c) (c - q_d) / w,     d q_o / dc = P(c) (q_o - c) / w.

The cut of mean field is no such place: near the tricritical point it cuts through the peak of the ordered phase.

What lies halfway is of neither phase, but partly of its tails.  Averages are the mean of those with all samples and those
without the middle half of the way from one q to the other, and the error has half of what they differ by: on 32 x 32 the
jump of large lattices lies between both (lam = -0.85: 0.964 and 0.994 about 0.971; -0.875: 1.122 and 1.133 about 1.128).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

import quenchphys as qp
from quenchphys.console.progress import WalkMeter
from workflows.budget import Use, WalkSettings, seed_of
from workflows.model_family import ModelFamily
from workflows.store import Study
from workflows.tricritical.chains import LONG, warm_up_of

Array = np.ndarray

PHASES = ("disordered", "ordered")
NAMES = ("phi2", "phi4", "energy")
NEAREST = 3  # points, through whose slopes a parabola is laid
ROUGH = 0.5  # of the fluctuations of the prior, in a start in the ordered phase
CUTS = 8  # steps to the cut halfway between both q
OUTER = 0.25  # of the way to the other q, that is outside of the middle half
LEFT = 0.02  # of the samples on the other side of the cut, beyond which a phase does not hold
DRIFT = 4.0  # errors between the first and the second half of the chains


class Known(NamedTuple):
    """A point of the line: mu2 and s, with their errors."""

    mu2: float
    mu2_err: float
    slope: float
    slope_err: float


class Sums(NamedTuple):
    """Of the samples of every chain in its phase: 1, O, O phi2 with O in NAMES, (chain, column)."""

    columns: Array
    outer: Array
    """Without the middle half."""
    left: float
    drift: float


def followed(lam: float, line: Mapping[float, Known]) -> tuple[float, float]:
    """mu2 of the line at lam, from the nearest point and the slopes near both, and its error.

    The error is that of the nearest point, those of the slopes, and what one slope less changes.
    """
    begin = min((known for known in line if known != lam), key=lambda known: abs(known - lam))
    near = sorted(line, key=lambda known: abs(known - 0.5 * (begin + lam)))[:NEAREST]
    slopes = np.array([line[known].slope for known in near])
    share = _shares(begin, lam, near)
    errors = [line[begin].mu2_err, *(share * [line[known].slope_err for known in near])]
    if len(near) > 1:
        errors.append(float(share @ slopes - _shares(begin, lam, near[:-1]) @ slopes[:-1]))
    return float(line[begin].mu2 + share @ slopes), float(np.sqrt(np.square(errors).sum()))


def _shares(begin: float, end: float, places: Sequence[float]) -> Array:
    """The integral of the polynomial through values at all places is this times the values."""
    middle = 0.5 * (begin + end)
    powers = np.arange(len(places))
    values = (np.array(places) - middle)[:, None] ** powers  # (place, power)
    integrals = ((end - middle) ** (powers + 1) - (begin - middle) ** (powers + 1)) / (powers + 1)
    return np.linalg.solve(values.T, integrals)


def held_point(
    family: ModelFamily, lam: float, line: Mapping[float, Known], q_ordered: float, settings: WalkSettings, study: Study
) -> xr.Dataset:
    """Both phases at a further point of the line; `q_ordered` is about that of the ordered phase."""
    start, _ = followed(lam, line)
    walk = _walk(family, lam, start, q_ordered, settings, study)
    sides, sites = _sides(walk), int(np.prod(walk.last.shape[2:]))
    here = _read(sides, 0.0, sites)
    mu2, mu2_err = followed(lam, {**line, lam: Known(start, 0.0, here["slope"], errors_of(sides, 0.0, sites)["slope"])})
    return _described(walk, sides, mu2 - start, (mu2, mu2_err), sites)


def _walk(
    family: ModelFamily, lam: float, mu2: float, q_ordered: float, settings: WalkSettings, study: Study
) -> qp.Walk:
    """Chains of which the first half of the groups starts in the disordered phase, the others in the ordered."""
    field = family.at(mu2)
    name = f"lam{lam:.9g}_held_{mu2:.9g}_{settings.sweeps}"
    label = f"both phases held at lam = {lam:g}, mu2 = {mu2:.6g}"
    seed = seed_of(settings.seed, Use.CHAINS, int.from_bytes(name.encode(), "big"))
    meter = WalkMeter(study.display, settings.sweeps)
    meter.part(0, settings.sweeps, label)

    def make() -> qp.Walk:
        return qp.canonical(
            field,
            starts(field, q_ordered, settings.groups, settings.chains, seed),
            sweeps=settings.sweeps,
            warm_up=warm_up_of(settings.sweeps),
            kernel=LONG,
            seed=seed,
            progress=meter,
        )

    return study.walk(name, label, make, field)


def starts(field: Any, q_ordered: float, groups: int, chains: int, seed: int) -> Array:
    """Draws from the prior, and draws of which half the fluctuations are left about +-sqrt(q): (group, chain, ...)."""
    draws = np.asarray(field.sample_prior(jax.random.key(seed), groups * chains))
    draws = draws.reshape(groups, chains, *field.shape)
    rough = ROUGH * draws[groups // 2 :]
    mean = np.sqrt(max(q_ordered - float((rough**2).mean()), 0.0))
    return np.concatenate([draws[: groups // 2], mean + rough])


def _sides(walk: qp.Walk) -> list[Sums]:
    """What the chains of both phases sampled on their side of the cut halfway between them."""
    groups = walk.energy.shape[0] // 2
    table = {name: np.moveaxis(walk.data[name].values.astype(float), 1, 2) for name in NAMES}  # (group, chain, sweep)
    mine = [{name: x[part].reshape(-1, x.shape[-1]) for name, x in table.items()} for part in _halves(groups)]
    cut = halfway(mine[0]["phi2"], mine[1]["phi2"])
    inside = [mine[0]["phi2"] < cut, mine[1]["phi2"] >= cut]
    low, high = (values["phi2"][here].mean() for values, here in zip(mine, inside, strict=True))
    quarter = OUTER * (high - low)
    outer = [mine[0]["phi2"] < low + quarter, mine[1]["phi2"] >= high - quarter]
    return [_sums(*parts) for parts in zip(mine, inside, outer, strict=True)]


def _halves(groups: int) -> tuple[slice, slice]:
    return slice(None, groups), slice(groups, None)


def halfway(low: Array, high: Array) -> float:
    """The cut halfway between the averages below and above it."""
    cut = 0.5 * (low.mean() + high.mean())
    for _ in range(CUTS):
        cut = 0.5 * (low[low < cut].mean() + high[high >= cut].mean())
    return float(cut)


def _sums(values: Mapping[str, Array], inside: Array, outer: Array) -> Sums:
    observed = [values[name] for name in NAMES]
    columns = [np.ones(inside.shape), *observed, *(x * values["phi2"] for x in observed)]
    sums = [
        np.stack([np.where(here, column, 0.0).sum(axis=1) for column in columns], axis=1) for here in (inside, outer)
    ]
    masked = [np.where(inside, column, 0.0) for column in columns[:2]]
    half = inside.shape[1] // 2
    ends = [np.array([column[:, part].sum(axis=1) for column in masked]) for part in _halves(half)]
    with np.errstate(invalid="ignore"):
        moved = ends[1][1] / ends[1][0] - ends[0][1] / ends[0][0]
    moved = moved[np.isfinite(moved)]
    drift = float(moved.mean() / (moved.std() / np.sqrt(len(moved) - 1))) if len(moved) > 1 else np.inf
    return Sums(sums[0], sums[1], float(1 - inside.mean()), drift)


def _both(sides: Sequence[Sums], shift: float, sites: int) -> list[dict[str, float]]:
    """The numbers with all samples, and without the middle half."""
    return [
        numbers(*(part.sum(axis=0) for part in parts), shift=shift, sites=sites)
        for parts in ([side.columns for side in sides], [side.outer for side in sides])
    ]


def _read(sides: Sequence[Sums], shift: float, sites: int) -> dict[str, float]:
    """Averages of both phases at mu2 + shift, their latent heat and s."""
    whole, outer = _both(sides, shift, sites)
    return {name: 0.5 * (whole[name] + outer[name]) for name in whole}


def numbers(disordered: Array, ordered: Array, *, shift: float, sites: int) -> dict[str, float]:
    """From the sums of 1, O and O phi2 over both phases: to first order, d<O>/d mu2 = -cov(O, phi2)/2."""
    phases = []
    for sums in (disordered, ordered):
        mean, product = np.split(sums[1:] / sums[0], 2)
        there = mean - 0.5 * shift * (product - mean * mean[0])
        there[2] += 0.5 * shift * there[0]  # U contains mu2 phi2 / 2
        phases.append(there)
    jump = phases[1] - phases[0]
    averages = {f"{name}_{phase}": float(x) for phase, row in enumerate(phases) for name, x in zip(NAMES, row, strict=True)}
    return averages | {
        "q_0": float(phases[0][0] / sites),
        "q_1": float(phases[1][0] / sites),
        "latent_heat": float(-jump[2]),
        "slope": float(-2 * jump[1] / jump[0]),
    }


def errors_of(sides: Sequence[Sums], shift: float, sites: int) -> dict[str, float]:
    """Of the same numbers: a jackknife over the chains of either phase, and half of what the middle half changes."""
    whole, outer = _both(sides, shift, sites)
    variance = {name: 0.25 * (whole[name] - outer[name]) ** 2 for name in whole}
    for phase, side in enumerate(sides):
        rows = []
        for chain in range(len(side.columns)):
            without = [*sides]
            kept = np.arange(len(side.columns)) != chain
            without[phase] = side._replace(columns=side.columns[kept], outer=side.outer[kept])
            rows.append(_read(without, shift, sites))
        for name in variance:
            variance[name] += (len(rows) - 1) * float(np.var([row[name] for row in rows]))
    return {name: value**0.5 for name, value in variance.items()}


def _described(
    walk: qp.Walk, sides: Sequence[Sums], shift: float, mu2: tuple[float, float], sites: int
) -> xr.Dataset:
    """As a coexistence point: averages over the dimension `phase`, latent_heat, mu2 and the slope of the line."""
    value, error = _read(sides, shift, sites), errors_of(sides, shift, sites)
    moved = _read(sides, shift + mu2[1], sites)  # by an error of mu2
    error = {name: float(np.hypot(error[name], moved[name] - value[name])) for name in value}
    result = xr.Dataset(coords={"phase": list(PHASES)})
    for name in ("q", *NAMES):
        result[name] = ("phase", [value[f"{name}_{phase}"] for phase in range(2)])
        result[f"{name}_err"] = ("phase", [error[f"{name}_{phase}"] for phase in range(2)])
    for name in ("latent_heat", "slope"):
        result[name], result[f"{name}_err"] = xr.Variable((), value[name]), xr.Variable((), error[name])
    result["mu2"], result["mu2_err"] = xr.Variable((), mu2[0]), xr.Variable((), mu2[1])
    why = doubts(sides)
    return result.assign_attrs(
        method="held",
        trusted=int(not why),
        why=" ".join(why),
        gradients=walk.attrs["gradients"],
        wall_time=walk.attrs["wall_time"],
    )


def doubts(sides: Sequence[Sums]) -> list[str]:
    """Why both phases might not be what they seem: each a sentence."""
    why = []
    for name, side in zip(PHASES, sides, strict=True):
        if side.left > LEFT:
            why.append(
                f"{side.left:.2g} of the samples left the {name} phase: it does not hold on this lattice; use a larger L."
            )
        elif abs(side.drift) > DRIFT:
            why.append(
                f"The second half of the chains in the {name} phase is {abs(side.drift):.1f} errors away from the first: "
                "use more sweeps."
            )
    return why
