"""Finite-size scaling of a transition: the same model at several sizes, and the laws that lead to the infinite lattice.

First order: coexistence points and barriers, see `first_order`.  Second order: crossings and exponents, see `second_order`.
"""

from __future__ import annotations

import json
import operator
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
from workflows.budget import CoexistenceSettings, LadderSettings, PilotSettings, WalkSettings
from workflows.coexistence_point.expectation import start_in
from workflows.coexistence_point.search import decided
from workflows.model_family import Model, ModelFamily, check_bracket, family_of
from workflows.provenance import call_of
from workflows.scaling.critical_sampling import has_clusters
from workflows.scaling.first_order import coexistence_line
from workflows.scaling.fits import FEWEST_SIZES
from workflows.scaling.second_order import critical_point
from workflows.scaling.universality import universality_of
from workflows.store import Study, request_of
from workflows.timing import stages_of_critical, stages_of_ladders, stages_of_point


def finite_size_scaling(
    sizes: Sequence[int],
    bracket: tuple[float, float] | None = None,
    *,
    model: Model = "phi6",
    coupling: str = "mu2",
    order: str | None = None,
    pilot_particles: int = PilotSettings.particles,
    pilot_replicas: int = PilotSettings.replicas,
    groups: int = WalkSettings.groups,
    chains: int = WalkSettings.chains,
    sweeps: int = WalkSettings.sweeps,
    particles: int = LadderSettings.particles,
    replicas: int = LadderSettings.replicas,
    method: str = "auto",
    error: float | None = None,
    seed: int = 0,
    softness: float | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    client: Any = None,
    omega: float | None = None,
    universality: str | None = None,
    aspect: int = 1,
    **couplings: float,
) -> xr.Dataset:
    """Follow a transition over several sizes to the infinite lattice.

    Parameters
    ----------
    sizes
        Linear sizes L, at least three different ones.
    bracket
        Two values of the coupling with the transition between them.
    model, coupling, **couplings
        As in `coexistence`.
    order
        "first" or "second"; by default first if mean field expects two phases somewhere in the bracket.
    pilot_particles, pilot_replicas
        Of first-order transitions: the pilot ladder of every size, as in `coexistence`.
    groups, chains, sweeps
        Of first-order transitions: the chains of every size, as in `coexistence`.  Of second-order transitions: canonical
        chains with sign clusters at three couplings of every size; error bars are a jackknife over all chains.
    method, error
        Of first-order transitions: how the point of every size is found, as in `coexistence`; "auto" has chains that cross
        for small sizes, for the barriers, and bridges to both phases for large ones.
    particles, replicas
        Of second-order transitions of models without sign clusters: particles in a population, and independent populations,
        of the one ladder a size has; error bars are a jackknife over the replicas.
    seed, softness, overwrite, progress
        As in `coexistence`.
    out
        File for the result.  Every size is kept beside it as soon as it is finished: a call with more sizes, or after an
        interruption, continues from there.
    omega
        Of second-order transitions: the exponent of corrections to scaling, if it is known.  Default: averaged over 0.8 to
        2.5, by how well each describes the sizes.  A value that is given is believed: a wrong one may fit well, and then
        the answer is wrong without a doubt being raised.
    universality
        Of second-order transitions on periodic squares and cubes: "ising" if the model is known to belong to that class.
        Its Binder cumulant and xi/L are taken for the critical coupling then, which is known several times better; exponents
        are fitted as always.  A class that is wrong shows as sizes that follow no law.
    aspect
        The lattices are L x ... x L x aspect L.  On elongated ones (2 or 4) the two walls between coexisting phases stand
        apart, and their tension is measured; on squares it is not.
    client
        A `dask.distributed.Client`: every size is then a task of its cluster.  The numbers are the same.  With `out`, all
        workers must see its folder.

    Returns
    -------
    Dataset
        What was measured, over the dimension `size`.  First order: <coupling>_infinite and, with `aspect`,
        interface_tension_infinite.
        Second order: <coupling>_critical, binder_critical, xi_over_L_critical, nu, gamma_over_nu and eta, and the
        autocorrelation times tau_m2 and tau_energy of the chains.  All with errors, and with chi2, dof and the smallest size
        that took part in each fit.  The attribute `trusted` is 1 or 0, and `why` gives the reasons for
        doubt.

    Examples
    --------
    >>> line = workflows.finite_size_scaling(sizes=[8, 12, 16, 24], bracket=(2.25, 2.33), out="fss.nc")
    >>> float(line.mu2_infinite), float(line.mu2_infinite_err)
    >>> critical = workflows.finite_size_scaling([8, 16, 32], (-1.32, -1.22), model="phi4", lam=0.25)
    >>> float(critical.mu2_critical), float(critical.nu)
    """
    call = call_of(finite_size_scaling, locals())
    lengths = check_sizes(sizes)
    if bracket is None:
        raise ValueError(f"bracket is missing: two values of {coupling} with the transition between them.")
    ends = check_bracket(bracket, coupling)
    families = {L: _family(model, coupling, couplings, L, aspect) for L in lengths}
    kind = order_of(families[lengths[0]], ends) if order is None else order
    if kind not in ("first", "second"):
        raise ValueError(f"order must be 'first' or 'second'; got {order!r}.")
    points = CoexistenceSettings.of(
        pilot_particles, pilot_replicas, groups, chains, sweeps, seed, softness, error, method
    )
    ladders = LadderSettings(particles, replicas, seed, softness)
    family = families[lengths[0]]
    critical = points.walk if has_clusters(family.at(0.5 * sum(ends))) else ladders  # of a second-order transition
    omega = None if omega is None else _check_omega(omega)
    known = universality_of(universality, family.at(0.5 * sum(ends)))
    if known is not None and kind == "first":
        raise ValueError("universality is for second-order transitions, but this one is of first order.")
    used = points.request() if kind == "first" else asdict(critical)
    unused = {name: value for name, value in (points.request() | ladders.request()).items() if name not in used}
    _warn_of_unused(kind, unused, used)
    geometry: dict[str, Any] = {"aspect": int(aspect)} if aspect != 1 else {}
    identity = {"order": kind, "model": family.name, "coupling": coupling, "couplings": dict(couplings), **geometry}
    request = request_of("finite_size_scaling", identity, used)
    middle = 0.5 * sum(ends)
    models = [family.at(middle) for family in families.values()]
    if kind == "first":
        decisions = [decided(family, start_in(family, ends), points) for family in families.values()]
        plan = [stage for one, how in zip(models, decisions, strict=True) for stage in stages_of_point(one, how)]
    elif critical is ladders:
        plan = stages_of_ladders(models, ladders)
    else:
        plan = stages_of_critical(models, points.walk)
    with Study(out, request, progress=progress, overwrite=overwrite, plan=plan, call=call) as study:
        if kind == "first":
            result, doubts = coexistence_line(families, ends, points, study, client)
        else:
            result, doubts = critical_point(families, ends, critical, study, client, omega, known)
        why = " ".join(doubts)
        return study.finish(
            result.assign_attrs(
                problem=family.name,
                couplings=json.dumps(labels_of(view(family.at(middle)))["couplings"]),
                workflow="finite_size_scaling",
                coupling=coupling,
                order=kind,
                aspect=int(aspect),
                **({} if universality is None else {"universality": universality}),
                trusted=int(not why),
                why=why,
            )
        )


