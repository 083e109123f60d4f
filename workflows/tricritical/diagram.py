"""The phase diagram of phi^6: its first-order line, its critical line, and the tricritical point between them.

From the side of first order, see `first_order_line`; by canonical chains of several sizes, see `fixed_ratio`; the laws that
lead to the tricritical coupling on either way, see `laws`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from quenchphys.labels import labels_of
from quenchphys.plain_values import finite
from quenchphys.problem import view
from quenchphys.settings import check_whole
from workflows.budget import CoexistenceSettings, WalkSettings
from workflows.defaults import DIAGRAM_CRITICAL, DIAGRAM_FIRST_ORDER, DIAGRAM_L, DIAGRAM_SIZES, DIAGRAM_SWEEPS
from workflows.model_family import ModelFamily, family_of
from workflows.provenance import call_of
from workflows.scaling.finite_size import check_sizes
from workflows.scaling.fits import ACCEPTED
from workflows.store import Study, request_of
from workflows.timing import stages_of_critical, stages_of_point
from workflows.tricritical import first_order_line, fixed_ratio
from workflows.tricritical.laws import Found, from_cumulants, from_jumps

FEWEST_FIRST_ORDER = 4  # for a law of three numbers with a quality
FEWEST_CRITICAL = 3
APART = 3.0  # errors, beyond which two answers contradict each other
NOT_HERE = ("lam", "mu2", "L", "shape", "dim")  # of the model, which the study itself chooses


def phase_diagram(
    first_order: Sequence[float] = DIAGRAM_FIRST_ORDER,
    critical: Sequence[float] = DIAGRAM_CRITICAL,
    *,
    L: int = DIAGRAM_L,
    sizes: Sequence[int] = DIAGRAM_SIZES,
    groups: int = WalkSettings.groups,
    chains: int = WalkSettings.chains,
    sweeps: int = DIAGRAM_SWEEPS,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **couplings: float,
) -> xr.Dataset:
    """Follow the first-order line of phi^6 in two dimensions to the tricritical point, where the critical line begins.

    The tricritical coupling is found on two ways that share no samples.  Jumps: at coexistence points the jumps of q and of
    the energy vanish as (lam_t - lam)^(1/4).  Sizes: where xi/L = 1, the Binder cumulants of canonical chains of all sizes
    agree at lam_t.  Both use the exponents of the tricritical Ising class, which are known exactly.

    Parameters
    ----------
    first_order
        Values of lam at which two phases coexist, at least four, from far away to close to the tricritical point.
    critical
        Values of lam of canonical chains, at least three, on both sides of the tricritical point.
    L
        Size of the lattices of coexistence points; it must be large compared with the correlation length.
    sizes
        Sizes of the lattices of canonical chains, at least three.
    groups, chains, sweeps
        Of all chains, canonical and between two phases, as in `coexistence`.
    seed, out, overwrite, progress
        As in `coexistence`.  Points and chains are kept beside `out`: a call with more couplings or sizes uses them again.
    **couplings
        Of the model: eta, stiffness or m0_sq.

    Returns
    -------
    Dataset
        Over `first_order`: mu2_coexistence, jump_q, jump_energy (the latent heat of a site) and bridged, which is 1 for
        points by bridges and 0 for those that chains in both phases followed.  Over `lam`: mu2_crossing, where xi/L of the
        two largest sizes is equal, and the effective exponents gamma_over_nu and inverse_nu between them; over `lam` and
        `size`: mu2, binder, fluctuation and slope where xi/L = 1.  lam_jumps, lam_sizes, their distance in errors,
        lam_tricritical from both and mu2_tricritical.  All with errors.
        The attribute `trusted` is 1 or 0, and `why` gives the reasons for doubt.

    Examples
    --------
    >>> diagram = workflows.phase_diagram(out="diagram.nc")
    >>> float(diagram.lam_tricritical), float(diagram.lam_tricritical_err), float(diagram.distance)
    >>> workflows.phase_diagram(first_order=[-1.4, -1.3, -1.25, -1.2], critical=[-1.2, -1.15, -1.1], eta=0.3)
    """
    call = call_of(phase_diagram, locals())
    ordered = _lams("first_order", first_order, FEWEST_FIRST_ORDER)
    near = _lams("critical", critical, FEWEST_CRITICAL)
    lengths = check_sizes(sizes)
    check_whole("L", L, 4)
    check_whole("the smallest of sizes", lengths[0], 4)
    for name in NOT_HERE:
        if name in couplings:
            raise ValueError(
                f"{name} is no setting of the model here: the study chooses it; give eta, stiffness or m0_sq."
            )
    points = CoexistenceSettings.of(groups=groups, chains=chains, sweeps=sweeps, seed=seed)

    def family_at(lam: float, size: int = L) -> ModelFamily:
        return family_of("phi6", "mu2", couplings | {"lam": lam}, L=size)

    model = family_at(ordered[0]).at(1.0)  # refuses couplings that the model does not have or allow
    request = request_of(
        "phase_diagram", {"model": "phi6", "couplings": dict(couplings), "L": int(L)}, asdict(points.walk)
    )
    plan = [stage for _ in ordered for stage in stages_of_point(model, points._replace(method="phases"))]
    plan += stages_of_critical([family_at(near[0], size).at(1.0) for _ in near for size in lengths], points.walk)
    with Study(out, request, progress=progress, overwrite=overwrite, plan=plan, call=call) as study:
        found = first_order_line.follow(family_at, ordered, points, study)
        line = dict(zip(ordered, (float(point["mu2"]) for point in found), strict=True))
        curves = fixed_ratio.sample(family_at, near, lengths, line, points.walk, study)
        study.analyse()
        result = xr.merge(
            [first_order_line.table_of(found, ordered), fixed_ratio.table_of(curves, near, lengths)],
            combine_attrs="drop",
        )
        doubts = [
            why for lam, point in zip(ordered, found, strict=True) for why in first_order_line.doubts(lam, point)
        ]
        why = " ".join(doubts + add_tricritical(result))
        if why:
            warnings.warn(f"The phase diagram is not to be trusted: {why}", stacklevel=2)
        labels = {
            name: term for name, term in labels_of(view(model))["couplings"].items() if name not in ("lam", "mu2")
        }
        return study.finish(
            result.assign_attrs(
                problem="phi6",
                couplings=json.dumps(labels),
                workflow="phase_diagram",
                trusted=int(not why),
                why=why,
            )
        )


def _lams(name: str, given: Any, fewest: int) -> list[float]:
    """Different finite numbers, ascending."""
    try:
        values = sorted({finite(name, value) for value in given})
    except TypeError:
        raise ValueError(f"{name} must be values of lam such as [-1, -0.95, -0.9, -0.85]; got {given!r}.") from None
    if len(values) < fewest:
        raise ValueError(
            f"{name} must be at least {fewest} different values of lam, for a law with a quality; got {given!r}."
        )
    return values


def add_tricritical(result: xr.Dataset) -> list[str]:
    """Add the tricritical point on both ways and from both to the tables, and return the reasons for doubt."""
    near, lengths = result["lam"].values, result["size"].values
    jumps = {name: (result[name].values, result[f"{name}_err"].values) for name in ("jump_q", "jump_energy")}
    ways = {
        "lam_jumps": (from_jumps(result["first_order"].values, jumps), "lam at which jumps vanish"),
        "lam_sizes": (
            from_cumulants(
                np.repeat(near, len(lengths)),
                np.tile(lengths.astype(float), len(near)),
                result["binder"].values.ravel(),
                result["binder_err"].values.ravel(),
            ),
            "lam at which cumulants of all sizes agree",
        ),
    }
    for name, (found, words) in ways.items():
        _add(result, name, found.value, found.error, words)
        for end, value in (("chi2", found.best.chi2), ("dof", found.best.dof), ("p_value", found.best.p_value)):
            result[f"{name}_{end}"] = xr.Variable((), value, {"long_name": f"{end.replace('_', ' ')} of its best fit"})
    one, other = (found for found, _ in ways.values())
    distance = abs(one.value - other.value) / np.hypot(one.error, other.error)
    result["distance"] = xr.Variable((), distance, {"long_name": "distance of both ways in errors"})
    weight = np.array([one.error, other.error]) ** -2.0
    lam_t = float(np.average([one.value, other.value], weights=weight))
    _add(result, "lam_tricritical", lam_t, float(weight.sum() ** -0.5), "tricritical lam from both ways")
    _add_at(result, lam_t, float(result["lam_tricritical_err"]))
    return _doubts(result, one, other, distance)


def _add(result: xr.Dataset, name: str, value: float, error: float, words: str) -> None:
    result[name] = xr.Variable((), value, {"long_name": words})
    result[f"{name}_err"] = xr.Variable((), error, {"long_name": "standard error"})


def _add_at(result: xr.Dataset, lam_t: float, error: float) -> None:
    """mu2 and the effective exponents at lam_t: on the straight line between the nearest lam on both sides."""
    near = result["lam"].values
    i = int(np.clip(np.searchsorted(near, lam_t), 1, len(near) - 1))
    share = (lam_t - near[i - 1]) / (near[i] - near[i - 1])
    weights = np.array([1 - share, share])
    for label, name in (
        ("mu2_tricritical", "mu2_crossing"),
        ("gamma_over_nu_tricritical", "gamma_over_nu"),
        ("inverse_nu_tricritical", "inverse_nu"),
    ):
        value, spread = result[name].values[i - 1 : i + 1], result[f"{name}_err"].values[i - 1 : i + 1]
        along = (value[1] - value[0]) / (near[i] - near[i - 1]) * error
        whole = float(np.sqrt(((weights * spread) ** 2).sum() + along**2))
        _add(result, label, float(weights @ value), whole, f"{name} at the tricritical lam")


def _doubts(result: xr.Dataset, jumps: Found, sizes: Found, distance: float) -> list[str]:
    """Why the answer might be wrong: each a sentence."""
    why = []
    for words, found in (("jumps", jumps), ("cumulants", sizes)):
        if found.best.p_value < ACCEPTED:
            why.append(
                f"The {words} do not follow the law that gives lam_t = {found.value:.4g} (p = {found.best.p_value:.2g})."
            )
    if distance > APART:
        why.append(
            f"The jumps vanish at lam = {jumps.value:.4g} +- {jumps.error:.2g}, and the sizes agree at {sizes.value:.4g} +- "
            f"{sizes.error:.2g}: {distance:.1f} errors apart."
        )
    best = abs(jumps.best.value - sizes.best.value) / np.hypot(jumps.best.error, sizes.best.error)
    if best > APART >= distance:
        why.append(
            f"The best fit to the jumps gives lam_t = {jumps.best.value:.4g} +- {jumps.best.error:.1g}, the best to the "
            f"sizes {sizes.best.value:.4g} +- {sizes.best.error:.1g}, {best:.1f} errors apart: both ways agree only because "
            "other fits are far from the best; larger lattices are needed."
        )
    last, lam_t = float(result["first_order"].values[-1]), float(result["lam_tricritical"])
    if last >= sizes.value:
        why.append(
            f"The coexistence point at lam = {last:g} lies beyond lam_t = {sizes.value:.4g} of the sizes: two peaks "
            "there are no two phases."
        )
    if not result["lam"].values[0] < lam_t < result["lam"].values[-1]:
        why.append(f"lam_t = {lam_t:.4g} does not lie among the couplings of canonical chains; move them.")
    return why
