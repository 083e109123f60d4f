"""Markov chains in the target itself: `chains` runs NUTS or MCLMC from prior draws, for comparison with ladders.

They give averages at one temperature, no partition function, and only of phases that they reach: where the problem names
its phases the result says which chains ever left their first one.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenchphys.consistency import check
from quenchphys.consistency.energies import check_energies
from quenchphys.console.interruption import Interrupted
from quenchphys.console.memory import check_fits
from quenchphys.console.progress import Meter, meter
from quenchphys.extras import optional
from quenchphys.parallel.environment import own_settings
from quenchphys.parallel.processes import to_host
from quenchphys.parallel.random_numbers import key_of, split
from quenchphys.plain_values import finite
from quenchphys.problem import ProblemView, view
from quenchphys.samplers.gradient_kernels import NAMES, Draws, advance, tune
from quenchphys.settings import check_seed, keep_plain
from quenchphys.smc.loop import stoppable
from quenchphys.storage.attributes import problem_attributes, software_attributes

BLOCK = 100  # draws in one device call
SPARE = 8  # prior draws for each chain, so that all can start where the energy is finite
WORST_RHAT = 1.05  # of energy and observables, above which chains disagree
DIVERGENT_SHARE = 0.01
LONG_NAMES = {
    "field": "configuration",
    "energy": "energy U",
    "log_density": "log of the sampled density, up to a constant",
    "diverging": "whether a trajectory diverged since the draw before",
    "acceptance_rate": "mean acceptance probability along the trajectory",
    "tree_depth": "doublings of the trajectory",
    "energy_error": "change of the total energy in the last step, which the exact dynamics would keep",
    "step_size": "step size after tuning",
    "L": "length over which the momentum is forgotten, after tuning",
    "gradients": "gradients of the chain, tuning included",
    "tuning_gradients": "gradients spent on tuning",
    "phase_share": "share of the draws of a chain in a phase",
    "first_phase": "phase of the first draw; empty: none",
    "left_first_phase": "whether a later draw lies in another phase",
    "ess_bulk": "rank-normalised bulk effective sample size of all chains (ArviZ)",
    "rhat": "rank-normalised split R-hat (ArviZ)",
}


@dataclass(frozen=True)
class ChainSettings:
    """The settings of `chains`; a wrong one is refused when the object is made."""

    kernel: str = "nuts"
    chains: int = 16
    draws: int = 1000
    tune: int = 1000
    thin: int = 1
    beta: float = 1.0
    seed: int = 0
    fields: bool = True

    def __post_init__(self) -> None:
        if self.kernel not in NAMES:
            raise ValueError(f"kernel must be one of {', '.join(map(repr, NAMES))}; {self.kernel!r} was given")
        keep_plain(self, chains=1, draws=4, tune=20, thin=1)
        object.__setattr__(self, "seed", check_seed(self.seed))
        object.__setattr__(self, "beta", finite("beta", self.beta))
        if self.beta < 0:
            raise ValueError(f"beta must not be negative; {self.beta} was given")
        if not isinstance(self.fields, bool):
            raise TypeError(f"fields must be True or False; {self.fields!r} was given")


def chains(
    problem: Any,
    *,
    kernel: str = "nuts",
    chains: int = 16,
    draws: int = 1000,
    tune: int = 1000,
    thin: int = 1,
    beta: float = 1.0,
    seed: int = 0,
    fields: bool = True,
    progress: bool | Meter | None = None,
) -> xr.Dataset:
    """Sample pi(x) exp(-beta U(x)) by independent NUTS or MCLMC chains, each from a draw from the prior.

    It needs the extra `rivals` (blackjax, arviz).  Chains that start from the prior do not cross a first-order transition:
    compare `phase_share` and `left_first_phase`.

    Parameters
    ----------
    problem
        A model with `sample_prior`, `log_prior` and `energy`: see `quenchphys.problem.Problem`.
    kernel
        "nuts", with window adaptation, or "mclmc", microcanonical Langevin dynamics: unadjusted, so that averages have a
        small bias that more draws do not remove.
    chains, draws, tune
        Number of chains, draws of each that are kept, and steps of tuning before them, which are not.
    thin
        Transitions for each draw that is kept; every one is counted in the gradients.
    beta
        Inverse temperature.
    seed
        A whole number from 0 to 2^64 - 1; the same seed gives the same chains.
    fields
        Whether configurations are kept, besides energy and observables.
    progress
        As in `quench`.

    Returns
    -------
    Dataset
        Over chain and draw, as ArviZ takes it (`arviz.ess(found)`): field, energy and every observable.  What describes
        the chains are coordinates: diverging, step_size, gradients (tuning included), tuning_gradients; over phase,
        phase_share, first_phase and left_first_phase; over quantity, ess_bulk and rhat.  The attributes `trusted` and
        `why` say whether to believe it.

    Examples
    --------
    >>> found = qp.chains(lattices.phi6(L=8, mu2=2.2957), kernel="nuts", chains=16, draws=500)
    >>> found.q.mean().item(), found.left_first_phase.values.sum()
    >>> arviz.ess(found, var_names=["energy", "q"])
    """
    optional("blackjax", "qp.chains", "rivals")
    optional("arviz", "qp.chains", "rivals")
    settings = ChainSettings(kernel, chains, draws, tune, thin, beta, seed, fields)
    check(problem)
    model = view(problem)
    dimension = math.prod(model.shape)
    if settings.kernel == "mclmc" and dimension < 2:
        raise ValueError("MCLMC keeps the length of the momentum, so it needs at least 2 dimensions; this problem has 1")
    check_chain_memory(settings, dimension, len(jax.eval_shape(model.observe, jnp.zeros(model.shape))))
    begun = time.monotonic()
    with own_settings(), stoppable(None) as request:
        display = meter("chains", progress)
        try:
            found, course = run(model, settings, display, request)
        finally:
            display.close()
    return labelled(model, settings, found, course, time.monotonic() - begun)


def check_chain_memory(settings: ChainSettings, dimension: int, observables: int) -> None:
    """Refuse draws that do not fit into memory."""
    numbers = settings.draws * (dimension * settings.fields + observables + 6)
    if settings.kernel == "mclmc":  # its tuning holds a third of its states
        numbers = max(numbers, settings.tune * dimension)
    check_fits(
        "its draws",
        2 * 4.0 * settings.chains * numbers,
        f"lower chains ({settings.chains}) or draws ({settings.draws}), thin them, or keep no fields",
    )


def run(
    model: ProblemView, settings: ChainSettings, display: Meter, request: Any
) -> tuple[Draws, dict[str, np.ndarray]]:
    """Tune the chains and draw from them: all draws, and what is known of each chain."""
    argument, beta = model.as_argument(), jnp.float32(settings.beta)
    start_key, tune_key, draw_key = split(key_of(settings.seed), 3)
    start = starts(argument, start_key, settings.chains)
    tuned = tune(argument, beta, jax.random.split(tune_key, settings.chains), start, settings.kernel, settings.tune)
    scalars = to_host({name: value for name, value in tuned.parameters.items() if name in ("step_size", "L")})
    course = scalars | {"tuning_gradients": to_host(tuned.gradients).astype(np.int64)}
    state, blocks, done = tuned.state, [], 0
    while done < settings.draws:
        if request:
            raise Interrupted(f"Interrupted after {done} draws; nothing is kept of them.")
        size = min(BLOCK, settings.draws - done)
        keys = jax.random.split(jax.random.fold_in(draw_key, done), settings.chains)
        state, block = advance(
            argument, beta, keys, state, tuned.parameters, settings.kernel, size, settings.thin, settings.fields
        )
        blocks.append(to_host(block))
        done += size
        rate = blocks[-1].statistics.get("acceptance_rate", np.ones(1))
        display.update(done, float(blocks[-1].energy.mean()), float(rate.mean()), 0.0, settings.draws - done)
    found = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *blocks)
    course["gradients"] = course["tuning_gradients"] + found.gradients.astype(np.int64).sum(axis=1)
    return found, course


def starts(model: ProblemView, key: jax.Array, count: int) -> jax.Array:
    """Draws from the prior where the energy is finite, flattened, (chain, D)."""
    x = model.sample_prior(key, SPARE * count)
    energy = np.array(jax.vmap(model.energy)(x))
    check_energies(energy[None], np.isnan(energy)[None])
    return x.reshape(len(x), -1)[np.flatnonzero(np.isfinite(energy))[:count]]


def labelled(
    model: ProblemView, settings: ChainSettings, found: Draws, course: Mapping[str, np.ndarray], seconds: float
) -> xr.Dataset:
    """The dataset of the chains."""
    both = ("chain", "draw")
    variables: dict[str, Any] = {"energy": (both, found.energy)}
    variables |= {name: (both, value) for name, value in found.observables.items()}
    if found.field is not None:
        variables["field"] = ((*both, *model.dims), found.field)
    beside: dict[str, Any] = {"log_density": (both, found.log_density)}
    beside |= {name: (both, value) for name, value in found.statistics.items()}
    beside |= {name: ("chain", value) for name, value in course.items()}
    data = xr.Dataset(variables, {"chain": np.arange(settings.chains), "draw": np.arange(settings.draws)} | beside)
    data = data.assign_coords(in_phases(model, data))
    data = data.assign_coords(convergence(data, ["energy", *found.observables]))
    for name, variable in data.variables.items():
        variable.attrs |= {"long_name": LONG_NAMES.get(str(name), str(name)), "units": "1"}
    doubts = reasons(settings, data)
    return data.assign_attrs(
        method="chains",
        kernel=settings.kernel,
        trusted=int(not doubts),
        why="; ".join(doubts) or "chains agree, without divergences, on everything that was recorded",
        seed=settings.seed,
        **problem_attributes(model),
        settings=json.dumps(asdict(settings)),
        gradients=float(course["gradients"].sum()),
        wall_time=seconds,
        **software_attributes(),
    )


def in_phases(model: ProblemView, data: xr.Dataset) -> dict[str, Any]:
    """Share of each phase in every chain, the first phase of a chain, and whether it ever left it."""
    if not model.phases:
        return {}
    names = list(model.phases)
    each = [((data[o] >= low) & (data[o] < high)).values for o, low, high in model.phases.values()]
    inside: np.ndarray = np.stack(each, axis=-1)  # (chain, draw, phase)
    somewhere = np.any(inside, axis=2)
    first = np.argmax(inside[np.arange(len(inside)), somewhere.argmax(axis=1)], axis=1)
    started = np.any(somewhere, axis=1)
    elsewhere = inside.copy()
    elsewhere[np.arange(len(inside)), :, first] = False
    left = started & np.any(elsewhere, axis=(1, 2))
    return {
        "phase": names,
        "phase_share": (("chain", "phase"), inside.mean(axis=1)),
        "first_phase": ("chain", np.where(started, np.array(names)[first], "")),
        "left_first_phase": ("chain", left),
    }


def convergence(data: xr.Dataset, names: list[str]) -> dict[str, Any]:
    """Bulk effective sample size and R-hat of energy and observables."""
    arviz = optional("arviz", "qp.chains", "rivals")
    constant = {name for name in names if np.ptp(data[name].values) == 0}
    ess, rhat = [], []
    for name in names:
        values = data[name].values.astype(float)
        usable = name not in constant and bool(np.isfinite(values).all())
        ess.append(float(arviz.ess(values, method="bulk")) if usable else math.nan)
        rhat.append(float(arviz.rhat(values)) if usable and len(values) > 1 else math.nan)
    return {"quantity": names, "ess_bulk": ("quantity", ess), "rhat": ("quantity", rhat)}


def reasons(settings: ChainSettings, data: xr.Dataset) -> list[str]:
    """Everything that speaks against these chains, each in a clause."""
    found = []
    diverging = float(data["diverging"].mean())
    if diverging > DIVERGENT_SHARE:
        found.append(f"{diverging:.1%} of the draws followed a divergence")
    if not np.isfinite(data["energy"]).all():
        found.append("the energy of some draws is not a number")
    worst = float(data["rhat"].max()) if data["rhat"].notnull().any() else math.nan
    if worst > WORST_RHAT:
        name = str(data["quantity"].values[int(np.nanargmax(data["rhat"].values))])
        found.append(f"chains disagree: R-hat of {name} is {worst:.2f} (up to {WORST_RHAT:g} is accepted)")
    if settings.chains == 1:
        found.append("a single chain cannot be compared with others")
    if "phase" in data.coords and data.sizes["phase"] > 1:
        found += doubts_on_phases(data)
    return found


def doubts_on_phases(data: xr.Dataset) -> list[str]:
    """Phases that no chain met, and shares that are those of the starts."""
    share = data["phase_share"].mean("chain")
    never = [str(name) for name in data["phase"].values if float(share.sel(phase=name)) == 0]
    left, count = int(data["left_first_phase"].sum()), data.sizes["chain"]
    if never:
        return [f"no chain ever met the phase {' and '.join(never)}, so averages lack it; use qp.quench"]
    if left < count / 2:
        return [
            f"only {left} of {count} chains left their first phase, so the shares of the phases are those of the starts; "
            "use qp.quench"
        ]
    return []