def _family(model: Model, coupling: str, couplings: dict[str, Any], L: int, aspect: Any) -> ModelFamily:
    """The model on one of the lattices."""
    if isinstance(aspect, bool) or not isinstance(aspect, int | np.integer) or aspect < 1:
        raise ValueError(f"aspect must be a whole number of at least 1; got {aspect!r}.")
    if aspect == 1:
        return family_of(model, coupling, couplings, L=L)
    if not isinstance(model, str):
        raise ValueError("aspect is for models with a name, such as 'phi6'; a function takes its lattice from L alone.")
    others = {name: value for name, value in couplings.items() if name != "dim"}
    return family_of(model, coupling, others, shape=(L,) * (int(couplings.get("dim", 2)) - 1) + (int(aspect) * L,))


def check_sizes(sizes: Any) -> list[int]:
    """At least three different whole numbers, sorted."""
    try:
        lengths = sorted({operator.index(L) for L in sizes})
    except TypeError:
        raise ValueError(f"sizes must be whole numbers such as [8, 12, 16]; got {sizes!r}.") from None
    if len(lengths) < FEWEST_SIZES:
        raise ValueError(
            f"sizes must be at least {FEWEST_SIZES} different ones, for a law with an error; got {sizes!r}."
        )
    if lengths[0] < 2:
        raise ValueError(f"sizes must be at least 2; got {lengths[0]}.")
    return lengths


def _check_omega(omega: Any) -> float:
    found = finite("omega", omega)
    if not found > 0:
        raise ValueError(f"omega must be positive; got {omega!r}.")
    return found


def order_of(family: ModelFamily, bracket: tuple[float, float]) -> str:
    """First order where the model names two phases somewhere in the bracket."""
    try:
        start_in(family, bracket)
    except ValueError:
        return "second"
    return "first"


def _warn_of_unused(order: str, unused: dict[str, Any], used: dict[str, Any]) -> None:
    """Say so if a setting was changed that only transitions of the other order have."""
    default = CoexistenceSettings.of().request() | LadderSettings().request()
    idle = [name for name, value in unused.items() if name not in used and value != default[name]]
    if idle:
        known = [name for name in used if name not in unused]
        warnings.warn(
            f"The transition is of {order} order, so {' and '.join(idle)} {'is' if len(idle) == 1 else 'are'} not used; its "
            f"settings are {', '.join(known)}.",
            FutureWarning,
            stacklevel=3,
        )
