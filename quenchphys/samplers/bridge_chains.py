"""Chains in equilibrium at every step between a prior and its target: `bridge`.

Between a Gaussian prior pi_0 and a phase close to it, the densities

    rho_k(x) = pi_0(x) exp(-beta_k U(x)) [x inside the phase],     0 < beta_1 < ... < beta_K = 1

never meet a transition.  At each of them chains run until they have forgotten their start, so nothing lags behind, as it
would on a ladder that passes every beta once.  All samples together, with exact draws from the prior, give Z by the same
estimator as everywhere.  Samples at neighbouring betas must overlap: the betas are placed at equal steps of the length

    Lambda = int_0^1 std_beta(U) dbeta,

of at most one and a half standard deviations each, which also is the allocation of samples with the smallest error of
log Z: N independent samples in all give Lambda/sqrt(N).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from quenchphys.bridging.burn_in import settle
from quenchphys.bridging.chains import DRAWS, LANES, SWEEPS, TILES, Chains, Draws, Samples
from quenchphys.bridging.placement import Placement, error_of, integrals, placed
from quenchphys.consistency import check
from quenchphys.console.interruption import Interrupted, interruptible_alone
from quenchphys.console.progress import Meter, shown
from quenchphys.console.progress import meter as progress_meter
from quenchphys.kernels.block_hmc import BlockHMC
from quenchphys.ladder import Ladder
from quenchphys.outcome import Outcome
from quenchphys.parallel.devices import mesh_for
from quenchphys.parallel.fork_guard import check_not_forked
from quenchphys.parallel.processes import any_of
from quenchphys.problem import ProblemView, view
from quenchphys.settings import check_schedule, check_seed, check_whole
from quenchphys.smc.loop import contained
from quenchphys.storage.attributes import kernel_as_json, problem_attributes, software_attributes
from quenchphys.storage.schema import LADDER, LADDER_FORMAT, labelled

FEWEST_CALLS = 4  # of SWEEPS trajectories, before an error is believed
RESERVE = 0.85  # of the error that was asked for is aimed at, because the stated one, from a few groups, is itself uncertain
LEAVING = 1e-3  # share of trajectories that leave the phase, from which it is no phase of its own
LEAST_ACCEPTANCE = 0.3
DRIFT = 1e-4  # probability of as large a difference between early and late samples, below which chains still drift


@dataclass(frozen=True)
class BridgeSettings:
    """The settings of `bridge`, checked."""

    error: float
    betas: Sequence[float] | None
    groups: int
    sweeps: int | None
    most_sweeps: int
    warm_up: int
    kernel: BlockHMC
    seed: int

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_whole("groups", self.groups, LANES)
        if self.groups % LANES:
            raise ValueError(f"groups must be a multiple of {LANES}; {self.groups} was given")
        for name in ("warm_up", "most_sweeps") + ("sweeps",) * (self.sweeps is not None):
            check_whole(name, getattr(self, name), SWEEPS)
        if not (isinstance(self.error, int | float | np.number) and 0 < self.error < math.inf):
            raise ValueError(f"error must be positive and finite; {self.error!r} was given")
        if self.betas is not None and (self.schedule[0] <= 0 or self.schedule[-1] != 1):
            raise ValueError(
                f"betas must be positive and end at 1; {self.schedule[0]:g} ... {self.schedule[-1]:g} was given"
            )

    @property
    def schedule(self) -> np.ndarray:
        """The betas that were given."""
        return np.asarray(check_schedule("betas", self.betas, increasing=True), float)

    def as_json(self, sweeps: int) -> dict[str, Any]:
        """For the file, with the number of sweeps that were recorded."""
        kernel = kernel_as_json(self.kernel)  # type: ignore[arg-type]
        plain = {"error": float(self.error), "groups": int(self.groups), "warm_up": int(self.warm_up)}
        return {**plain, "sweeps": sweeps, "kernel": kernel}


def bridge(
    problem: Any,
    *,
    error: float = 0.1,
    betas: Sequence[float] | None = None,
    groups: int = 16,
    sweeps: int | None = None,
    most_sweeps: int = 100_000,
    warm_up: int = 64,
    kernel: BlockHMC | None = None,
    seed: int = 0,
    progress: bool | Meter | None = None,
    devices: int | Sequence[Any] | None = None,
) -> Ladder:
    """Sample every step between a prior and a phase near it by chains in equilibrium.

    Parameters
    ----------
    problem
        A phase with its own prior, such as one of `lattices.phase_fields`: a `Problem` with a `LocalAction`.
    error
        Standard error of log Z to be reached.
    betas
        Increasing values that end at 1.  Default: placed by short runs.
    groups
        Independent groups of chains, a multiple of 8: one chain at every beta each.  Error bars are a jackknife over them.
    sweeps
        Trajectories of each chain that are recorded, in multiples of 16.  Default: as many as `error` takes.
    most_sweeps
        Limit for these; a bridge that reaches it without the error ends with the outcome *level limit*.
    warm_up
        Trajectories in which the step size is tuned, and again after trajectories were made longer.  A burn-in follows that
        lasts 8 times the longest autocorrelation time seen in it.
    kernel
        Default: `BlockHMC()`.  Where trajectories forget too slowly, they are made up to 8 times longer.
    seed, progress, devices
        As in `quench`.

    Returns
    -------
    Ladder
        With the betas as levels, the groups as replicas and the recorded samples as particles: all observables take it.
        log Z of the phase is that of the ladder at beta = 1 plus `problem.log_scale`.

    Examples
    --------
    >>> phases = lattices.phase_fields(lattices.phi6(L=40, mu2=2.2839))
    >>> ladder = qp.bridge(phases["disordered"], error=0.05)
    >>> observables.partition_function(ladder, beta=[1.0]).log_z + phases["disordered"].log_scale
    """
    check_not_forked()
    settings = BridgeSettings(error, betas, groups, sweeps, most_sweeps, warm_up, kernel or BlockHMC(), seed)
    _check_local_action(problem)
    begun = time.monotonic()
    check(problem)
    model, mesh = view(problem), mesh_for(TILES, 1, devices)
    meter = progress_meter("bridge", progress)
    with shown(meter), contained(mesh), interruptible_alone() as request:
        chains = Chains(model, settings.kernel, settings.groups, settings.seed, mesh)
        draws = chains.draw()
        placement = placed(chains, draws.energy) if betas is None else Placement(settings.schedule, math.nan)
        samples, draws, settled = recorded(chains, settings, placement.betas, draws, request, meter)
        step_size, last = chains.step_sizes, chains.last()
    reached = error_of(samples.energy, draws.energy, placement.betas)
    wanted = math.inf if settings.sweeps is not None else settings.error
    attributes = {
        "format": LADDER_FORMAT,
        "method": "bridge",
        "softness": math.nan,
        "outcome": judge(samples, reached, wanted, settled).value,
        "seed": settings.seed,
        **problem_attributes(model),
        "settings": json.dumps(settings.as_json(samples.energy.shape[-1])),
        "length": placement.length,
        "left": float(samples.left.max()),
        "gradients": float(chains.gradients),
        "wall_time": time.monotonic() - begun,
        **software_attributes(),
    }
    groups_of_file = _tree(model, placement.betas, samples, draws, step_size, last)
    labels = {group: labelled(data, LADDER, group) for group, data in groups_of_file.items()}
    return Ladder(xr.DataTree.from_dict({"/": xr.Dataset(attrs=attributes), **labels}))


def _check_local_action(problem: Any) -> None:
    for name in ("lane_action", "lane_force", "lane_energy", "lane_inside", "lane_observe", "blocks"):
        if not hasattr(problem, name):
            raise TypeError(
                f"a bridge needs a phase with a local action, such as one of lattices.phase_fields(model); this "
                f"{type(problem).__name__} has no {name}"
            )


def recorded(
    chains: Chains, settings: BridgeSettings, betas: np.ndarray, draws: Draws, request: Any, meter: Meter
) -> tuple[Samples, Draws, bool]:
    """Burn-in at these betas, then samples until there are enough of them; and whether the start was forgotten.

    The prior is the level beta = 0: it gets as many draws as every other level has samples, and at least those given.
    """
    parts: list[Samples] = []

    def stop() -> None:
        if any_of(bool(request)):
            done = SWEEPS * len(parts)
            raise Interrupted(f"Interrupted after {done} sweeps; nothing is kept of an unfinished bridge.")

    chains.start(betas)
    settled = settle(chains, settings.warm_up, stop)
    limit = settings.sweeps or settings.most_sweeps
    wanted = limit  # sweeps, as far as can be told
    while SWEEPS * len(parts) < limit:
        parts.append(chains.advance(tune=False))
        done = SWEEPS * len(parts)
        if done >= draws.energy.shape[1] + DRAWS:
            draws = draws.joined(chains.draw())
        stop()
        if settings.sweeps is None and len(parts) >= FEWEST_CALLS:
            energy = np.concatenate([part.energy for part in parts], axis=-1)
            excess = excess_of(energy, draws.energy, betas, settings.error)
            if excess <= 1:
                break
            wanted = min(limit, round(done * excess**2))
        last = parts[-1]
        meter.update(done, float(last.energy.mean()), float(last.acceptance.mean()), math.nan, wanted - done)
    return Samples.joined(parts), draws, settled


def excess_of(energy: np.ndarray, draws: np.ndarray, betas: np.ndarray, error: float) -> float:
    """How much larger the error of log Z still is than it may be.

    Chains are stopped by the scatter at every beta, which is well known, but not before the scatter of the integrals of
    whole groups, which is like the error that will be stated, has become as small as was asked for.
    """
    whole = integrals(energy, draws, betas)[:, -1]
    stated = whole.std(ddof=1) / math.sqrt(len(whole))
    return max(error_of(energy, draws, betas) / RESERVE, stated) / error


def judge(samples: Samples, reached: float, error: float, settled: bool = True) -> Outcome:
    """How a bridge ended."""
    from scipy import stats  # a sixth of what importing quenchphys would take

    if not np.isfinite(samples.energy).all():
        return Outcome.UNDEFINED_ENERGY
    if samples.acceptance.min() < LEAST_ACCEPTANCE:
        return Outcome.FROZEN
    if samples.left.max() > LEAVING:
        return Outcome.LEFT_PHASE
    half = samples.energy.shape[-1] // 2
    change = samples.energy[..., half:].mean(axis=-1) - samples.energy[..., :half].mean(axis=-1)  # (level, group)
    groups = change.shape[1]
    z = change.mean(axis=1) / (change.std(axis=1, ddof=1) / math.sqrt(groups))
    if stats.t.sf(np.abs(z), groups - 1).min() * 2 * len(z) < DRIFT or not settled:
        return Outcome.LAGGED
    return Outcome.LEVEL_LIMIT if reached > error else Outcome.REACHED_BETA


def _tree(
    model: ProblemView,
    betas: np.ndarray,
    samples: Samples,
    draws: Draws,
    step_size: np.ndarray,
    last: np.ndarray,
) -> dict[str, xr.Dataset]:
    """The groups of a ladder file: replica = group, level = beta, particle = sweep."""
    groups, sweeps = samples.energy.shape[1:]
    replica_level, particle = ("replica", "level"), ("replica", "level", "particle")

    def of_levels(value: np.ndarray) -> tuple:
        return replica_level, np.broadcast_to(value, (groups, len(betas))).copy()

    levels = xr.Dataset(
        {
            "beta": of_levels(betas.astype(np.float32)),
            "log_volume": (replica_level, integrals(samples.energy, draws.energy, betas)),
            "acceptance": of_levels(samples.acceptance.astype(np.float32)),
            "step_size": of_levels(step_size),
            "level_count": ("replica", np.full(groups, len(betas))),
        }
    )
    recorded = {"energy": samples.energy, **samples.observables}
    particles = xr.Dataset({name: (particle, np.swapaxes(value, 0, 1)) for name, value in recorded.items()})
    particles["log_weight"] = (particle, np.full((groups, len(betas), sweeps), -math.log(sweeps), np.float32))
    values = {"energy": draws.energy, **draws.observables}
    return {
        "levels": levels,
        "particles": particles,
        "prior": xr.Dataset({name: (("replica", "draw"), value) for name, value in values.items()}),
        "configurations": xr.Dataset(
            {
                "field": (("replica", "sample", *model.dims), last[:, None]),
                "level": (("replica", "sample"), np.full((groups, 1), len(betas) - 1, np.int32)),
                "particle": (("replica", "sample"), np.full((groups, 1), sweeps - 1, np.int32)),
            }
        ),
    }
